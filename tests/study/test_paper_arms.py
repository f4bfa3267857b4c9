"""Every arm of studies/paper.toml over a scripted model: all tables of the report are read, cell by cell."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from sqlcrystal.config import StudyFile, read_study
from sqlcrystal.study.opening import run_study
from sqlcrystal.study.report.document import Document, make_document
from sqlcrystal.study.report.facts import Facts
from sqlcrystal.study.report.html import to_page
from sqlcrystal.study.report.table import NONE, ReportTable
from study_player import Player

PAPER = Path(__file__).parents[2] / "studies" / "paper.toml"
SHORT = ("bm25", "success", "CoT none", "W3")
"""Arms that are tried out under one seed alone."""
CAUSES = {
    "no database gained or lost": "the row says so in its last cell, or the table of contrasts does",
    "no memory": "what is compared with no memory has nothing to say of no memory itself, nor of its cards",
    "setting": "the arm is not measured in that setting",
    "exploratory": "Holm's adjustment is for confirmatory contrasts",
}
EMPTY = {
    ("cr-main", "Reference"): "a ratio has no value without memory",
    ("contrasts", "95% CI (CR2)"): CAUSES["no database gained or lost"],
    ("contrasts", "p"): CAUSES["no database gained or lost"],
    ("contrasts", "p (Holm)"): CAUSES["exploratory"],
    ("strength", "95% CI (two-stage bootstrap)"): CAUSES["no database gained or lost"],
    ("strength", "p (two-stage bootstrap)"): CAUSES["no database gained or lost"],
    ("strength", "Detectable (pp)"): CAUSES["no database gained or lost"],
    ("over-databases", "New database, 95%"): CAUSES["no database gained or lost"],
    ("flips", "McNemar p"): "a test is of pairs, not of questions or events",
    ("flips", "n"): "churn counts events",
    ("rq2-mechanism", "Reading"): "a diagnostic claims nothing",
    ("rq3-decisions", "Reading"): "the paper claims nothing here",
    ("windows", "Reading"): "the windows differ enough to tell",
    ("permuted", "Targeted"): CAUSES["no memory"],
    ("permuted", "Paired"): CAUSES["no memory"],
    ("mechanism-map", "Replay %"): CAUSES["setting"],
    ("writers", "Δ W0 (pp)"): "the default against itself",
    ("writers", "95% CI"): "the default against itself, or no database gained or lost",
    ("writers", "p"): "the default against itself, or no database gained or lost",
    ("writers", "Replay %"): CAUSES["setting"],
    ("writers", "Retention %"): CAUSES["setting"],
    ("matched-admission", "Cards (42/7/13)"): CAUSES["no memory"],
    ("matched-admission", "Right cards %"): CAUSES["no memory"],
    ("solvers", "Fixed/broke"): CAUSES["no memory"],
    ("solvers", "Δ without its cards (pp)"): CAUSES["no memory"],
    ("solvers", "After repair on signs, %"): CAUSES["setting"],
    ("equivalence", "p (TOST)"): CAUSES["no database gained or lost"],
    ("amortization", "Final %"): "an account of tokens",
    ("amortization", "Calls per question"): "an account of tokens",
    ("tokens", "Δ none"): CAUSES["no memory"],
    ("tokens", "Prompt tokens per pp"): "no lift to divide by",
    ("claim-audit", "95% CI (CR2)"): CAUSES["no database gained or lost"],
    ("claim-audit", "p"): CAUSES["no database gained or lost"],
    ("claim-audit", "p (Holm)"): CAUSES["exploratory"],
    ("leakage", "Lift without them (pp)"): "there are none by construction",
    ("leakage", "Pairs"): "both kinds above, together",
    ("adoption", "Share of all %"): "nothing broke",
    ("adoption", "Share of changed %"): "nothing broke",
    ("substitution", "Enrichment"): "a base rate of zero",
    ("break-even", "95% interval"): "recurring questions alone do not rest on the lift",
}
"""Columns in which a cell may be empty, and why."""


def small() -> StudyFile:
    """All arms of the paper on five databases of fourteen questions."""
    study = read_study(
        PAPER,
        [
            'benchmark={name="quarry", only=["clinic","freight","museum","orchard","telecom"], limit=14}',
            "recordings=[]",
        ],
    )
    arms = tuple(replace(arm, seeds=(42,)) if arm.name in SHORT else arm for arm in study.arm)
    return replace(study, arm=arms)


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    return Facts(run_study(small(), tmp_path_factory.mktemp("paper"), model=Player(), jobs=1).ledger)


@pytest.fixture(scope="module")
def document(facts: Facts) -> Document:
    return make_document([facts])


def cells(document: Document) -> Iterator[tuple[ReportTable, tuple[str, ...], str, str]]:
    """Every cell with its table, row and column; headings that span a table are left out."""
    for table in document.tables:
        for row in table.rows:
            if len(row) > 1:
                yield from ((table, row, column, cell) for column, cell in zip(table.columns, row, strict=True))


def may_be_empty(facts: Facts, table: ReportTable, row: tuple[str, ...], column: str) -> bool:
    name = row[0].partition(" (")[0]
    bare = name in facts.arms and not facts.arms[name].remembers
    not_run = name in facts.arms and "alone" not in name and re.fullmatch(r"s\d+", column) is not None
    return (
        (table.key, column) in EMPTY
        or (bare and column in ("Δ none (pp)", "CR (%)"))
        or (not_run and "preliminary" in row[0])
    )


def test_every_arm_of_the_paper_is_recorded(facts: Facts) -> None:
    assert facts.manifest.left_out == ()
    assert {row.arm for row in facts.ledger.outcomes} == set(facts.arms)


def test_no_cell_is_empty_without_a_cause(facts: Facts, document: Document) -> None:
    empty = {
        (table.key, column, row[0])
        for table, row, column, cell in cells(document)
        if cell in ("", NONE) and not may_be_empty(facts, table, row, column)
    }
    assert not empty


def test_no_cell_shows_what_a_program_would_print(document: Document) -> None:
    odd = [(table.key, cell) for table, _, _, cell in cells(document) if re.search(r"\b(nan|None|inf)\b", cell)]
    assert not odd


def test_figures_per_seed_are_as_many_as_their_heading_names(facts: Facts, document: Document) -> None:
    for table, _, column, cell in cells(document):
        named = re.search(r"\((\d+(?:/\d+)+)\)", column)
        if named and cell != NONE:
            assert cell.count("/") == named[1].count("/"), (table.key, column, cell)


def about_short(cell: str) -> bool:
    """Whether a row's first cell names an arm of one seed, and not another whose name begins alike."""
    beyond = r"(?![\w+=-]| k| payload| none| draw)"
    return any(re.search(rf"(?<![\w=+-]){re.escape(name)}{beyond}", cell) for name in SHORT)


