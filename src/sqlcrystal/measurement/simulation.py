"""Studies with a known truth, thousands at a time: questions, seeds and databases drawn as a real study draws them."""

from dataclasses import dataclass
from math import nan

import numpy as np
from numpy.typing import NDArray

from sqlcrystal.measurement import clusters
from sqlcrystal.measurement.clusters import Floats
from sqlcrystal.measurement.outcomes import QuestionTable
from sqlcrystal.measurement.ratio import FiellerSet, fieller
from sqlcrystal.measurement.truth import Truth

MOST_DRAWS = 2_000_000
"""Numbers a bootstrap draws at once: what fits the cache is drawn faster."""


@dataclass(frozen=True)
class Population:
    """The truth in every database of every study: one row per study, one column per database."""

    questions: NDArray[np.int64]
    floor: Floats
    fixed: Floats
    broke: Floats

    @property
    def lift_pp(self) -> Floats:
        """The true lift of each database, in points."""
        return 100 * (self.fixed - self.broke)

    def without_the_last(self) -> "Population":
        """The same without the last database of every study, which is left for a prediction."""
        return Population(self.questions[:, :-1], self.floor[:, :-1], self.fixed[:, :-1], self.broke[:, :-1])


@dataclass(frozen=True)
class Studies:
    """Observations of simulated studies: per study and database, in points and pairs; and question by question."""

    sums: Floats
    sizes: Floats
    headroom: Floats
    places: NDArray[np.int64]
    """The study and database of each held-out question, as one number."""
    values: Floats
    """Of each held-out question: its difference in points and its pairs, over all seeds."""

    def table(self, study: int) -> QuestionTable:
        """One study as the statistics take it."""
        groups = self.sums.shape[1]
        low, high = np.searchsorted(self.places, [study * groups, (study + 1) * groups])
        names = tuple(f"d{group}" for group in range(groups))
        return QuestionTable(self.places[low:high] - study * groups, self.values[low:high], names)


def as_it_stands(truth: Truth, studies: int) -> Population:
    """The truth's own databases in every study."""
    parameters = np.array([(d.questions, d.floor, d.fixed, d.broke) for d in truth.databases]).T
    questions, floor, fixed, broke = np.repeat(parameters[:, None, :], studies, axis=1)
    return Population(questions.astype(np.int64), floor, fixed, broke)


def drawn(
    truth: Truth,
    *,
    studies: int,
    databases: int,
    lift: float,
    spread: float,
    rng: np.random.Generator,
    questions: int | None = None,
) -> Population:
    """New databases for every study: floors and sizes like the truth's, lifts normal around `lift` (shares)."""
    chosen = rng.integers(len(truth.databases), size=(studies, databases))
    parameters = np.array([(d.questions, d.floor, d.broke) for d in truth.databases])[chosen]
    sizes, floor, breaks = np.moveaxis(parameters, -1, 0)
    own = lift + spread * rng.standard_normal((studies, databases))
    broke = np.minimum(floor, np.maximum(breaks, -own))
    fixed = np.clip(broke + own, 0, 1 - floor)
    counts = sizes if questions is None else np.full_like(sizes, questions)
    return Population(counts.astype(np.int64), floor, fixed, broke)


def simulate(population: Population, truth: Truth, *, seeds: int, held_out: float, rng: np.random.Generator) -> Studies:
    """Run every study: which questions each seed holds out, who is right without memory, what memory and repair do."""
    shape = population.questions.shape
    counts = population.questions.reshape(-1)
    database_of = np.repeat(np.arange(len(counts)), counts)
    right = rng.random(len(database_of)) < population.floor.reshape(-1)[database_of]
    rate = np.where(
        right,
        _rate(population.broke, population.floor)[database_of],
        _rate(population.fixed, 1 - population.floor)[database_of],
    )
    repeats = rng.random(len(database_of)) < np.where(right, truth.breaks_repeat, truth.fixes_repeat)
    once = rng.random(len(database_of)) < rate
    quotas = np.maximum(1, np.rint(counts * held_out)).astype(np.int64)
    change, pairs, gained = (np.zeros(len(database_of)) for _ in range(3))
    for _ in range(seeds):
        asked = _hold_out(database_of, counts, quotas, rng)
        moved = asked & np.where(repeats, once, rng.random(len(database_of)) < rate)
        change += np.where(right, -1, 1) * moved
        pairs += asked
        gained += asked & ~right & (rng.random(len(database_of)) < _repair_chance(truth, rate, moved))
    sums, sizes, headroom = (
        np.asarray(np.bincount(database_of, weights=weights, minlength=len(counts)).reshape(shape), dtype=np.float64)
        for weights in (100 * change, pairs, gained)
    )
    ever_asked = pairs > 0
    return Studies(
        sums, sizes, headroom, database_of[ever_asked], np.stack([100 * change[ever_asked], pairs[ever_asked]], axis=1)
    )


