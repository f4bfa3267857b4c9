"""Substitution: does another use of test-time compute solve what memory fixes more often than failures at large?"""

from collections.abc import Iterable, Sequence
from math import nan

from msgspec import Struct

from sqlcrystal.measurement.flips import Answered, Pair


class Substitution(Struct, frozen=True, kw_only=True):
    """How often the other method solves memory's fixes, against its rate on all failures of the bare solver."""

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
        """How many times its base rate; about 1 would speak against substitution."""
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
