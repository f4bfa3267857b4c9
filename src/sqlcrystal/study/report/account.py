"""The cost account of a study: calls and tokens, what building the bank cost, what serving from it adds."""

from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean

from msgspec import Struct

from sqlcrystal.measurement.cost import Workload
from sqlcrystal.study.ledger import Arm, Outcome
from sqlcrystal.study.report.facts import Facts

DEFAULT_WORKLOAD = Workload(recurrence=0.2, value_per_correct=0.01, prompt_price=0.1, completion_price=0.4)
"""An example, not a measurement: every use of it is printed with these figures."""


class Serving(Struct, frozen=True, kw_only=True):
    """What one question costs under a configuration, on average."""

    n: int
    calls: float
    prompt: float
    completion: float
    seconds: float


class Construction(Struct, frozen=True, kw_only=True):
    """What building a bank cost, per seed; marginal leaves out the first attempts, which serving makes anyway."""

    prompt: float
    completion: float
    marginal_prompt: float
    marginal_completion: float
    calls: float
    probes: float
    questions: float
    estimated_share: float
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
    """A configuration stopped after so many repair rounds."""

    name: str
    first: float
    final: float
    calls: float


def serving(rows: Sequence[Outcome]) -> Serving | None:
    """Mean calls and tokens per question."""
    if not rows:
        return None
    return Serving(
        n=len(rows),
        calls=fmean(row.calls for row in rows),
        prompt=fmean(row.prompt_tokens for row in rows),
        completion=fmean(row.completion_tokens for row in rows),
        seconds=fmean(row.seconds for row in rows),
    )


def after_rounds(rows: Sequence[Outcome], limit: int, name: str) -> Rounds | None:
    """The repair pass as if it had stopped after `limit` rounds: greedy repair makes the shorter pass a prefix."""
    if not rows:
        return None
    final = [row.first_right or (row.right and row.rounds <= limit) for row in rows]
    calls = [1 + (row.calls - 1) * min(row.rounds, limit) / row.rounds if row.rounds else row.calls for row in rows]
    return Rounds(
        name=name,
        first=100 * fmean(row.first_right for row in rows),
        final=100 * fmean(final),
        calls=fmean(calls),
    )


def construction(facts: Facts, arm: Arm) -> Construction | None:
    """What an arm's bank cost to build; None when the study did not record the pass."""
    rows = facts.rows(arm, "collection")
    if not rows:
        return None
    single = _first_attempts(facts)
    places: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for row in rows:
        if row.calls == 1:
            places[row.database].append((row.prompt_tokens, row.completion_tokens))
    overall = [cost for costs in places.values() for cost in costs] or [(0, 0)]
    marginal_prompt = marginal_completion = estimated = 0.0
    for row in rows:
        if row.calls == 1:
            continue
        known = single.get(row.question)
        estimated += known is None
        near = places[row.database] or overall
        first = known or (fmean(prompt for prompt, _ in near), fmean(completion for _, completion in near))
        marginal_prompt += row.prompt_tokens - first[0]
        marginal_completion += row.completion_tokens - first[1]
    seeds = len({row.seed for row in rows})
    repaired = sum(row.calls > 1 for row in rows)
    return Construction(
        prompt=sum(row.prompt_tokens for row in rows) / seeds,
        completion=sum(row.completion_tokens for row in rows) / seeds,
        marginal_prompt=marginal_prompt / seeds,
        marginal_completion=marginal_completion / seeds,
        calls=sum(row.calls for row in rows) / seeds,
        probes=sum(row.probes for row in rows) / seeds,
        questions=len(rows) / seeds,
        estimated_share=100 * estimated / repaired if repaired else 0.0,
    )


def _first_attempts(facts: Facts) -> dict[str, tuple[float, float]]:
    """Tokens of a bare single call per question, wherever the study made one; seeds share the prompt."""
    bare = [*facts.rows(facts.bare), *facts.rows(facts.bare, "rerun"), *facts.rows(facts.default, "rerun")]
    return {row.question: (row.prompt_tokens, row.completion_tokens) for row in bare if not row.cards}


def repair_overhead(facts: Facts) -> float | None:
    """Prompt tokens per question that repair at serving time adds to the first attempt."""
    first = {(row.seed, row.question): row.prompt_tokens for row in facts.rows(facts.bare)}
    extra = [r.prompt_tokens - first[r.seed, r.question] for r in facts.repairs if (r.seed, r.question) in first]
    return fmean(extra) if extra else None
