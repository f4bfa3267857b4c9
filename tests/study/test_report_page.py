"""The report on disk, and its page in a real browser at workspace and phone width."""

import re
from collections.abc import Callable
from html import escape
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from browser import needs_browser, opened_browser
from sqlcrystal.ledger.records import Ledger, Outcome, write_ledger
from sqlcrystal.measurement.flips import breaks, fixes
from sqlcrystal.study.report import value_tables
from sqlcrystal.study.report.document import Document, gallery, make_document
from sqlcrystal.study.report.facts import Facts
from sqlcrystal.study.report.html import to_page
from sqlcrystal.study.report.write import to_report
from synthetic_ledger import synthetic_document, synthetic_ledger

BOXES = """() => [...document.querySelectorAll('figure svg[role=img], div.scroll, figure, section.table')]
    .filter(e => !e.closest('details:not([open])'))
    .map(e => { const b = e.getBoundingClientRect();
                return [e.tagName + ' ' + (e.id || e.ariaLabel), b.left, b.right, b.width, b.height]; })"""

CLIPPED = """() => [...document.querySelectorAll('div.scroll')]
    .filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.ariaLabel)"""


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


def test_a_change_that_is_luck_of_the_rows_is_not_shown_and_is_counted() -> None:
    ledger = synthetic_ledger(only=("none", "W0"))
    shown = {(exhibit.question, exhibit.seed) for exhibit in gallery(Facts(ledger))}
    keys = {text: question for question, text in ledger.questions.items()}
    lucky = tuple((seed, keys[text]) for text, seed in sorted(shown))
    facts = Facts(replace(ledger, lucky=lucky))
    assert gallery(facts)
    assert not shown & {(exhibit.question, exhibit.seed) for exhibit in gallery(facts)}
    table = value_tables.flips(facts)
    assert table is not None
    n_fixes, n_breaks = len(fixes(facts.headline)), len(breaks(facts.headline))
    lost = {verdict: sum(e.verdict == verdict for e in gallery(Facts(ledger))) for verdict in ("fix", "break")}
    kept = f"{n_fixes - lost['fix']} of {n_fixes} fixes and {n_breaks - lost['break']} of {n_breaks} breaks stand."
    assert table.note.endswith(kept)


def test_no_name_of_a_study_becomes_a_link_or_a_tag_in_markdown() -> None:
    hostile = "<img src=x> ![y](https://evil) [z](https://evil)"
    ledger = msgspec.json.encode(synthetic_ledger()).decode()
    for name in {outcome.database for outcome in synthetic_ledger().outcomes}:
        ledger = ledger.replace(f'"database":"{name}"', f'"database":"{name} {hostile}"')
    changed = msgspec.json.decode(ledger, type=Ledger)
    named = dict.fromkeys(("study", "benchmark", "model", "embedder"), hostile)
    changed = replace(changed, manifest=replace(changed.manifest, **named))
    text = to_report(make_document([Facts(changed)]))
    assert "img src" in text
    assert "<img" not in text
    assert not re.search(r"(?<!\\)\]\(https://evil", text)


@needs_browser
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_figure_and_table_is_visible_in_a_browser(page: Path, width: int, scheme: str) -> None:
    document = synthetic_document()
    with opened_browser() as browser:
        tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        complaints: list[str] = []
        tab.on("console", lambda message: complaints.append(message.text))
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.goto(page.as_uri())
        first_screen = tab.evaluate("document.querySelector('.tiles').getBoundingClientRect().top")
        ends = "[...document.querySelectorAll('.first .tiles, .first svg')].map(e => e.getBoundingClientRect().bottom)"
        lowest = max(tab.evaluate(ends))
        tab.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        boxes = tab.evaluate(BOXES)
        reach = tab.evaluate("document.documentElement.scrollWidth")
        clipped = tab.evaluate(CLIPPED)
    assert complaints == []
    assert reach <= width
    assert width < 1280 or clipped == [], "at a workspace no table needs scrolling"
    assert first_screen < 900, "the three sentences and the first tile stand on the first screen"
    assert width < 1280 or lowest <= 800, "sentences, figures and the confirmatory contrasts fit a screen of 1280 × 800"
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
    from sqlcrystal.interfaces.cli.study import study_app

    write_ledger(synthetic_ledger(only=("none", "W0"), databases=("db_clinic", "db_hangar", "db_museum")), tmp_path)
    result = CliRunner().invoke(study_app, ["report", str(tmp_path), "--json"], catch_exceptions=False)
    printed = msgspec.json.decode(result.stdout)
    assert printed == msgspec.json.decode((tmp_path / "summary.json").read_bytes())
    files = {path.relative_to(tmp_path / "report").as_posix() for path in (tmp_path / "report").rglob("*.*")}
    assert {"index.html", "report.md", "tables/cr-main.tex", "tables/cr-main.csv"} <= files
    assert {
        f"figures/{name}.{kind}" for name in ("crystallization", "headline") for kind in ("svg", "png", "pdf")
    } <= files
    assert "needs" in (tmp_path / "report" / "report.md").read_text(encoding="utf-8").split("## Left out")[1]


@pytest.mark.parametrize(("strength", "verdict"), [(2.5, "memory raises accuracy"), (0.0, "no clear change")])
def test_tile_and_text_say_the_same_and_follow_the_numbers(strength: float, verdict: str) -> None:
    document = make_document([Facts(synthetic_ledger(only=("none", "W0"), strength=strength))])
    assert document.summary.verdict == verdict
    assert document.sentences.sure.lower().startswith(verdict)
    assert f"<span>lift: {verdict}</span>" in to_page(document)


