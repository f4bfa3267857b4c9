"""Interval methods for a difference pooled over databases: what each makes of the same sums.

`cr2`, the default, is the cluster-robust variance of Bell and McCaffrey with Satterthwaite's degrees of freedom; for
databases of one size it is the jackknife's, and it still covers where one database holds most questions.
`jackknife` leaves one database out at a time and counts G - 1 degrees of freedom. `two-stage` is the paper's bootstrap
(percentile interval). docs/reference/statistics.md has the measured coverage of all three.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

import numpy as np
from msgspec import Struct

from sqlcrystal.measurement import clusters
from sqlcrystal.measurement.clusters import Floats
from sqlcrystal.measurement.outcomes import QuestionTable

LEVEL = 0.95
RESAMPLES = 10_000


@dataclass(frozen=True)
class Problem:
    """The data of a method: sums of differences, in points, and of pairs, per question and per database."""

    table: QuestionTable
    rng: np.random.Generator
    resamples: int
    null: float = 0.0

    @property
    def sums(self) -> Floats:
        """The differences of each database."""
        return self.table.totals[:, 0]

    @property
    def sizes(self) -> Floats:
        """The pairs of each database."""
        return self.table.totals[:, 1]

    @property
    def value(self) -> float:
        """The pooled difference."""
        return float(self.sums.sum() / self.sizes.sum())


class Interval(Struct, frozen=True):
    """Ends of the 95 % interval, two-sided p, and, where a t distribution is used, its scale and degrees of freedom."""

    low: float
    high: float
    p_value: float
    standard_error: float | None = None
    df: float | None = None


def _cr2(problem: Problem) -> Interval:
    df = float(clusters.satterthwaite(sizes=problem.sizes))
    return student(problem.value, clusters.cr2(problem.sums, problem.sizes), df, problem.null)


def _jackknife(problem: Problem) -> Interval:
    df = float(len(problem.sums) - 1)
    return student(problem.value, clusters.jackknife(problem.sums, problem.sizes), df, problem.null)


def student(value: float, parts: Floats, df: float, null: float = 0.0) -> Interval:
    """The interval and p of Student's t, from what each cluster adds to the error."""
    from scipy.special import stdtr, stdtrit

    error = sqrt(float(np.sum(parts**2)))
    reach = float(stdtrit(df, (1 + LEVEL) / 2)) * error
    p_value = 2 * float(stdtr(df, -abs(value - null) / error))
    return Interval(value - reach, value + reach, p_value, error, df)


def _two_stage(problem: Problem) -> Interval:
    totals = two_stage_totals(table=problem.table, rng=problem.rng, resamples=problem.resamples)
    return percentile(totals[:, 0] / totals[:, 1], problem.null)


def percentile(draws: Floats, null: float = 0.0) -> Interval:
    """The interval and p of a bootstrap's draws; p is twice the smaller tail, and never zero."""
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    tail = min(int(np.sum(draws <= null)), int(np.sum(draws >= null)))
    return Interval(float(low), float(high), min(1.0, 2 * (tail + 1) / (len(draws) + 1)))


METHODS: dict[str, Callable[[Problem], Interval]] = {"cr2": _cr2, "jackknife": _jackknife, "two-stage": _two_stage}
DEFAULT_METHOD = "cr2"


def two_stage_totals(*, table: QuestionTable, rng: np.random.Generator, resamples: int = RESAMPLES) -> Floats:
    """Resample databases, then unique questions within each; return the column totals of every resample.

    Questions with equal columns are exchangeable, so a multinomial over the distinct rows of a database replaces
    drawing its questions one by one: the same distribution, at a small fraction of the work.
    """
    groups = len(table.names)
    distinct, kind = np.unique(table.values, axis=0, return_inverse=True)
    counts = np.zeros((groups, len(distinct)), dtype=np.int64)
    np.add.at(counts, (table.database, kind.reshape(-1)), 1)
    slots = rng.integers(groups, size=(resamples, groups)) + groups * np.arange(resamples)[:, None]
    chosen = np.bincount(slots.reshape(-1), minlength=resamples * groups).reshape(resamples, groups)
    totals = np.zeros((resamples, table.values.shape[1]))
    for group in range(groups):
        present = np.argsort(counts[group], kind="stable")  # a multinomial never has to draw its last, largest part
        present = present[counts[group, present] > 0]
        size = int(counts[group].sum())
        for times in range(1, int(chosen[:, group].max()) + 1):
            rows = np.flatnonzero(chosen[:, group] == times)
            drawn = rng.multinomial(times * size, counts[group, present] / size, size=len(rows))
            totals[rows] += drawn @ distinct[present]
    return totals
