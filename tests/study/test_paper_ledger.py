"""Every table and figure of the paper comes out of a study of its arms, and its own counts give its own numbers."""

import re

import pytest

from paper_counts import paper_facts
from sqlcrystal.measurement.settings import SeedCounts, crystallization_ratio
from sqlcrystal.study.report import cost_tables, value_tables
from sqlcrystal.study.report.catalogue import sections
from sqlcrystal.study.report.comparisons import ROSTER
from sqlcrystal.study.report.cost_tables import DEFAULT_WORKLOAD
from sqlcrystal.study.report.paper import published
from sqlcrystal.study.report.summary import summarize
from sqlcrystal.study.report.table import Body, ReportTable
from synthetic_ledger import synthetic_document

SEEDS = ("s42", "s7", "s13")
WRITERS = ("W0", "W1", "W2", "W3", "W4", "W5")
PAPER_TABLES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "tab:cr-main": (
        ("Reference", "With memory", "Summary"),
        ("Exact-query replay", "Cross-question retention", "Transfer EX", "CR, %"),
    ),
    "tab:amortization": (
        ("First attempt", "Final", "Calls"),
        (
            *("none: 1 repair round", "W0: 1 repair round", "none: 3 repair rounds (P_K)"),
            *("Construction, full / marginal", "Recurring overhead", "Prompt tokens per point", "Amortization horizon"),
        ),
    ),
    "tab:crosssections": (
        ("First try", "Repair rate", "Replay", "Δ transfer", "CR"),
        ("made-up-1.5b", "made-up-0.5b", "seed 42", "seed 7"),
    ),
    "tab:x-pk": (("Model", "Seed", "Floor of the pass", "P_K", "Gap", "n"), ("made-up-1.5b", "made-up-0.5b")),
    "tab:x-writers": (("Transfer EX", "Replay"), WRITERS),
    "tab:x-sources": (("Cards", "EX", "CR", "Replay"), ("T1", "W0=T1", "T2", "W0=T2", "T4", "W0=T4")),
    "tab:x-9b": (("EX", "CR", "Replay"), ("none", "W0", "W3+A", "W5")),
    "tab:x-kwriter": (("k", *SEEDS, "All seeds"), ("W0", "W3+A", "W5")),
    "tab:x-banksize": (("Cards", "k", *SEEDS, "All seeds"), ("25%", "50%", "75%", "100%")),
    "tab:x-controls": (
        (*SEEDS, "All seeds", "CR"),
        ("none", "foreign", "schema-similar", "random", "W0"),
    ),
    "tab:x-permuted": (
        ("Targeted", "Paired", *SEEDS, "All seeds", "Δ none"),
        ("none", "random", "permuted", "W0"),
    ),
    "tab:x-srcaxis": ((*SEEDS, "Δ none"), ("none", "success", "W0", "union")),
    "tab:x-matched-admission": (
        ("Cards", *SEEDS, "All seeds", "Δ none"),
        ("none", "success", "success=W0 draw 0", "success=W0 draw 1", "W0", "T4 ungated", "T4"),
    ),
    "tab:x-families": (
        ("Benchmark", "First try", "Repair rate", "none", "W0", "W3+A", "Floor replay", "W0 replay", "Seeds"),
        ("made-up-1.5b", "made-up-0.5b"),
    ),
    "tab:x-perdb": (("n", "Cards", "Floor", "Δ (pp)", "Net questions"), ("db_clinic", "db_observatory")),
    "tab:instantiation": (
        ("Default", "Arms that change it"),
        ("Episode source", "Verification", "Card format", "Retrieval", "Correspondence", "Measurement"),
    ),
    "tab:rq2-mechanism": (
        ("Factor", "Contrast", "Δ transfer pp [95% CI]; p", "Status", "Reading"),
        (
            *("Database locality", "Grounded content", "Content targeting", "Mispaired local content"),
            *("Residual correspondence", "Foreign-card diagnostic"),
        ),
    ),
    "tab:rq3-decisions": (
        ("Factor", "Contrast", "Δ transfer pp [95% CI]; p", "Status", "Reading"),
        ("Verification", "Episode source", "Card format", "Retrieval width", "Retriever"),
    ),
    "tab:mechmap": (
        ("Arm", "CR", "Δ none", "Replay"),
        (
            *("Corrected-query memory", "Distilled guidelines", "Guidelines without grounded anchors"),
            *("Self-consistency filtering", "Demonstration retrieval", "Untargeted recall"),
        ),
    ),
    "tab:x-audit": (
        ("Contrast", "Δ (pp)", "95% CI", "p", "Fixed/broke"),
        (
            "Memory",
            "Episode source",
            "Verification",
            "Card format",
            "Retrieval width",
            "Bank size",
            "Database locality",
        ),
    ),
    "tab:x-tokens": (("Prompt tokens", "Δ none", "Completion"), ("none", "k=1", "W0", "k=10", *WRITERS)),
    "tab:x-difficulty": (
        ("n pairs", "No memory", "Memory", "Lift", "Fixed/broke", "p"),
        ("seed 42", "seed 7", "seed 13", "simple", "moderate", "challenging"),
    ),
    "tab:x-data": (("Held out (all seeds)",), ("db_clinic", "db_observatory")),
}
"""The paper's 23 tables by their labels: the columns and rows a study's own table must have."""
SAID = {
    "votes": ("T4", "T4 ungated"),
    "exploration": ("explore, collection questions",),
    "second-pass": ("first pass", "second pass"),
    "equivalence": ("Card format", "Episode source"),
    "headroom": ("made-up-1.5b", "made-up-0.5b"),
    "contrasts": ("W0 − none", "mmr − bm25", "W3 payload − W3", "W5 payload − W5", "schema-similar − none"),
}
"""What the paper states in words, and the comparisons that no table of its own holds."""
PAPER_FIGURES = {"crystallization": 2, "mechanism": 1, "decisions": 1, "widths": 2}


