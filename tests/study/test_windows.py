"""Windows in the open: a null result that was built in is called so."""

from collections.abc import Callable

import msgspec

from sqlcrystal.ledger.records import Ledger, Outcome
from sqlcrystal.study.report import arm_rows, mechanism_tables
from sqlcrystal.study.report.facts import Facts
from synthetic_ledger import synthetic_ledger

ARMS = ("none", "W0", "random", "k=1", "k=10", "permuted")


def table(ledger: Ledger) -> dict[str, dict[str, str]]:
    made = arm_rows.window_table(Facts(ledger))
    assert made is not None
    return {row[0]: dict(zip(made.columns, row, strict=True)) for row in made.rows}


def with_windows(change: Callable[[Outcome], Outcome]) -> Ledger:
    ledger = synthetic_ledger(only=ARMS)
    return msgspec.structs.replace(ledger, outcomes=tuple(map(change, ledger.outcomes)))


def windows_of_the_default(share: int) -> Ledger:
    """The study with so many of ten random windows replaced by the default's."""
    own = {(row.seed, row.question): row.cards for row in synthetic_ledger(only=ARMS).of("W0", "transfer")}

    def change(row: Outcome) -> Outcome:
        if row.arm != "random" or int(row.question.rsplit("-", 1)[1]) % 10 >= share:
            return row
        return msgspec.structs.replace(row, cards=own[row.seed, row.question][::-1])

    return with_windows(change)


def test_every_pair_of_arms_that_choose_from_one_bank_has_its_windows_compared() -> None:
    assert set(table(synthetic_ledger(only=ARMS))) == {"W0 − random", "k=10 − k=1", "k=10 − W0"}


def test_the_cards_to_choose_from_and_the_most_shown_are_counted() -> None:
    row = table(synthetic_ledger(only=ARMS))["k=10 − k=1"]
    assert row["Most shown"] == "6 and 1"  # ten cards were asked for, and no bank holds more than six
    assert row["Cards to choose from"].endswith(", 6, 6")


def test_a_comparison_of_equal_windows_is_null_by_construction() -> None:
    row = table(windows_of_the_default(10))["W0 − random"]
    assert row["Same window %"] == "100"
    assert row["Reading"] == "null by construction: both arms show the same cards"


def test_a_comparison_of_mostly_equal_windows_is_called_so() -> None:
    row = table(windows_of_the_default(8))["W0 − random"]
    assert row["Reading"] == "largely null by construction: most windows are the same"


def test_the_reading_of_a_comparison_says_that_its_null_was_built_in() -> None:
    made = mechanism_tables.rq2(Facts(windows_of_the_default(10)))
    assert made is not None
    readings = {row[2]: row[5] for row in made.rows}
    assert readings["W0 − random"] == "Null by construction: both arms show the same cards (100%)."
