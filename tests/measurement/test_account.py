"""The cost account: calls as they were made, and what is imputed said to be so."""

from types import SimpleNamespace
from typing import Any

import pytest

from sqlcrystal.measurement.cost import after_rounds, construction, repair_overhead


def row(*, right: bool, first: bool, round_calls: tuple[int, ...] = (), **more: Any) -> Any:
    given = {"seed": 1, "question": "q", "database": "d", "rounds": len(round_calls), "probes": 0}
    given |= {"calls": 1 + sum(round_calls), "prompt_tokens": 100, "completion_tokens": 10}
    return SimpleNamespace(right=right, first_right=first, round_calls=round_calls, **(given | more))


def test_a_shorter_pass_has_the_calls_of_its_own_rounds() -> None:
    rows = [row(right=True, first=False, round_calls=(5, 1, 1)), row(right=True, first=True)]
    stopped = after_rounds(rows, 1)
    assert stopped is not None
    assert stopped.calls == pytest.approx((6 + 1) / 2)
    assert (stopped.final, stopped.imputed_share) == (50.0, 0.0)


def test_calls_that_were_not_kept_by_round_are_shared_out_and_said_to_be() -> None:
    stopped = after_rounds([row(right=True, first=False, round_calls=(), rounds=3, calls=7)], 1)
    assert stopped is not None
    assert (stopped.calls, stopped.imputed_share) == (3.0, 100.0)


def test_a_repair_stopped_early_has_not_reached_what_came_later() -> None:
    rows = [row(right=True, first=False, round_calls=(2, 2))]
    assert [stopped.final for limit in (1, 2) if (stopped := after_rounds(rows, limit))] == [0.0, 100.0]


def test_a_first_attempt_that_nobody_measured_is_imputed_and_counted() -> None:
    rows = [row(right=True, first=True), row(right=True, first=False, round_calls=(2,), prompt_tokens=400)]
    built = construction(rows, first_attempts={})
    assert built is not None
    assert (built.marginal_prompt, built.imputed_share) == (300.0, 100.0)


def test_overhead_is_taken_question_by_question() -> None:
    before = [row(right=False, first=False), row(right=True, first=True, question="other")]
    after = [row(right=True, first=False, round_calls=(2,), prompt_tokens=300, completion_tokens=30)]
    assert repair_overhead(before, after) == (200.0, 20.0)
