"""The cost account: the yield of collecting, calls and tokens, building the bank and serving from it, break-even."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import ceil
from statistics import fmean
from typing import Protocol

import numpy as np
from msgspec import Struct

from sqlcrystal.measurement import clusters
from sqlcrystal.measurement.clusters import student
from sqlcrystal.measurement.outcomes import JudgedQuestion, PairedOutcomes, RepairedQuestion


class Workload(Struct, frozen=True, kw_only=True):
    """The user's expectations of the future; every figure is an assumption and is printed with the result."""

    recurrence: float
    """Share of future questions that repeat a banked one."""
    value_per_correct: float
    """The worth of one more right answer, in the currency of the prices."""
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
    """True if the lift has one; without it, neither end says anything."""
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


Tokens = tuple[float, float]
"""Of the prompt and of the completion."""


class Spent(JudgedQuestion, RepairedQuestion, Protocol):
    """One answered question with what it cost, whatever record holds it."""

    @property
    def calls(self) -> int: ...
    @property
    def round_calls(self) -> tuple[int, ...]: ...
    @property
    def probes(self) -> int: ...
    @property
    def prompt_tokens(self) -> int: ...
    @property
    def completion_tokens(self) -> int: ...


class Serving(Struct, frozen=True, kw_only=True):
    """The average cost of one question under a configuration."""

    n: int
    calls: float
    prompt: float
    completion: float

    @property
    def total(self) -> float:
        """Tokens of prompt and completion."""
        return self.prompt + self.completion


class Construction(Struct, frozen=True, kw_only=True):
    """The cost of building a bank, per seed; marginal leaves out the first attempts, which serving makes anyway."""

    prompt: float
    completion: float
    marginal_prompt: float
    marginal_completion: float
    calls: float
    probes: float
    questions: float
    imputed_share: float
    """Share of repaired questions whose first attempt is taken from the mean of its database, in percent."""

    @property
    def full(self) -> float:
        """All tokens."""
        return self.prompt + self.completion

    @property
    def marginal(self) -> float:
        """Tokens beyond the first attempts."""
        return self.marginal_prompt + self.marginal_completion


class Rounds(Struct, frozen=True, kw_only=True):
    """A repair pass stopped after so many rounds; accuracies in percent."""

    first: float
    final: float
    calls: float
    imputed_share: float
    """Share of the repaired questions whose calls per round were not recorded and are taken as equal, in percent."""


def serving(rows: Sequence[Spent]) -> Serving | None:
    """Mean calls and tokens per question."""
    if not rows:
        return None
    return Serving(
        n=len(rows),
        calls=fmean(row.calls for row in rows),
        prompt=fmean(row.prompt_tokens for row in rows),
        completion=fmean(row.completion_tokens for row in rows),
    )


def after_rounds(rows: Sequence[Spent], limit: int) -> Rounds | None:
    """The repair pass as if it had stopped after `limit` rounds: greedy repair makes the shorter pass a prefix."""
    if not rows:
        return None
    repaired = [row for row in rows if row.rounds]
    guessed = sum(not _rounds_known(row) for row in repaired)
    return Rounds(
        first=100 * fmean(row.first_right for row in rows),
        final=100 * fmean(row.first_right or (row.right and row.rounds <= limit) for row in rows),
        calls=fmean(_calls_until(row, limit) for row in rows),
        imputed_share=100 * guessed / len(repaired) if repaired else 0.0,
    )


def _rounds_known(row: Spent) -> bool:
    return len(row.round_calls) == row.rounds


def _calls_until(row: Spent, limit: int) -> float:
    """The first attempt's calls and those of the first rounds, as they were where the ledger kept them."""
    if _rounds_known(row):
        return row.calls - sum(row.round_calls[limit:])
    return 1 + (row.calls - 1) * min(row.rounds, limit) / row.rounds


def construction(rows: Sequence[Spent], *, first_attempts: Mapping[str, Tokens]) -> Construction | None:
    """Add up the cost of a collection; `first_attempts` holds the tokens of a bare call per question."""
    if not rows:
        return None
    places: defaultdict[str, list[Tokens]] = defaultdict(list)
    for row in rows:
        if row.calls == 1:
            places[row.database].append((row.prompt_tokens, row.completion_tokens))
    overall = [cost for costs in places.values() for cost in costs] or [(0.0, 0.0)]
    repaired = [row for row in rows if row.calls > 1]
    firsts = [first_attempts.get(row.question) or _mean(places[row.database] or overall) for row in repaired]
    guessed = sum(row.question not in first_attempts for row in repaired)
    seeds = len({row.seed for row in rows})
    marginal_prompt = sum(row.prompt_tokens - first[0] for row, first in zip(repaired, firsts, strict=True))
    marginal_completion = sum(row.completion_tokens - first[1] for row, first in zip(repaired, firsts, strict=True))
    return Construction(
        prompt=sum(row.prompt_tokens for row in rows) / seeds,
        completion=sum(row.completion_tokens for row in rows) / seeds,
        marginal_prompt=marginal_prompt / seeds,
        marginal_completion=marginal_completion / seeds,
        calls=sum(row.calls for row in rows) / seeds,
        probes=sum(row.probes for row in rows) / seeds,
        questions=len(rows) / seeds,
        imputed_share=100 * guessed / len(repaired) if repaired else 0.0,
    )


def _mean(costs: Sequence[Tokens]) -> Tokens:
    return fmean(prompt for prompt, _ in costs), fmean(completion for _, completion in costs)


