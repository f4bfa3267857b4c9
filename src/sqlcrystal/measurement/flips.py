"""The fix/break ledger: what memory changed, what of it holds across seeds and reruns, and what else solves it."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from statistics import median
from typing import Protocol

import numpy as np
from msgspec import Struct

from sqlcrystal.errors import DataError
from sqlcrystal.measurement.outcomes import JudgedQuestion, PairedOutcomes, paired
from sqlcrystal.measurement.statistics import mcnemar_p
from sqlcrystal.types import CardId

Key = tuple[int, str]
"""A seed and a question."""

UNEVALUABLE = ("unevaluable", "gold error", "gold timeout")
"""Kinds of verdict that say nothing about an answer: wrong in accuracies, as in the paper, and out of paired tests."""


class Answered(JudgedQuestion, Protocol):
    """One question answered once, whatever record holds it."""

    @property
    def difficulty(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def sql(self) -> str | None: ...
    @property
    def cards(self) -> tuple[CardId, ...]: ...
    @property
    def wording(self) -> int: ...


@dataclass(frozen=True)
class Pair:
    """The same question and seed before and after one change."""

    before: Answered
    after: Answered

    @property
    def key(self) -> Key:
        """The seed and the question."""
        return self.after.seed, self.after.question

    @property
    def asked(self) -> str:
        """The question, told apart from its paraphrases."""
        return f"{self.after.question} in words {self.after.wording}" if self.after.wording else self.after.question

    @property
    def evaluable(self) -> bool:
        """Tell whether both sides could be judged at all."""
        return self.before.kind not in UNEVALUABLE and self.after.kind not in UNEVALUABLE

    @property
    def verdict(self) -> str:
        """Tell what the change did: fix, break, or nothing."""
        if self.before.right == self.after.right:
            return "same"
        return "fix" if self.after.right else "break"


def pair_up(before: Iterable[Answered], after: Iterable[Answered]) -> tuple[Pair, ...]:
    """Pair answers by seed, question and its wording; questions answered on one side only are left out."""
    before_by_key = {(row.seed, row.question, row.wording): row for row in before}
    keyed = (((row.seed, row.question, row.wording), row) for row in after)
    return tuple(Pair(before_by_key[key], row) for key, row in keyed if key in before_by_key)


def fixes(pairs: Iterable[Pair]) -> tuple[Pair, ...]:
    """The pairs the change fixed."""
    return tuple(pair for pair in pairs if pair.verdict == "fix")


def breaks(pairs: Iterable[Pair]) -> tuple[Pair, ...]:
    """The pairs the change broke."""
    return tuple(pair for pair in pairs if pair.verdict == "break")


def to_outcomes(pairs: Sequence[Pair]) -> PairedOutcomes:
    """Tell what the statistics work on: the pairs that could be judged on both sides."""
    if not pairs:
        raise DataError("no question was answered under both arms")
    judged = [pair for pair in pairs if pair.evaluable]
    rows = (
        (pair.after.database, pair.asked, str(pair.after.seed), int(pair.before.right), int(pair.after.right))
        for pair in judged
    )
    return paired(rows, unevaluable=len(pairs) - len(judged))


class Stability(Struct, frozen=True, kw_only=True):
    """Fixes and breaks that repeat in every seed where their question is held out, at least twice, against churn."""

    stable_fixes: tuple[str, ...]
    stable_breaks: tuple[str, ...]
    churn_fixes: int
    churn_breaks: int
    both: tuple[str, ...]
    """Questions fixed under one seed and broken under another."""
    repeated: int
    """Questions held out under at least two seeds: only these can be stable."""


def stability(pairs: Iterable[Pair]) -> Stability:
    """Tell reproducible fixes and breaks from those of one seed."""
    verdicts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for pair in pairs:
        verdicts[pair.after.question][pair.verdict] += 1

    def always(kind: str) -> tuple[str, ...]:
        return tuple(sorted(question for question, counts in verdicts.items() if counts[kind] == counts.total() >= 2))

    def events(kind: str, stable: tuple[str, ...]) -> int:
        return sum(counts[kind] for question, counts in verdicts.items() if question not in stable)

    fixed, broken = always("fix"), always("break")
    return Stability(
        stable_fixes=fixed,
        stable_breaks=broken,
        churn_fixes=events("fix", fixed),
        churn_breaks=events("break", broken),
        both=tuple(sorted(question for question, counts in verdicts.items() if counts["fix"] and counts["break"])),
        repeated=sum(counts.total() >= 2 for counts in verdicts.values()),
    )


# ── identical runs ───────────────────────────────────────────────────────────────────────────────────────────────────


class Rerun(Struct, frozen=True, kw_only=True):
    """One pair of identical runs."""

    name: str
    n: int
    difference_pp: float
    flipped: float
    """Percent of single answers whose verdict differs."""


class Drift(Struct, frozen=True, kw_only=True):
    """The band observed over all pairs of identical runs, in percentage points."""

    runs: tuple[Rerun, ...]
    median_pp: float
    max_pp: float


def rerun(name: str, pairs: Sequence[Pair]) -> Rerun:
    """Compare two runs of one configuration."""
    moved = [pair.after.right - pair.before.right for pair in pairs]
    return Rerun(
        name=name,
        n=len(pairs),
        difference_pp=100 * sum(moved) / len(pairs),
        flipped=100 * sum(move != 0 for move in moved) / len(pairs),
    )


def observed(reruns: Mapping[str, Sequence[Pair]]) -> Drift | None:
    """The band over pairs of identical runs by name, each pooled over its seeds as a contrast is.

    A rerun in which nothing flipped is one, too: leaving it out would make the band look wider than it is.
    """
    return drift([rerun(name, pairs) for name, pairs in reruns.items() if pairs])


def drift(runs: Sequence[Rerun]) -> Drift | None:
    """The band; None when nothing was run twice."""
    if not runs:
        return None
    sizes = [abs(run.difference_pp) for run in runs]
    return Drift(runs=tuple(runs), median_pp=median(sizes), max_pp=max(sizes))


# ── what other methods solve ─────────────────────────────────────────────────────────────────────────────────────────


class Substitution(Struct, frozen=True, kw_only=True):
    """The rate at which the other method solves memory's fixes, against its rate on all failures of the bare solver."""

    fixes: int
    also_solved: int
    failures: int
    failures_solved: int
    per_seed: tuple[float | None, ...]
    """Percent of memory's fixes also solved, in the order of the seeds asked for; None where memory fixed nothing."""

    @property
    def share(self) -> float:
        """Percent of memory's fixes that the other method solves too."""
        return 100 * self.also_solved / self.fixes if self.fixes else nan

    @property
    def base_rate(self) -> float:
        """Percent of the bare solver's failures that the other method solves."""
        return 100 * self.failures_solved / self.failures if self.failures else nan

    @property
    def enrichment(self) -> float:
        """Tell how many times its base rate; about 1 would speak against substitution."""
        return self.share / self.base_rate if self.base_rate else nan


