"""What collecting yields, what a trigger rings for, and what two arms show alike."""

from types import SimpleNamespace
from typing import Any

import pytest

from sqlcrystal.measurement.cost import detector, headroom_reached, later_pass, repair_yield, vote_precision


def row(question: str, *, first: bool = False, right: bool = False, rounds: int = 0, **more: Any) -> Any:
    given = {"seed": 1, "calls": 1, "accepted": False}
    return SimpleNamespace(question=question, first_right=first, right=first or right, rounds=rounds, **(given | more))


def test_every_round_of_a_vote_elects_one_candidate() -> None:
    share = vote_precision([row("a", right=True, rounds=2), row("b", rounds=3), row("c", first=True)])
    assert (share.part, share.whole) == (1, 5)


def test_exploration_is_measured_on_the_questions_that_repair_was() -> None:
    repaired = [row("a", right=True), row("b", right=True), row("c", first=True)]
    explored = [row("a", right=True), row("b"), row("c", first=True), row("elsewhere", right=True)]
    assert headroom_reached(explored, repaired).percent == 50.0


@pytest.mark.parametrize("both_passes", [True, False])
def test_a_second_pass_is_told_from_the_first(both_passes: bool) -> None:
    first = [row("a", first=True), row("b", right=True), row("c")]
    again = [row("c", right=True)]
    later = later_pass([*first, *again] if both_passes else again, first)
    share = repair_yield(later)
    assert (share.part, share.whole) == (1, 1)


def test_a_detector_counts_alarms_and_what_the_gate_lets_through() -> None:
    rows = [
        row("caught", right=True, rounds=1, accepted=True, calls=3),
        row("caught in vain", rounds=1, calls=3),
        row("missed"),
        row("false alarm", first=True, rounds=1, accepted=True, calls=3),
        row("left alone", first=True),
    ]
    rows[3].right = False  # the gate accepted a candidate that is worse than the answer it replaced
    watched = detector(rows)
    assert watched is not None
    assert (watched.sensitivity.part, watched.sensitivity.whole) == (2, 3)
    assert (watched.false_alarms.part, watched.false_alarms.whole) == (1, 2)
    assert (watched.precision.part, watched.precision.whole) == (2, 3)
    assert (watched.accepted.part, watched.accepted_right.part, watched.broken) == (2, 1, 1)
    assert (watched.first.percent, watched.reached.percent, watched.calls) == (40.0, 40.0, 2.2)


def test_a_detector_tells_how_many_of_an_oracles_repairs_it_accepts_too() -> None:
    rows = [row("both", right=True, rounds=1, accepted=True), row("oracle alone", rounds=1), row("neither", rounds=1)]
    by_oracle = [row("both", right=True), row("oracle alone", right=True), row("neither"), row("not asked", right=True)]
    watched = detector(rows, by_oracle)
    assert watched is not None
    assert (watched.shared.part, watched.shared.whole) == (1, 2)