def repair_overhead(first: Sequence[Spent], repaired: Sequence[Spent]) -> Tokens | None:
    """Prompt and completion tokens per question that repair at serving time adds to its first attempt."""
    first_by_key = {(row.seed, row.question): row for row in first}
    pairs = [
        (first_by_key[row.seed, row.question], row) for row in repaired if (row.seed, row.question) in first_by_key
    ]
    if not pairs:
        return None
    return (
        fmean(after.prompt_tokens - before.prompt_tokens for before, after in pairs),
        fmean(after.completion_tokens - before.completion_tokens for before, after in pairs),
    )


class Collected(RepairedQuestion, Protocol):
    """One collection question, whatever record holds it."""

    @property
    def seed(self) -> int: ...
    @property
    def question(self) -> str: ...


class Share(Struct, frozen=True):
    """So many of so many."""

    part: int
    whole: int

    @property
    def percent(self) -> float | None:
        """The share; None of nothing."""
        return 100 * self.part / self.whole if self.whole else None


def first_try(rows: Sequence[Collected]) -> Share:
    """Tell how many first attempts are right."""
    return Share(sum(row.first_right for row in rows), len(rows))


def repair_yield(rows: Sequence[Collected]) -> Share:
    """Tell how many of the first-attempt failures the source mended."""
    failed = [row for row in rows if not row.first_right]
    return Share(sum(row.right for row in failed), len(failed))


def vote_precision(rows: Sequence[Collected]) -> Share:
    """Tell how many of the candidates that a vote elected are right: each round elects one, a right one is the last."""
    failed = [row for row in rows if not row.first_right]
    return Share(sum(row.right for row in failed), sum(row.rounds for row in failed))


def headroom_reached(rows: Sequence[Collected], repaired: Sequence[Collected]) -> Share:
    """Of what repair adds on collection questions, how much another way of answering adds on the same questions."""
    repaired_keys = {(row.seed, row.question) for row in repaired}
    shared = [row for row in rows if (row.seed, row.question) in repaired_keys]
    asked = {(row.seed, row.question) for row in shared}
    base = [row for row in repaired if (row.seed, row.question) in asked]
    return Share(_gained(shared), _gained(base))


def _gained(rows: Sequence[Collected]) -> int:
    return sum(row.right for row in rows) - sum(row.first_right for row in rows)


def later_pass(rows: Sequence[Collected], first: Sequence[Collected]) -> list[Collected]:
    """The rows of a further pass: those of questions that the first pass, under its own arm or this one, had asked.

    A ledger may hold both passes under one arm, or the further pass alone; a question that the first pass solved is
    asked in that pass only, which tells the two apart.
    """
    solved = {(row.seed, row.question) for row in first if row.first_right}
    both = any((row.seed, row.question) in solved for row in rows)
    seen: set[tuple[int, str]] = set()
    later = []
    for row in rows:
        key = (row.seed, row.question)
        if not both or key in seen:
            later.append(row)
        seen.add(key)
    return later


# ── trigger and gate as detectors ────────────────────────────────────────────────────────────────────────────────────


class Watched(JudgedQuestion, RepairedQuestion, Protocol):
    """One question whose repair the engine alone began and ended."""

    @property
    def accepted(self) -> bool: ...
    @property
    def calls(self) -> int: ...


class Detector(Struct, frozen=True, kw_only=True):
    """The trigger over all questions, and the gate over those it rang for."""

    n: int
    sensitivity: Share
    """Wrong first attempts that the trigger rang for."""
    false_alarms: Share
    """Right first attempts that it rang for all the same."""
    precision: Share
    """Of what it rang for, what was wrong."""
    accepted: Share
    """Of what it rang for, what the gate accepted a candidate of."""
    accepted_right: Share
    """Of what the gate accepted, what is right."""
    shared: Share
    """Of the repairs that an oracle makes of the same questions, those that the gate accepted right, too."""
    broken: int
    """Right first attempts that an accepted candidate replaced with a wrong one."""
    first: Share
    reached: Share
    calls: float


def detector(rows: Sequence[Watched], by_oracle: Sequence[Watched] = ()) -> Detector | None:
    """Count what trigger and gate did, beside an oracle's repair where there is one; a repair that began has rounds."""
    if not rows:
        return None
    rang = [row for row in rows if row.rounds]
    wrong = [row for row in rows if not row.first_right]
    accepted = [row for row in rang if row.accepted]
    return Detector(
        n=len(rows),
        sensitivity=Share(sum(not row.first_right for row in rang), len(wrong)),
        false_alarms=Share(sum(row.first_right for row in rang), len(rows) - len(wrong)),
        precision=Share(sum(not row.first_right for row in rang), len(rang)),
        accepted=Share(len(accepted), len(rang)),
        accepted_right=Share(sum(row.right for row in accepted), len(accepted)),
        shared=_shared(rows, accepted, by_oracle),
        broken=sum(row.first_right and not row.right for row in accepted),
        first=Share(sum(row.first_right for row in rows), len(rows)),
        reached=Share(sum(row.right for row in rows), len(rows)),
        calls=sum(row.calls for row in rows) / len(rows),
    )


def _shared(rows: Sequence[Watched], accepted: Sequence[Watched], by_oracle: Sequence[Watched]) -> Share:
    asked = {(row.seed, row.question) for row in rows}
    repaired = {(row.seed, row.question) for row in by_oracle if row.right and not row.first_right} & asked
    made = {(row.seed, row.question) for row in accepted if row.right}
    return Share(len(repaired & made), len(repaired))


# ── what a collection takes ──────────────────────────────────────────────────────────────────────────────────────────
