"""The published figures agree with each other and with what a study generates."""

import re

import pytest

from sqlcrystal.measurement.ratio import SeedCounts, crystallization_ratio
from sqlcrystal.study.report.comparisons import ROSTER
from sqlcrystal.study.report.paper import published
from synthetic_ledger import synthetic_document

TABLES = {
    *("cr-main", "amortization", "cross-sections", "headroom", "writers", "sources", "second-model", "width-writer"),
    *("bank-width", "controls", "permuted", "origin", "matched-admission", "families", "per-database", "tokens"),
    *("difficulty", "data", "claim-audit", "mechanism-map", "rq2-mechanism", "rq3-decisions"),
}


def number(cell: str) -> float:
    return float(cell.replace("−", "-").replace(",", "").rstrip("%"))


def test_the_published_seeds_give_the_published_headline() -> None:
    paper = published()
    seeds = [
        SeedCounts(n=s.n, floor=s.floor, memory=s.memory, repaired=s.floor + s.headroom, repair_floor=s.floor)
        for s in paper.seed
    ]
    found = crystallization_ratio(seeds=seeds)
    pairs = sum(seed.n for seed in seeds)
    assert found.mean == pytest.approx(paper.headline.cr, abs=0.05)
    assert found.lift_pp == pytest.approx(paper.headline.lift_pp, abs=0.005)
    assert 100 * sum(seed.floor for seed in seeds) / pairs == pytest.approx(paper.headline.p0, abs=0.005)
    assert 100 * sum(seed.memory for seed in seeds) / pairs == pytest.approx(paper.headline.pm, abs=0.005)
    assert (pairs, paper.headline.fixed - paper.headline.broke) == (
        paper.headline.n_heldout,
        sum(s.lift for s in seeds),
    )


def test_the_published_databases_add_up_to_the_published_net_gain() -> None:
    rows = published().table["per-database"].rows
    assert sum(number(row[5]) for row in rows) == published().headline.fixed - published().headline.broke
    assert sum(number(row[1]) for row in rows) == published().headline.n_heldout
    for row in rows:
        assert 100 * number(row[5]) / number(row[1]) == pytest.approx(number(row[4]), abs=0.005)


@pytest.mark.parametrize("key", ["controls", "width-writer", "bank-width"])
def test_published_means_follow_from_their_seeds(key: str) -> None:
    table = published().table[key]
    first, mean = table.columns.index("s42"), table.columns.index("Mean")
    for row in table.rows:
        assert sum(number(cell) for cell in row[first : first + 3]) / 3 == pytest.approx(number(row[mean]), abs=0.1)


def test_every_published_comparison_is_one_a_study_can_make() -> None:
    assert {one.key for one in published().comparison} <= {plan.key for plan in ROSTER}


def test_every_row_of_a_published_table_has_its_columns() -> None:
    for key, table in published().table.items():
        assert all(len(row) in (1, len(table.columns)) for row in table.rows), key


def test_a_study_with_all_arms_generates_every_table_the_paper_has() -> None:
    made = {table.key for table in synthetic_document().tables}
    assert made >= TABLES
    assert set(published().table) <= made
    assert set(published().table) >= TABLES
    assert synthetic_document().absent == ()


def test_the_study_is_printed_beside_the_paper() -> None:
    beside = synthetic_document().against
    assert beside is not None
    rows = {row[0]: row[1:] for row in beside.rows if len(row) > 1}
    assert rows["CR %"][1].startswith("44.4")
    assert rows["Exact-query replay %"][1] == "96.1"
    assert re.match(r"[+−]\d", rows["k=10 − k=1"][0])
    assert rows["k=10 − k=1"][1] == "+3.18 [+1.09, +5.35]"
