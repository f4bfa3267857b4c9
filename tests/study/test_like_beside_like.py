"""Tables of a study whose arms were not all run under the same seeds: no column compares one seed with three."""

import msgspec
import pytest

from sqlcrystal.ledger.records import Ledger
from sqlcrystal.study.report import audit_tables, decision_tables, design_tables, mechanism_tables
from sqlcrystal.study.report.arm_rows import cards_per_seed
from sqlcrystal.study.report.document import make_document
from sqlcrystal.study.report.facts import Facts, percent_right
from sqlcrystal.study.report.table import Body
from synthetic_ledger import SEEDS, synthetic_ledger

ARMS = ("none", "W0", "random", "W3", "k=1", "k=3", "k=10", "bank 50%", "T1", "W0=T1")
TRIED = ("random", "W3", "k=3", "bank 50%")
"""Arms that were run under the first seed only."""


def tried_out() -> Ledger:
    ledger = synthetic_ledger(only=ARMS)
    outcomes = tuple(row for row in ledger.outcomes if row.arm not in TRIED or row.seed == SEEDS[0])
    cards = tuple(card for card in ledger.cards if card.arm not in TRIED or card.seed == SEEDS[0])
    return msgspec.structs.replace(ledger, outcomes=outcomes, cards=cards)


@pytest.fixture(scope="module")
def facts() -> Facts:
    return Facts(tried_out())


def below_the_heading(table: Body | None) -> list[tuple[str, ...]]:
    """The rows of the arms that were tried out under one seed."""
    assert table is not None
    [place] = [index for index, row in enumerate(table.rows) if len(row) == 1 and "alone, preliminary" in row[0]]
    return list(table.rows[place + 1 :])


def test_an_arm_of_one_seed_stands_beside_the_baseline_of_that_seed(facts: Facts) -> None:
    rows = below_the_heading(mechanism_tables.controls(facts))
    assert [row[0].split(" (")[0] for row in rows] == ["none", "W0", "random"]
    first = [answer for answer in facts.rows(facts.bare) if answer.seed == SEEDS[0]]
    assert rows[0][1:5] == (f"{percent_right(first):.1f}", "—", "—", f"{percent_right(first):.1f}")


@pytest.mark.parametrize(
    "build",
    [
        mechanism_tables.controls,
        decision_tables.writers,
        decision_tables.width_by_writer,
        decision_tables.bank_by_width,
        audit_tables.card_usage,
    ],
)
def test_arms_of_fewer_seeds_have_a_heading_of_their_own(facts: Facts, build: object) -> None:
    assert below_the_heading(build(facts))  # type: ignore[operator]


def test_every_table_says_of_an_arm_of_one_seed_that_it_is_preliminary(facts: Facts) -> None:
    silent = [
        (table.key, row)
        for table in make_document([facts]).tables
        if table.key not in ("arms", "instantiation")
        for place, row in enumerate(table.rows)
        if any(name in cell.split() for cell in row[:3] for name in ("random", "W3"))
        if "preliminary" not in " ".join(" ".join(above) for above in table.rows[: place + 1] if len(above) == 1)
        and "preliminary" not in " ".join(row)
    ]
    assert silent == []


def test_a_seed_that_was_not_run_has_no_cards_rather_than_none(facts: Facts) -> None:
    assert cards_per_seed(facts, facts.arms["bank 50%"]) == "28/—/—"


def test_card_use_counts_the_seeds_that_ran(facts: Facts) -> None:
    rows = {row[0]: row for row in below_the_heading(audit_tables.card_usage(facts))}
    assert rows["k=3"][1] == str(len(facts.bank(facts.default, SEEDS[0])))
    assert "–" not in "".join(rows["k=3"][3:])


def test_banks_that_were_to_be_equal_and_are_not_are_told(facts: Facts) -> None:
    ledger = tried_out()
    fewer = tuple(card for card in ledger.cards if card.arm != "W0=T1" or card.database != "db_clinic")
    table = decision_tables.sources(Facts(msgspec.structs.replace(ledger, cards=fewer)))
    assert table is not None
    assert "The card counts of T1 (56/57/55) and W0=T1 (50/51/49) are not equal." in table.note
    equal = decision_tables.sources(facts)
    assert equal is not None
    assert "not equal" not in equal.note


def test_the_seeds_of_another_benchmark_print_what_their_columns_say() -> None:
    runs = [Facts(synthetic_ledger(only=("none", "W0"), benchmark=name)) for name in ("first", "second")]
    table = design_tables.cross_sections(runs)
    assert table is not None
    rows = {row[0]: row for row in table.rows}
    alone = runs[1].on([SEEDS[0]])
    lift = alone.compare(alone.bare, alone.default)
    assert lift is not None
    assert rows[f"seed {SEEDS[0]}"][table.columns.index("Δ transfer (pp)")] == f"{lift.delta_pp:+.1f}".replace("-", "−")
    assert rows[f"seed {SEEDS[0]}"][table.columns.index("Seeds")] == "1, preliminary"