def test_the_report_opens_with_what_was_asked_found_and_how_sure() -> None:
    document = synthetic_document()
    asked, result, sure = (text for _, text in document.sentences.opening)
    assert "card" in asked
    assert "bank" in asked
    assert "55.2%" in result
    assert "95% interval" in sure
    page = to_page(document)
    places = [page.index(mark) for mark in ("What was asked", 'class="tiles"', 'id="figure-contrasts"', "Contents")]
    assert places == sorted(places)


def test_confirmatory_contrasts_come_first_and_exploratory_ones_are_folded() -> None:
    document = synthetic_document()
    assert document.exploratory is not None
    page = to_page(document)
    before, _, folded = page.partition(f'<details class="fold"><summary>{document.exploratory.title}</summary>')
    assert 'id="figure-contrasts"' in before
    assert folded.startswith('<figure id="figure-exploratory"')


def test_the_headline_for_a_talk_brings_its_own_ground_and_its_interval() -> None:
    document = synthetic_document()
    assert document.talk is not None
    assert document.talk.opaque
    assert 'href="figures/headline.svg"' in to_page(document)


def test_audits_and_long_tables_are_folded() -> None:
    page = to_page(synthetic_document())
    for table in synthetic_document().tables:
        body = page.split(f'id="table-{table.key}">')[1][:60]
        assert ("<details" in body) == (table.folded or len(table.rows) > 20), table.key


def test_an_unfinished_study_that_lacks_a_confirmatory_arm_does_not_say_it_has_them_all() -> None:
    ledger = synthetic_ledger(only=("none", "W0", "permuted"))
    manifest = msgspec.structs.replace(ledger.manifest, left_out=("permuted/transfer",))
    kept = tuple(row for row in ledger.outcomes if row.arm != "permuted")
    document = make_document([Facts(msgspec.structs.replace(ledger, manifest=manifest, outcomes=kept))])
    assert "Interim report: 2 of 3 arms recorded." in to_page(document)


def test_an_unfinished_study_is_labelled_and_says_what_fills_it() -> None:
    ledger = synthetic_ledger(only=("none", "W0", "random"))
    kept = tuple(row for row in ledger.outcomes if row.arm != "random")
    manifest = msgspec.structs.replace(ledger.manifest, left_out=("random/transfer",))
    document = make_document([Facts(msgspec.structs.replace(ledger, manifest=manifest, outcomes=kept))])
    page = to_page(document)
    assert "Interim report: 2 of 3 arms recorded, every confirmatory one among them." in page
    assert "sqlcrystal study run runs/synthetic --set mode=fill" in page
    assert "random: transfer" in page
    assert "Does it matter that the cards are similar to the question?" in document.waiting
    assert "Are ten cards better than one?" not in document.waiting, "the study has no such arm"


def small(**changes: object) -> Document:
    ledger = synthetic_ledger(only=("none", "W0"), **changes)  # type: ignore[arg-type]
    return make_document([Facts(ledger)])


def test_with_no_card_banked_there_is_nothing_to_compare() -> None:
    ledger = synthetic_ledger(only=("none", "W0"))
    bare = {(row.seed, row.question): row for row in ledger.of("none", "transfer")}
    same = tuple(
        msgspec.structs.replace(bare[row.seed, row.question], arm=row.arm)
        if (row.arm, row.setting) == ("W0", "transfer")
        else row
        for row in ledger.outcomes
    )
    document = make_document([Facts(msgspec.structs.replace(ledger, outcomes=same, cards=()))])
    assert document.summary.verdict == "nothing to compare: no card was banked"
    assert document.figures == ()
    assert "interval" not in " ".join(text for _, text in document.sentences.opening)


def test_answers_that_nobody_could_judge_are_no_result() -> None:
    ledger = synthetic_ledger(only=("none", "W0"), databases=("db_clinic", "db_hangar", "db_museum"))
    refused = tuple(
        msgspec.structs.replace(row, kind="unevaluable", right=False, first_right=False) for row in ledger.outcomes
    )
    document = make_document([Facts(msgspec.structs.replace(ledger, outcomes=refused))])
    assert document.summary.verdict == "not measured: no pair of answers could be judged"
    assert "none could be compared with gold" in document.sentences.found


def test_one_database_gets_a_question_level_interval_labelled_as_such() -> None:
    document = small(databases=("db_clinic",))
    assert document.summary.lift_ci_pp is None
    assert document.summary.lift_ci_question_level_pp is not None
    assert "question-level, for these databases only" in document.sentences.sure


def test_without_an_interval_of_the_lift_the_break_even_has_none_either() -> None:
    document = small(databases=("db_clinic",))
    table = next(table for table in document.tables if "Break-even, queries" in table.columns)
    assert {row[-1] for row in table.rows} == {"—"}


def test_two_databases_give_no_headline_interval() -> None:
    document = small(databases=("db_clinic", "db_hangar"))
    assert document.summary.lift_ci_pp is None
    assert document.summary.verdict == "cannot be judged over databases"


def test_one_seed_is_preliminary_and_says_so() -> None:
    document = small(seeds=(42,), strength=3.0)
    assert document.summary.verdict.startswith("preliminary, 1 seed: ")
    assert "Answers of fewer than three seeds establish nothing." in document.sentences.sure


POOR: dict[str, Callable[[Outcome], bool]] = {
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
    assert all(escape(absent.title) in text for absent in document.absent)
    assert not re.search(r"\bnan\b", text)
    assert not re.search(r"\bNone\b", text)