def overlap(pairs: Sequence[Pair], other: Iterable[Answered], *, seeds: Sequence[int] = ()) -> Substitution:
    """Compare memory's fixes with what another method answers; seeds in the given order, or as they first appear."""
    solved = {(row.seed, row.question): row.right for row in other}
    failures = [pair for pair in pairs if pair.key in solved and not pair.before.right]
    fixed = [pair for pair in failures if pair.verdict == "fix"]
    per_seed: list[float | None] = []
    for seed in seeds or dict.fromkeys(pair.after.seed for pair in pairs):
        of_seed = [solved[pair.key] for pair in fixed if pair.after.seed == seed]
        per_seed.append(100 * sum(of_seed) / len(of_seed) if of_seed else None)
    return Substitution(
        fixes=len(fixed),
        also_solved=sum(solved[pair.key] for pair in fixed),
        failures=len(failures),
        failures_solved=sum(solved[pair.key] for pair in failures),
        per_seed=tuple(per_seed),
    )


# ── by stratum ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Effect(Struct, frozen=True, kw_only=True):
    """The effect of a change within one stratum, accuracies in percent."""

    name: str
    n: int
    before: float
    after: float
    fixed: int
    broke: int
    mcnemar_p: float

    @property
    def net(self) -> int:
        """Questions gained."""
        return self.fixed - self.broke

    @property
    def delta_pp(self) -> float:
        """The change in percentage points."""
        return 100 * self.net / self.n


def effects(pairs: Iterable[Pair], key: Callable[[Pair], str]) -> tuple[Effect, ...]:
    """One effect per value of `key`, in the order the values first appear."""
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(key(pair), []).append(pair)
    return tuple(_effect(name, members) for name, members in groups.items())


def _effect(name: str, pairs: Sequence[Pair]) -> Effect:
    verdicts = [pair.verdict for pair in pairs]
    fixed, broke = verdicts.count("fix"), verdicts.count("break")
    return Effect(
        name=name,
        n=len(pairs),
        before=100 * sum(pair.before.right for pair in pairs) / len(pairs),
        after=100 * sum(pair.after.right for pair in pairs) / len(pairs),
        fixed=fixed,
        broke=broke,
        mcnemar_p=mcnemar_p(fixed=fixed, broke=broke),
    )


def correlation(x: Sequence[float], y: Sequence[float]) -> float:
    """Pearson's r; NaN where either side does not vary."""
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return nan
    return float(np.corrcoef(x, y)[0, 1])


def top_share(nets: Sequence[int], *, top: int = 3) -> float | None:
    """Tell which share of the net gain the first `top` strata carry, in percent; None when there is no gain."""
    total = sum(nets)
    return 100 * sum(nets[:top]) / total if total > 0 else None