def number(cell: str) -> float:
    return float(cell.replace("−", "-").replace(",", "").rstrip("%"))


def of_the_study(label: str) -> ReportTable:
    keys = {spec.paper: spec.key for specs in sections(DEFAULT_WORKLOAD).values() for spec in specs}
    return {table.key: table for table in synthetic_document().tables}[keys[label]]


def has(wanted: str, cells: tuple[str, ...]) -> bool:
    return any(cell == wanted or cell.startswith(f"{wanted} ") or cell.startswith(wanted) for cell in cells)


def test_the_catalogue_answers_to_the_papers_23_tables() -> None:
    labels = [spec.paper for specs in sections(DEFAULT_WORKLOAD).values() for spec in specs if spec.paper]
    assert sorted(labels) == sorted(PAPER_TABLES)
    assert len(labels) == 23


@pytest.mark.parametrize("label", PAPER_TABLES)
def test_a_study_of_the_papers_arms_has_each_of_its_tables_whole(label: str) -> None:
    columns, rows = PAPER_TABLES[label]
    table = of_the_study(label)
    assert [name for name in columns if not has(name, table.columns)] == []
    first = tuple(row[0] for row in table.rows)
    assert [name for name in rows if not has(name, first)] == []


def test_every_mechanism_names_the_prior_systems_that_the_paper_names_for_it() -> None:
    told = " ".join(row[0] for row in of_the_study("tab:mechmap").rows)
    assert [name for name in ("MemoSQL", "LPE-SQL", "MAGIC", "ORANGE", "DAIL-SQL") if name not in told] == []


@pytest.mark.parametrize("label", PAPER_TABLES)
def test_no_column_of_a_papers_table_is_empty(label: str) -> None:
    table = of_the_study(label)
    body = [row for row in table.rows if len(row) == len(table.columns)]
    empty = [name for place, name in enumerate(table.columns) if all(row[place] in ("", "—") for row in body)]
    assert empty == []


@pytest.mark.parametrize("key", SAID)
def test_what_the_paper_says_in_words_has_a_table(key: str) -> None:
    table = {candidate.key: candidate for candidate in synthetic_document().tables}[key]
    first = tuple(row[0] for row in table.rows)
    assert [name for name in SAID[key] if not has(name, first)] == []


def test_a_study_of_the_papers_arms_has_its_four_figures() -> None:
    drawn = {figure.key: figure for figure in synthetic_document().figures}
    assert {key: len(drawn[key].panels) for key in PAPER_FIGURES} == PAPER_FIGURES
    assert re.search(r"k=10 − k=1: \S+ pp, p \S+ \(pooled McNemar", drawn["widths"].caption)


