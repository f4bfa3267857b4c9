"""When memory has paid for itself, and how sure that is."""

import numpy as np
import pytest

from sqlcrystal.measurement.cost import BreakEven, Workload, WorkloadLift, break_even, workload_lift
from sqlcrystal.measurement.outcomes import PairedOutcomes, paired
from sqlcrystal.measurement.statistics import difference

WORKLOAD = Workload(recurrence=0.25, value_per_correct=0.01, prompt_price=0.1, completion_price=0.4)


def paid_back(lift: WorkloadLift | None = None, *, transfer: float = 0.04, tokens: float = 1_000_000) -> BreakEven:
    return break_even(
        workload=WORKLOAD,
        transfer_lift=transfer,
        replay_lift=0.9,
        overhead_prompt_tokens=600,
        construction_prompt_tokens=tokens,
        construction_completion_tokens=0,
        lift=lift,
    )


def outcomes(fixes: tuple[int, ...], questions: int) -> PairedOutcomes:
    return paired(
        (f"d{group}", f"q{question}", "1", 0, int(question < fixed))
        for group, fixed in enumerate(fixes)
        for question in range(questions)
    )


def test_a_query_begun_is_a_query_needed() -> None:
    net = (0.25 * 0.9 + 0.75 * 0.04) * 0.01 - 600 * 0.1 / 1e6
    assert paid_back().queries == int(0.1 / net) + 1
    assert isinstance(paid_back().queries, int)


def test_the_interval_of_the_lift_becomes_one_of_the_break_even() -> None:
    payback = paid_back(WorkloadLift(value_pp=25.5, low_pp=5.0, high_pp=40.0))
    assert payback.earliest is not None
    assert payback.queries is not None
    assert payback.latest is not None
    assert payback.earliest < payback.queries < payback.latest


def test_a_lift_that_may_be_nothing_may_never_pay_back() -> None:
    payback = paid_back(WorkloadLift(value_pp=5.0, low_pp=-1.0, high_pp=9.0))
    assert payback.latest is None
    assert payback.earliest is not None


def test_a_workload_of_new_questions_only_has_the_interval_of_transfer() -> None:
    transfer, replay = outcomes((1, 3, 2, 6), 20), outcomes((5, 4, 6, 5), 7)
    alone = difference(outcomes=transfer, rng=np.random.default_rng(0))
    mixed = workload_lift(transfer=transfer, replay=replay, recurrence=0.0)
    assert (mixed.value_pp, mixed.low_pp, mixed.high_pp) == pytest.approx((alone.value, alone.low, alone.high))


def test_a_mixed_workload_lies_between_its_parts() -> None:
    transfer, replay = outcomes((1, 3, 2, 6), 20), outcomes((5, 4, 6, 5), 7)
    mixed = workload_lift(transfer=transfer, replay=replay, recurrence=0.5)
    assert mixed.value_pp == pytest.approx((100 * 12 / 80 + 100 * 20 / 28) / 2)
    assert (mixed.low_pp or 0) < mixed.value_pp < (mixed.high_pp or 0)


def test_too_few_databases_say_so() -> None:
    mixed = workload_lift(transfer=outcomes((1, 3, 2), 20), replay=outcomes((5, 4), 7), recurrence=0.5)
    assert mixed.low_pp is None
    assert "2 databases" in mixed.undefined
