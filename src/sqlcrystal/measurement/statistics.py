"""Clustered inference for paired outcomes: pure, keyword-only functions with an explicit random generator.

Every statistic is a function of column totals over questions, so one resampling serves differences and ratios alike.
`two-stage` is the paper's bootstrap (percentile interval); `jackknife`, the default, leaves one database out at a time
and uses Student's t with G - 1 degrees of freedom, because percentile intervals over few databases cover too little
(docs/reference/statistics.md has the measured coverage).
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import nan, sqrt
from typing import TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from sqlcrystal.errors import ConfigError
from sqlcrystal.measurement.outcomes import PairedOutcomes, QuestionTable, question_table

Statistic: TypeAlias = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""Column totals (one row per resample) to one value per row; NaN where undefined."""

RESAMPLES = 10_000
DEFAULT_METHOD = "jackknife"


class Estimate(Struct, frozen=True, kw_only=True):
    """A point with its 95 % interval, two-sided p, and what it was computed from."""

    value: float
    low: float
    high: float
    p_value: float
    method: str
    n_databases: int
    n_questions: int
    undefined_share: float = 0.0


class Equivalence(Struct, frozen=True, kw_only=True):
    """Two one-sided tests: is the difference inside ± margin?"""

    margin: float
    p_value: float
    equivalent: bool
    method: str


def two_stage_totals(
    *, table: QuestionTable, rng: np.random.Generator, resamples: int = RESAMPLES
) -> NDArray[np.float64]:
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


def estimate(
    *,
    table: QuestionTable,
    statistic: Statistic,
    method: str = DEFAULT_METHOD,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
    null: float = 0.0,
) -> Estimate:
    """The statistic with a 95 % interval and a two-sided p against `null`, by the named method."""
    if method not in METHODS:
        raise ConfigError.unknown("method", method, METHODS)
    value = float(statistic(table.totals.sum(axis=0, keepdims=True))[0])
    interval = METHODS[method](_Problem(table, statistic, value, null, rng, resamples))
    return Estimate(
        value=value,
        low=interval.low,
        high=interval.high,
        p_value=interval.p_value,
        method=method,
        n_databases=len(table.names),
        n_questions=len(table.values),
        undefined_share=interval.undefined_share,
    )


@dataclass(frozen=True)
class _Problem:
    """What an interval method works on."""

    table: QuestionTable
    statistic: Statistic
    value: float
    null: float
    rng: np.random.Generator
    resamples: int


class _Interval(Struct, frozen=True):
    """Low and high end, two-sided p, and the share of resamples where the statistic was undefined."""

    low: float = nan
    high: float = nan
    p_value: float = nan
    undefined_share: float = 0.0


def _two_stage(problem: _Problem) -> _Interval:
    draws = problem.statistic(two_stage_totals(table=problem.table, rng=problem.rng, resamples=problem.resamples))
    defined = draws[np.isfinite(draws)]
    undefined = 1 - len(defined) / len(draws)
    if len(defined) == 0 or not np.isfinite(problem.value):
        return _Interval(undefined_share=undefined)
    low, high = np.quantile(defined, [0.025, 0.975])
    tail = min(int(np.sum(defined <= problem.null)), int(np.sum(defined >= problem.null)))
    return _Interval(float(low), float(high), min(1.0, 2 * (tail + 1) / (len(defined) + 1)), undefined)


def _jackknife(problem: _Problem) -> _Interval:
    from scipy.special import stdtr, stdtrit

    totals, groups = problem.table.totals, len(problem.table.names)
    if groups < 2 or not np.isfinite(problem.value):
        return _Interval()
    left_out = problem.statistic(totals.sum(axis=0) - totals)
    if not np.all(np.isfinite(left_out)):
        return _Interval(undefined_share=float(np.mean(~np.isfinite(left_out))))
    error = sqrt((groups - 1) / groups * float(np.sum((left_out - left_out.mean()) ** 2)))
    distance = abs(problem.value - problem.null)
    if error == 0:
        return _Interval(problem.value, problem.value, 1.0 if distance == 0 else 0.0)
    reach = float(stdtrit(groups - 1, 0.975)) * error
    return _Interval(problem.value - reach, problem.value + reach, 2 * float(stdtr(groups - 1, -distance / error)))


METHODS: dict[str, Callable[[_Problem], _Interval]] = {"jackknife": _jackknife, "two-stage": _two_stage}


# ── differences of accuracy ──────────────────────────────────────────────────────────────────────────────────────────


def difference_table(outcomes: PairedOutcomes) -> QuestionTable:
    """The difference b - a and the number of pairs, summed per question: few distinct rows, so resampling is fast."""
    columns = np.stack([outcomes.b - outcomes.a, np.ones(len(outcomes))], axis=1).astype(float)
    return question_table(outcomes.databases, outcomes.questions, columns)


def lift_pp(totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Accuracy under b minus accuracy under a, in percentage points."""
    return np.asarray(100 * totals[:, 0] / totals[:, 1])


def difference(
    *,
    outcomes: PairedOutcomes,
    rng: np.random.Generator,
    method: str = DEFAULT_METHOD,
    resamples: int = RESAMPLES,
) -> Estimate:
    """The paired difference b - a in percentage points, clustered by database."""
    return estimate(table=difference_table(outcomes), statistic=lift_pp, method=method, rng=rng, resamples=resamples)


def mcnemar_p(*, fixed: int, broke: int) -> float:
    """Exact two-sided McNemar p: a diagnostic that treats pairs as independent, which clustered pairs are not."""
    from scipy.special import bdtr

    return min(1.0, 2 * float(bdtr(min(fixed, broke), fixed + broke, 0.5)))


def equivalence(
    *,
    outcomes: PairedOutcomes,
    margin_pp: float,
    rng: np.random.Generator,
    method: str = DEFAULT_METHOD,
    resamples: int = RESAMPLES,
    alpha: float = 0.05,
) -> Equivalence:
    """Hierarchical TOST: both one-sided tests against ± margin must reject."""
    table = difference_table(outcomes)
    one_sided = []
    for null, side in ((-margin_pp, 1), (margin_pp, -1)):
        result = estimate(table=table, statistic=lift_pp, method=method, rng=rng, resamples=resamples, null=null)
        inside = side * (result.value - null) > 0
        one_sided.append(result.p_value / 2 if inside else 1 - result.p_value / 2)
    p_value = max(one_sided)
    return Equivalence(margin=margin_pp, p_value=p_value, equivalent=p_value < alpha, method=method)