def test_nothing_but_what_goes_beyond_the_paper_is_missing_from_its_arms() -> None:
    beyond = ["ingredients", "solvers", "served", "readings", "confidence", "paraphrase", "dialogue", "known"]
    beyond += ["ingredients", "engine", "cause", "cause-cards", "retirement"]
    assert [absent.key for absent in synthetic_document().absent] == beyond


# ── the paper's counts through the code that makes the tables ────────────────────────────────────────────────────────


def test_the_published_databases_give_the_published_table() -> None:
    table = value_tables.per_database(paper_facts())
    assert isinstance(table, Body)
    assert [row[:6] for row in table.rows] == [tuple(row) for row in published().table["per-database"].rows]
    assert "10 of 11 databases gain" in table.note
    assert "The top three carry 48% of the net gain" in table.note
    assert "Pearson r = +0.18" in table.note


def test_the_published_counts_give_the_published_headline() -> None:
    summary, theirs = summarize(paper_facts()), published().headline
    assert (summary.fixed, summary.broke, summary.n_heldout) == (theirs.fixed, theirs.broke, theirs.n_heldout)
    assert summary.p0 == pytest.approx(theirs.p0, abs=0.005)
    assert summary.pm == pytest.approx(theirs.pm, abs=0.005)
    assert summary.lift_pp == pytest.approx(theirs.lift_pp, abs=0.005)
    assert summary.cr == pytest.approx(theirs.cr, abs=0.05)


def test_the_published_seeds_give_the_published_headroom() -> None:
    table = value_tables.headroom([paper_facts()])
    assert table is not None
    gaps = {row[2]: row[5] for row in table.rows}
    assert gaps == {"42": "9.98", "7": "9.54", "13": "9.76"}
    ratios = [
        SeedCounts(n=s.n, floor=s.floor, memory=s.memory, repaired=s.floor + s.headroom, repair_floor=s.floor)
        for s in published().seed
    ]
    assert [number(row[7]) for row in table.rows] == [
        pytest.approx(ratio, abs=0.05) for ratio in crystallization_ratio(seeds=ratios).per_seed
    ]


def test_the_published_strata_give_the_published_difficulty_table() -> None:
    table = value_tables.difficulty(paper_facts())
    assert table is not None
    rows = {row[0]: row for row in table.rows}
    assert {name: rows[name][5] for name in ("simple", "moderate", "challenging")} == {
        "simple": "60/37",
        "moderate": "51/25",
        "challenging": "16/5",
    }
    assert [rows[name][6] for name in ("simple", "moderate", "challenging")] == [".025", ".0038", ".027"]


def test_the_published_prompts_give_the_published_overheads() -> None:
    table = cost_tables.tokens(paper_facts())
    assert table is not None
    overhead = {row[0]: row[3] for row in table.rows if len(row) > 1}
    assert [overhead[arm] for arm in ("k=1", "W0", "k=10")] == ["+139", "+604", "+1092"]


@pytest.mark.parametrize("key", ["controls", "width-writer", "bank-width"])
def test_published_means_follow_from_their_seeds(key: str) -> None:
    table = published().table[key]
    first, mean = table.columns.index("s42"), table.columns.index("Mean")
    for row in table.rows:
        assert sum(number(cell) for cell in row[first : first + 3]) / 3 == pytest.approx(number(row[mean]), abs=0.1)


def test_every_published_comparison_is_one_a_study_can_make() -> None:
    assert {comparison.key for comparison in published().comparison} <= set(ROSTER)


def test_every_row_of_a_published_table_has_its_columns() -> None:
    for key, table in published().table.items():
        assert all(len(row) in (1, len(table.columns)) for row in table.rows), key


def test_every_published_table_stands_under_one_of_the_studys() -> None:
    assert set(published().table) <= {table.key for table in synthetic_document().tables}


def test_the_study_is_printed_beside_the_paper() -> None:
    beside = synthetic_document().against
    assert beside is not None
    rows = {row[0]: row[1:] for row in beside.rows if len(row) > 1}
    assert rows["CR %"][1].startswith("44.4")
    assert rows["Exact-query replay %"][1] == "96.1"
    width = next(cells for name, cells in rows.items() if name.endswith("k=10 − k=1"))
    assert re.match(r"[+−]\d", width[0])
    assert width[1] == "+3.18 [+1.09, +5.35]"
