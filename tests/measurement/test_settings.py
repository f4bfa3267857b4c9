"""The settings are counted apart, and the paper's ratio comes out of the paper's counts."""

import pytest

from sqlcrystal.errors import DataError
from sqlcrystal.ledger.records import Outcome
from sqlcrystal.measurement.settings import accuracy, held_out, measure

SEEDS = (42, 7, 13)
N = 461


def answers(setting: str, right: tuple[int, ...], first: tuple[int, ...] | None = None) -> list[Outcome]:
    """So many right answers of 461 for each seed, and so many right first attempts."""
    return [
        Outcome(
            arm="",
            setting=setting,
            seed=seed,
            question=str(number),
            database=f"db{number % 11}",
            difficulty="",
            right=number < count,
            first_right=number < before,
            rules={"bird": number < count, "subset": number < count + 1},
            kind="match" if number < count else "mismatch",
            sql="SELECT 1",
        )
        for seed, count, before in zip(SEEDS, right, first or right, strict=True)
        for number in range(N)
    ]


FLOOR = answers("transfer", (283, 291, 284))
MEMORY = answers("transfer", (304, 308, 306))
REPAIRED = answers("repair", (283 + 46, 291 + 44, 284 + 45), (283, 291, 284))


def test_the_papers_counts_give_the_papers_ratio() -> None:
    measured = measure(floor=FLOOR, memory=MEMORY, repaired=REPAIRED)
    assert measured.ratio is not None
    assert [round(ratio or 0, 1) for ratio in measured.ratio.per_seed] == [45.7, 38.6, 48.9]
    assert round(measured.ratio.mean or 0, 1) == round(measured.ratio.pooled or 0, 1) == 44.4
    assert round(measured.ratio.lift_pp, 2) == 4.34
    assert round(measured.floor.percent or 0, 2) == 62.04
    assert round(measured.memory.percent or 0, 2) == 66.38


def test_the_headroom_is_taken_within_the_repair_pass() -> None:
    drifted = answers("repair", (283 + 46, 291 + 44, 284 + 45), (281, 290, 286))
    ratio = measure(floor=FLOOR, memory=MEMORY, repaired=drifted).ratio
    assert ratio is not None
    assert ratio.per_seed[0] == pytest.approx(100 * 21 / 48)


def test_without_headroom_the_ratio_is_undefined_and_the_lift_remains() -> None:
    ratio = measure(floor=FLOOR, memory=MEMORY, repaired=FLOOR).ratio
    assert ratio is not None
    assert (ratio.pooled, ratio.mean) == (None, None)
    assert round(ratio.lift_pp, 2) == 4.34


def test_an_unevaluable_answer_is_wrong_and_left_out_of_the_evaluable_only_figure() -> None:
    rows = answers("transfer", (2, 0, 0))[:4]
    rows[3] = Outcome(**{name: getattr(rows[3], name) for name in rows[3].__struct_fields__} | {"kind": "unevaluable"})
    share = accuracy(rows)
    assert share.percent == 50.0
    assert share.percent_evaluable == pytest.approx(200 / 3)


def test_every_rule_is_counted_beside_the_headline() -> None:
    floor, memory = measure(floor=FLOOR, memory=MEMORY).by_rule["subset"]
    assert (floor.right, memory.right) == (283 + 291 + 284 + 3, 304 + 308 + 306 + 3)


def test_a_setting_that_was_not_measured_has_no_accuracy() -> None:
    measured = measure(floor=FLOOR, memory=MEMORY)
    assert measured.replay.percent is None
    assert measured.ratio is None


def test_passes_over_different_questions_are_refused() -> None:
    with pytest.raises(DataError, match="do not answer the same questions"):
        held_out(floor=FLOOR, memory=MEMORY[1:], repaired=REPAIRED)


def test_the_three_passes_are_set_side_by_side() -> None:
    rows = held_out(floor=FLOOR, memory=MEMORY, repaired=REPAIRED)
    assert len(rows) == 3 * N
    assert sum(row.memory - row.floor for row in rows) == 60
    assert sum(row.repaired - row.repair_floor for row in rows) == 135
