"""The cost account of a study: calls and tokens, what building the bank cost, what serving from it adds."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Protocol

from msgspec import Struct

from sqlcrystal.measurement.rows import JudgedQuestion, RepairedQuestion

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
