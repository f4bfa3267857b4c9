"""The report on disk, and its page in a real browser at desk and phone width."""

from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from sqlcrystal.study.ledger import write_ledger
from sqlcrystal.study.report.document import make_document
from sqlcrystal.study.report.facts import Facts
from sqlcrystal.study.report.page import to_page
from sqlcrystal.study.report.sentences import sentences
from sqlcrystal.study.report.summary import summarize
from synthetic_ledger import synthetic_document, synthetic_ledger

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
BOXES = """() => [...document.querySelectorAll('figure svg[role=img], div.scroll, figure, section.table')]
    .filter(e => !e.closest('details:not([open])'))
    .map(e => { const b = e.getBoundingClientRect();
                return [e.tagName + ' ' + (e.id || e.ariaLabel), b.left, b.right, b.width, b.height]; })"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("page") / "index.html"
    target.write_text(to_page(synthetic_document()), encoding="utf-8")
    return target


def test_the_page_needs_no_script_and_no_network(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "<script" not in text
    assert "http://" not in text.replace("http://www.w3.org", "")
    assert "https://" not in text
    assert "@import" not in text


def test_the_page_says_where_it_comes_from(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    manifest = synthetic_document().manifest
    for fact in (manifest.version, manifest.digest, manifest.model, manifest.model_digest, "42, 7, 13", manifest.rule):
        assert fact in text


def test_question_text_is_escaped_in_the_gallery(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "&lt;i&gt;" in text
    assert "<i>" not in text


@pytest.mark.skipif(not CHROMIUM.exists(), reason=f"NO BROWSER: {CHROMIUM} is missing, the page was not looked at")
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_figure_and_table_is_visible_in_a_browser(page: Path, width: int, scheme: str) -> None:
    from playwright.sync_api import sync_playwright

    document = synthetic_document()
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
        said: list[str] = []
        tab.on("console", lambda message: said.append(message.text))
        tab.on("pageerror", lambda error: said.append(str(error)))
        tab.goto(page.as_uri())
        boxes = tab.evaluate(BOXES)
        reach = tab.evaluate("document.documentElement.scrollWidth")
        browser.close()
    assert said == []
    assert reach <= width
    kinds = [name.split()[0] for name, *_ in boxes]
    assert kinds.count("SECTION") == len(document.tables)
    assert kinds.count("FIGURE") == len(document.figures)
    assert kinds.count("svg") == sum(len(figure.panels) for figure in document.figures)
    for name, left, right, wide, high in boxes:
        assert wide > 100, name
        assert high > 30, name
        assert left >= 0, name
        assert right <= width, name


def test_the_command_writes_every_format_and_prints_one_document(tmp_path: Path) -> None:
    import typer

    from sqlcrystal.interfaces.cli import report

    write_ledger(synthetic_ledger(only=("none", "W0"), databases=("db_clinic", "db_hangar", "db_museum")), tmp_path)
    app = typer.Typer()
    app.callback()(lambda: None)
    report.register(app)
    result = CliRunner().invoke(app, ["report", str(tmp_path), "--json"], catch_exceptions=False)
    printed = msgspec.json.decode(result.stdout)
    assert printed == msgspec.json.decode((tmp_path / "summary.json").read_bytes())
    made = {path.relative_to(tmp_path / "report").as_posix() for path in (tmp_path / "report").rglob("*.*")}
    assert {"index.html", "report.md", "tables/cr-main.tex", "tables/cr-main.csv"} <= made
    assert {f"figures/crystallization.{kind}" for kind in ("svg", "png", "pdf")} <= made
    assert "needs" in (tmp_path / "report" / "report.md").read_text(encoding="utf-8").split("## Left out")[1]


@pytest.mark.parametrize(("strength", "verb"), [(2.5, "raises"), (0.0, "is not shown to change")])
def test_the_sentences_follow_the_numbers(strength: float, verb: str) -> None:
    facts = Facts(synthetic_ledger(only=("none", "W0"), strength=strength))
    words = sentences(facts, summarize(facts))
    assert f"memory {verb} first-attempt accuracy" in words.found[0]


POOR = {
    "no repair pass": lambda row: row.setting != "repair",
    "transfer only": lambda row: row.setting == "transfer",
    "nothing without memory": lambda row: row.arm != "none",
    "one database": lambda row: row.database == "db_clinic",
    "nothing at all": lambda row: False,
}


@pytest.mark.parametrize("lacking", POOR)
def test_a_poor_study_still_gets_a_page_that_says_what_is_missing(lacking: str) -> None:
    ledger = synthetic_ledger(only=("none", "W0"), databases=("db_clinic", "db_hangar"), seeds=(42,))
    kept = tuple(row for row in ledger.outcomes if POOR[lacking](row))
    document = make_document([Facts(msgspec.structs.replace(ledger, outcomes=kept))])
    text = to_page(document)
    assert document.absent
    assert all(one.title.split(": ")[-1].split(" ")[0] in text for one in document.absent)
    assert ">nan" not in text
    assert "nan " not in text.replace("Provenan ", "")
