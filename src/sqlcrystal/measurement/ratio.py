"""The crystallization ratio: held-out lift from memory over the repair headroom on the same questions."""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from msgspec import Struct

from sqlcrystal.errors import ConfigError
from sqlcrystal.measurement import clusters
from sqlcrystal.measurement.clusters import Floats
from sqlcrystal.measurement.fieller import FiellerSet, fieller
from sqlcrystal.measurement.intervals import DEFAULT_METHOD, RESAMPLES, percentile, two_stage_totals
from sqlcrystal.measurement.outcomes import QuestionTable, question_table
from sqlcrystal.measurement.statistics import check_method


class SeedCounts(Struct, frozen=True, kw_only=True):
    """Right answers of one seed over its held-out questions.

    `repair_floor` is the first-attempt count of the repair pass itself, which may differ from `floor` by rerun drift;
    the headroom is taken within that pass.
    """

    n: int
    floor: int
    memory: int
    repaired: int
    repair_floor: int

    @property
    def headroom(self) -> int:
        """How many questions on-demand repair adds."""
        return self.repaired - self.repair_floor

    @property
    def lift(self) -> int:
        """How many questions memory adds net."""
        return self.memory - self.floor


class CrystallizationRatio(Struct, frozen=True, kw_only=True):
    """CR in percent (None where repair leaves no headroom), always beside the absolute lift."""

    per_seed: tuple[float | None, ...]
    mean: float | None
    lift_pp: float
    against_own_floor: float | None


def crystallization_ratio(*, seeds: Sequence[SeedCounts]) -> CrystallizationRatio:
    """The mean over seeds of per-seed ratios, computed on counts before rounding."""
    if not seeds:
        raise ConfigError("seeds: at least one is needed for a ratio")
    per_seed = tuple(_percent(seed.lift, seed.headroom) for seed in seeds)
    alternative = tuple(_percent(seed.lift, seed.repaired - seed.floor) for seed in seeds)
    return CrystallizationRatio(
        per_seed=per_seed,
        mean=_mean(per_seed),
        lift_pp=float(np.mean([100 * seed.lift / seed.n for seed in seeds])),
        against_own_floor=_mean(alternative),
    )


def _percent(lift: int, headroom: int) -> float | None:
    return 100 * lift / headroom if headroom > 0 else None


def _mean(ratios: Sequence[float | None]) -> float | None:
    defined = [ratio for ratio in ratios if ratio is not None]
    return float(np.mean(defined)) if len(defined) == len(ratios) else None


class HeldOut(Struct, frozen=True, kw_only=True):
    """One held-out question under one seed: right without memory, with memory, before and after repair."""

    database: str
    question: str
    seed: str
    floor: bool
    memory: bool
    repair_floor: bool
    repaired: bool


class RatioEstimate(Struct, frozen=True, kw_only=True):
    """CR in percent with its 95 % interval; None, with the reason, where there is none."""

    value: float | None
    """The mean over seeds of per-seed ratios, which is what the paper calls CR."""
    pooled: float | None
    """The lift over the headroom with all seeds together, which is what Fieller's interval is about."""
    low: float | None
    high: float | None
    shape: Literal["bounded", "outside", "unbounded", ""]
    """Whether the interval lies between its ends, outside them, or is the whole line; empty where there is none."""
    method: str
    n_databases: int
    n_questions: int
    undefined_share: float = 0.0
    """Share of resamples in which a seed was left without headroom; two-stage only."""
    undefined: str = ""


def ratio_table(outcomes: Sequence[HeldOut]) -> QuestionTable:
    """Per question, the number of pairs, then the lift and the headroom of each seed side by side."""
    number_of: Mapping[str, int] = {seed: index for index, seed in enumerate(sorted({row.seed for row in outcomes}))}
    columns = np.zeros((len(outcomes), 1 + 2 * len(number_of)))
    columns[:, 0] = 1
    for index, row in enumerate(outcomes):
        columns[index, 1 + 2 * number_of[row.seed]] = row.memory - row.floor
        columns[index, 2 + 2 * number_of[row.seed]] = row.repaired - row.repair_floor
    return question_table([row.database for row in outcomes], [row.question for row in outcomes], columns)


def mean_ratio(totals: Floats) -> Floats:
    """CR in percent per resample; NaN where any seed has no headroom."""
    lift, headroom = totals[:, 1::2], totals[:, 2::2]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(headroom > 0, 100 * lift / headroom, np.nan).mean(axis=1))


def ratio_estimate(
    *,
    outcomes: Sequence[HeldOut],
    rng: np.random.Generator,
    method: str = DEFAULT_METHOD,
    resamples: int = RESAMPLES,
) -> RatioEstimate:
    """CR with its database-clustered interval: Fieller's, or percentiles of the two-stage bootstrap."""
    check_method(method)
    table = ratio_table(outcomes)
    value = float(mean_ratio(table.totals.sum(axis=0, keepdims=True))[0])
    share, interval, why = 0.0, None, _undefined(table, value)
    if not why and method == "two-stage":
        draws = mean_ratio(two_stage_totals(table=table, rng=rng, resamples=resamples))
        defined = draws[np.isfinite(draws)]
        share = 1 - len(defined) / len(draws)
        ends = percentile(defined) if len(defined) else None
        interval = FiellerSet("bounded", ends.low, ends.high) if ends else FiellerSet("unbounded")
    elif not why:
        interval = _fieller(table, method)
    lift, headroom = table.totals[:, 1::2].sum(), table.totals[:, 2::2].sum()
    return RatioEstimate(
        value=value if np.isfinite(value) else None,
        pooled=float(100 * lift / headroom) if headroom > 0 else None,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        shape=interval.shape if interval else "",
        method=method,
        n_databases=len(table.names),
        n_questions=len(table.values),
        undefined_share=share,
        undefined=why,
    )


def _undefined(table: QuestionTable, value: float) -> str:
    """Why there is no interval, in words: no ratio at all, or no interval of the lift to agree with."""
    if not np.isfinite(value):
        return "the ratio is undefined: repair leaves no headroom in at least one seed"
    changes = np.stack([100 * table.values[:, 1::2].sum(axis=1), table.values[:, 0]], axis=1)
    lifts = QuestionTable(table.database, changes, table.names)
    return clusters.undefined(*lifts.totals.T) or clusters.too_alike(lifts)


def _fieller(table: QuestionTable, method: str) -> FiellerSet:
    """Fieller's set in percent, with the errors and degrees of freedom of the method that judges the lift."""
    sizes, lift, headroom = table.totals[:, 0], table.totals[:, 1::2].sum(axis=1), table.totals[:, 2::2].sum(axis=1)
    parts = clusters.jackknife if method == "jackknife" else clusters.cr2
    df = len(sizes) - 1.0 if method == "jackknife" else float(clusters.satterthwaite(sizes=sizes))
    total = sizes.sum()
    return fieller(
        lift=float(100 * lift.sum() / total),
        headroom=float(headroom.sum() / total),
        lift_parts=parts(100 * lift, sizes),
        headroom_parts=parts(headroom, sizes),
        df=df,
    )
