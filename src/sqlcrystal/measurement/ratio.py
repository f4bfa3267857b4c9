"""The crystallization ratio: held-out lift from memory over the repair headroom on the same questions."""

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from sqlcrystal.errors import ConfigError
from sqlcrystal.measurement.outcomes import QuestionTable, question_table
from sqlcrystal.measurement.statistics import DEFAULT_METHOD, RESAMPLES, Estimate, estimate


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


def ratio_table(outcomes: Sequence[HeldOut]) -> QuestionTable:
    """Per question, the lift and the headroom of each seed side by side."""
    place: Mapping[str, int] = {seed: index for index, seed in enumerate(sorted({row.seed for row in outcomes}))}
    columns = np.zeros((len(outcomes), 2 * len(place)))
    for index, row in enumerate(outcomes):
        columns[index, 2 * place[row.seed]] = row.memory - row.floor
        columns[index, 2 * place[row.seed] + 1] = row.repaired - row.repair_floor
    return question_table([row.database for row in outcomes], [row.question for row in outcomes], columns)


def mean_ratio(totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """CR in percent per resample; NaN where any seed has no headroom."""
    lift, headroom = totals[:, 0::2], totals[:, 1::2]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(headroom > 0, 100 * lift / headroom, np.nan).mean(axis=1))


def ratio_estimate(
    *,
    outcomes: Sequence[HeldOut],
    rng: np.random.Generator,
    method: str = DEFAULT_METHOD,
    resamples: int = RESAMPLES,
) -> Estimate:
    """CR with its database-clustered interval."""
    return estimate(table=ratio_table(outcomes), statistic=mean_ratio, method=method, rng=rng, resamples=resamples)
