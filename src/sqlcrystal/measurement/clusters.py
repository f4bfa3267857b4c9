"""Databases as clusters: what each adds to the uncertainty of a mean over all questions, and the interval methods.

Sums and sizes have one entry per database on their last axis; axes before it are independent studies, so that one study
and thousands of simulated ones are analysed by the same lines. The working model of CR2 is the usual one, independent
pairs of equal variance: the adjustment and the degrees of freedom then depend on the databases' sizes alone.

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
from numpy.typing import NDArray

from sqlcrystal.measurement.outcomes import QuestionTable

Floats = NDArray[np.float64]

FEWEST_DATABASES = 3
LUCK = 0.001
"""Below this chance, databases are said to agree by luck."""
NO_SPREAD = 1e-9
"""Deviations below this are rounding: sums are counts of questions, in percent."""


def undefined(sums: Floats, sizes: Floats) -> str:
    """Tell why databases give no interval, in words; empty where they do."""
    groups = sums.shape[-1]
    if groups < FEWEST_DATABASES:
        few = "one database" if groups == 1 else "two databases"
        return f"no clustered interval: {few}, and it takes at least three"
    spread = np.abs(sums - sizes * sums.sum() / sizes.sum())
    if float(spread.max()) > NO_SPREAD * max(1.0, float(np.abs(sums).max())):
        return ""
    if not sums.any():
        return "no clustered interval: no database gained or lost anything"
    return "no clustered interval: every database moved by the same amount, which leaves no spread to judge by"


def too_alike(table: QuestionTable) -> str:
    """Say that databases which agree almost exactly give no interval either; empty where chance can have it so.

    With few changes, databases can agree by luck: three of them with one fix each would be all but certain. So their
    variance is held against what drawing questions alone must give it, and a ratio that chance gives once in a thousand
    studies is not believed.
    """
    from scipy.special import chdtr

    between = float(np.sum(cr2(*table.totals.T[:2]) ** 2))
    sampling = float(np.sum(cr2(*table.values.T[:2]) ** 2))
    df = float(satterthwaite(sizes=table.totals[:, 1]))
    if chdtr(df, df * between / sampling) >= LUCK:
        return ""
    return "no clustered interval: the databases agree more closely than chance would have it, by luck of few changes"


def cr2(sums: Floats, sizes: Floats) -> Floats:
    """Tell what each database adds to the error of the pooled mean; the squares add up to the CR2 variance.

    Bell and McCaffrey's adjustment: the residual of a database that holds the share h of all pairs is pulled towards
    zero, and divided by the root of 1 - h to make up for it.
    """
    total = sizes.sum(axis=-1, keepdims=True)
    mean = sums.sum(axis=-1, keepdims=True) / total
    return np.asarray((sums - sizes * mean) / (total * np.sqrt(1 - sizes / total)))


def jackknife(sums: Floats, sizes: Floats) -> Floats:
    """The same for the jackknife that leaves one database out at a time."""
    groups = sums.shape[-1]
    left = left_out(sums, sizes)
    return np.asarray(np.sqrt((groups - 1) / groups) * (left.mean(axis=-1, keepdims=True) - left))


def left_out(sums: Floats, sizes: Floats) -> Floats:
    """The pooled mean without each database in turn."""
    return np.asarray((sums.sum(axis=-1, keepdims=True) - sums) / (sizes.sum(axis=-1, keepdims=True) - sizes))


def satterthwaite(*, sizes: Floats, weights: Floats | None = None) -> Floats:
    """Degrees of freedom of the CR2 variance under its working model: G - 1 for equal databases, fewer for unequal.

    With `weights`, `sizes` has a row per mean before its last axis, and the variance is that of their weighted sum.
    """
    rows = sizes[..., None, :] if weights is None else sizes
    factors = np.ones(1) if weights is None else np.asarray(weights, dtype=float)
    totals = rows.sum(axis=-1)
    share = rows / totals[..., None]
    scale = factors**2 / totals
    leverage = share / np.sqrt(1 - share)
    diagonal = np.einsum("...k,...kg->...g", scale, share)
    products = np.einsum("...kg,...lg->...kl", leverage, leverage)
    squares = np.einsum("...kg,...lg->...kl", leverage**2, leverage**2)
    off_diagonal = np.einsum("...k,...l,...kl->...", scale, scale, products**2 - squares)
    return np.asarray(diagonal.sum(axis=-1) ** 2 / ((diagonal**2).sum(axis=-1) + off_diagonal))


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
    df = float(satterthwaite(sizes=problem.sizes))
    return student(problem.value, cr2(problem.sums, problem.sizes), df, problem.null)


def _jackknife(problem: Problem) -> Interval:
    df = float(len(problem.sums) - 1)
    return student(problem.value, jackknife(problem.sums, problem.sizes), df, problem.null)


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
