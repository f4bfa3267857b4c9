"""The cost account: calls, tokens, the amortization horizon, and the break-even for a workload of one's own."""

from math import ceil

import numpy as np
from msgspec import Struct

from sqlcrystal.measurement import clusters
from sqlcrystal.measurement.intervals import student
from sqlcrystal.measurement.outcomes import PairedOutcomes


class Workload(Struct, frozen=True, kw_only=True):
    """The user's expectations of the future; every figure is an assumption and is printed with the result."""

    recurrence: float
    """Share of future questions that repeat a banked one."""
    value_per_correct: float
    """What one more right answer is worth, in the currency of the prices."""
    prompt_price: float
    """Price of a million prompt tokens."""
    completion_price: float
    """Price of a million completion tokens."""


class WorkloadLift(Struct, frozen=True, kw_only=True):
    """The lift on a workload of recurring and new questions, in points, with a 95 % interval over databases."""

    value_pp: float
    low_pp: float | None
    high_pp: float | None
    undefined: str = ""


class BreakEven(Struct, frozen=True, kw_only=True):
    """After how many future questions, rounded up, memory has paid for itself; None when it never does."""

    queries: int | None
    earliest: int | None = None
    """At the upper end of the lift's interval."""
    latest: int | None = None
    """At the lower end; None where it never pays back there."""
    has_interval: bool = False
    """Whether the lift has one; without it, neither end says anything."""
    gain_per_query: float
    overhead_per_query: float
    construction: float
    assumptions: Workload


def amortization_horizon(*, construction_tokens: float, overhead_tokens: float) -> float | None:
    """Future queries after which the recurring prompt overhead equals what construction cost; a token account only."""
    return construction_tokens / overhead_tokens if overhead_tokens > 0 else None


def tokens_per_point(*, tokens_per_query: float, lift_pp: float) -> float | None:
    """Recurring tokens paid per query for one percentage point of accuracy."""
    return tokens_per_query / lift_pp if lift_pp > 0 else None


def headroom_share(*, floor: float, reached: float, ceiling: float) -> float | None:
    """Percent of the way from floor to ceiling."""
    return 100 * (reached - floor) / (ceiling - floor) if ceiling > floor else None


def break_even(
    *,
    workload: Workload,
    transfer_lift: float,
    replay_lift: float,
    overhead_prompt_tokens: float,
    construction_prompt_tokens: float,
    construction_completion_tokens: float,
    lift: WorkloadLift | None = None,
) -> BreakEven:
    """Queries until memory has paid back, for the user's recurrence rate and prices; lifts are shares, not points.

    With `lift`, the same workload's lift with its interval, the answer has an interval too.
    """
    per_prompt, per_completion = workload.prompt_price / 1e6, workload.completion_price / 1e6
    expected = workload.recurrence * replay_lift + (1 - workload.recurrence) * transfer_lift
    gain = expected * workload.value_per_correct
    overhead = overhead_prompt_tokens * per_prompt
    construction = construction_prompt_tokens * per_prompt + construction_completion_tokens * per_completion

    def queries(share: float | None) -> int | None:
        net = (share or 0.0) * workload.value_per_correct - overhead
        return ceil(construction / net) if share is not None and net > 0 else None

    return BreakEven(
        queries=queries(expected),
        earliest=queries(lift.high_pp / 100 if lift and lift.high_pp is not None else None),
        latest=queries(lift.low_pp / 100 if lift and lift.low_pp is not None else None),
        has_interval=lift is not None and lift.low_pp is not None,
        gain_per_query=gain,
        overhead_per_query=overhead,
        construction=construction,
        assumptions=workload,
    )


def workload_lift(*, transfer: PairedOutcomes, replay: PairedOutcomes, recurrence: float) -> WorkloadLift:
    """The lift over a workload: recurring questions gain what replay gains, new ones what transfer does.

    Both lifts come from the same databases, so their errors go together: a CR2 variance of the weighted sum.
    """
    tables = (replay.differences, transfer.differences)
    names = sorted({name for table in tables for name in table.names})
    sums, sizes = np.zeros((2, len(names))), np.zeros((2, len(names)))
    for row, table in enumerate(tables):
        places = [names.index(name) for name in table.names]
        sums[row, places], sizes[row, places] = table.totals.T
    weights = np.array([recurrence, 1 - recurrence])
    value = float(weights @ (sums.sum(axis=1) / sizes.sum(axis=1)))
    fewest = min(int((row > 0).sum()) for row in sizes)
    if fewest < clusters.FEWEST_DATABASES:
        why = f"no interval: {fewest} databases have questions of both kinds, and it takes at least three"
        return WorkloadLift(value_pp=value, low_pp=None, high_pp=None, undefined=why)
    parts = weights @ clusters.cr2(sums, sizes)
    if not np.abs(parts).max() > clusters.NO_SPREAD:
        why = "no interval: every database moved by the same amount"
        return WorkloadLift(value_pp=value, low_pp=None, high_pp=None, undefined=why)
    ends = student(value, parts, float(clusters.satterthwaite(sizes=sizes, weights=weights)))
    return WorkloadLift(value_pp=value, low_pp=ends.low, high_pp=ends.high)