def _rate(changed: Floats, share: Floats) -> Floats:
    return np.asarray(np.divide(changed, share, out=np.zeros_like(changed), where=share > 0).reshape(-1))


def _hold_out(
    database_of: NDArray[np.int64], counts: NDArray[np.int64], quotas: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.bool_]:
    """A share of each database's questions, of fixed size, as a split draws them."""
    order = np.argsort(database_of + rng.random(len(database_of)))
    starts = np.cumsum(counts) - counts
    rank = np.empty(len(database_of), dtype=np.int64)
    rank[order] = np.arange(len(database_of)) - starts[database_of]
    return np.asarray(rank < quotas[database_of])


def _repair_chance(truth: Truth, rate: Floats, moved: NDArray[np.bool_]) -> Floats:
    """Tell how likely repair solves a failure: more so where memory does, and in all as often as it was measured."""
    rest = np.clip((truth.repaired - rate * truth.repaired_if_fixed) / np.maximum(1 - rate, 1e-9), 0, 1)
    return np.where(moved, truth.repaired_if_fixed, rest)


@dataclass(frozen=True)
class Intervals:
    """One interval per study; NaN where a study gives none."""

    value: Floats
    low: Floats
    high: Floats

    @property
    def defined(self) -> NDArray[np.bool_]:
        """Tell which studies have an interval."""
        return np.isfinite(self.low)

    def excludes(self, value: float) -> NDArray[np.bool_]:
        """Tell which studies rule a value out; one without an interval rules out nothing."""
        return (self.low > value) | (self.high < value)


def intervals(studies: Studies, *, method: str, rng: np.random.Generator, resamples: int = 300) -> Intervals:
    """The interval of every study by the named method."""
    if method == "two-stage":
        return _two_stage(studies, rng, resamples)
    from scipy.special import stdtrit

    groups = studies.sums.shape[1]
    value = studies.sums.sum(axis=1) / studies.sizes.sum(axis=1)
    parts, df = (
        (clusters.cr2(studies.sums, studies.sizes), clusters.satterthwaite(sizes=studies.sizes))
        if method == "cr2"
        else (clusters.jackknife(studies.sums, studies.sizes), np.full(len(value), groups - 1.0))
    )
    error = np.sqrt((parts**2).sum(axis=1))
    reach = np.where(error > clusters.NO_SPREAD, stdtrit(df, 0.975) * error, nan)
    return Intervals(value, value - reach, value + reach)


def _two_stage(studies: Studies, rng: np.random.Generator, resamples: int) -> Intervals:
    """The two-stage bootstrap of all studies at once: databases first, then the questions of each, by their kinds."""
    count, groups = studies.sums.shape
    code = (studies.values[:, 0] * 1000 + studies.values[:, 1]).astype(np.int64)
    _, first, kind, often = np.unique(code, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(often)  # a multinomial never has to draw its last, largest part
    kinds, kind = studies.values[first[order]], np.argsort(order)[kind]
    cells = studies.places * len(kinds) + kind
    counts = np.bincount(cells, minlength=count * groups * len(kinds)).reshape(count * groups, len(kinds))
    sizes = counts.sum(axis=1)
    shares = counts / sizes[:, None]
    step = max(1, MOST_DRAWS // (resamples * groups * len(kinds)))
    draws = np.empty((count, resamples))
    for start in range(0, count, step):
        rows = np.arange(start, min(count, start + step))
        chosen = rows[:, None, None] * groups + rng.integers(groups, size=(len(rows), resamples, groups))
        totals = rng.multinomial(sizes[chosen], shares[chosen]).sum(axis=2) @ kinds
        draws[rows] = totals[..., 0] / totals[..., 1]
    low, high = np.quantile(draws, [0.025, 0.975], axis=1)
    value = studies.sums.sum(axis=1) / studies.sizes.sum(axis=1)
    spread = np.abs(studies.sums - studies.sizes * value[:, None]).max(axis=1) > clusters.NO_SPREAD
    return Intervals(value, np.where(spread, low, nan), np.where(spread, high, nan))


def ratios(studies: Studies) -> tuple[Floats, list[FiellerSet]]:
    """The ratio of lift to headroom in every study, in percent, with Fieller's set; NaN where there is no headroom."""
    lift_parts, room_parts = clusters.cr2(studies.sums, studies.sizes), clusters.cr2(studies.headroom, studies.sizes)
    df, totals = clusters.satterthwaite(sizes=studies.sizes), studies.sizes.sum(axis=1)
    lifts, rooms = studies.sums.sum(axis=1) / totals, studies.headroom.sum(axis=1) / totals
    fieller_sets = [
        fieller(
            lift=float(lifts[study]),
            headroom=float(rooms[study]),
            lift_parts=lift_parts[study],
            headroom_parts=room_parts[study],
            df=float(df[study]),
        )
        for study in range(len(lifts))
    ]
    return np.divide(lifts, rooms, out=np.full_like(lifts, nan), where=rooms > 0), fieller_sets
