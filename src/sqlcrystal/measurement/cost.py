"""The cost account: calls, tokens, the amortization horizon, and the break-even for a workload of one's own."""

from msgspec import Struct


class Workload(Struct, frozen=True, kw_only=True):
    """What the user expects of the future; every figure is an assumption and is printed with the result."""

    recurrence: float
    """Share of future questions that repeat a banked one."""
    value_per_correct: float
    """What one more right answer is worth, in the currency of the prices."""
    prompt_price: float
    """Price of a million prompt tokens."""
    completion_price: float
    """Price of a million completion tokens."""


class BreakEven(Struct, frozen=True, kw_only=True):
    """After how many future questions memory has paid for itself; None when it never does."""

    queries: float | None
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
) -> BreakEven:
    """Queries until memory has paid back, for the user's recurrence rate and prices; lifts are shares, not points."""
    per_prompt, per_completion = workload.prompt_price / 1e6, workload.completion_price / 1e6
    lift = workload.recurrence * replay_lift + (1 - workload.recurrence) * transfer_lift
    gain = lift * workload.value_per_correct
    overhead = overhead_prompt_tokens * per_prompt
    construction = construction_prompt_tokens * per_prompt + construction_completion_tokens * per_completion
    net = gain - overhead
    return BreakEven(
        queries=construction / net if net > 0 else None,
        gain_per_query=gain,
        overhead_per_query=overhead,
        construction=construction,
        assumptions=workload,
    )