def test_an_arm_of_fewer_seeds_is_called_preliminary_wherever_it_is_measured(document: Document) -> None:
    seen = 0
    for table in document.tables:
        heading = ""
        for row in table.rows if table.key not in ("arms", "instantiation") else ():
            heading = row[0] if len(row) == 1 else heading
            if len(row) > 1 and about_short(row[0]):
                seen += 1
                assert "preliminary" in " ".join((heading, *row)), (table.key, row)
    assert seen > 10


def test_notes_per_seed_name_the_seeds_that_were_run(document: Document) -> None:
    tables = {table.key: table for table in document.tables}
    assert tables["origin"].note.startswith("Per seed (42 alone), right only with W0:")
    [row] = [row for row in tables["substitution"].rows if row[0].startswith("CoT none")]
    assert row[0] == "CoT none (1 seed, preliminary)"
    assert row[3].endswith("/—/—")


def test_a_report_of_folds_never_speaks_of_seeds(tmp_path: Path) -> None:
    arms = tuple(replace(arm, seeds=()) for arm in small().arm)
    study = replace(small(), folds=3, seeds=(42,), arm=arms)
    study = replace(study, benchmark=replace(study.asked, only=("clinic", "orchard", "telecom"), limit=6))
    document = make_document([Facts(run_study(study, tmp_path, model=Player(), jobs=1).ledger)])
    page = to_page(document)
    said = [
        *(
            text
            for table in document.tables
            for text in (table.title, table.note, *table.columns, *sum(table.rows, ()))
        ),
        *(exhibit.heading for exhibit in document.gallery),
        *re.sub(r"<(style|svg).*?</\1>|<[^>]+>", " ", page, flags=re.DOTALL).splitlines(),
    ]
    spoken = [text for text in said if re.search(r"(?<!drawn with )\bseeds?\b", text, re.IGNORECASE)]
    assert not spoken
