"""Rerun drift: how much accuracy moves between runs of one configuration; it stands beside the equivalence margin."""

from collections.abc import Mapping, Sequence
from statistics import median

from msgspec import Struct

from sqlcrystal.measurement.flips import Pair


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
