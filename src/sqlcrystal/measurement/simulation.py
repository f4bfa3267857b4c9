"""Studies with a known truth, thousands at a time: the truth, of a table or a pilot, and the studies drawn from it."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan, sqrt

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from sqlcrystal.errors import ConfigError, DataError
from sqlcrystal.measurement import clusters
from sqlcrystal.measurement.clusters import Floats
from sqlcrystal.measurement.flips import Pair, stability
from sqlcrystal.measurement.outcomes import QuestionTable
from sqlcrystal.measurement.settings import FiellerSet, fieller


class DatabaseTruth(Struct, frozen=True, kw_only=True):
    """One database: shares of question–seed pairs, so that the lift is `fixed - broke`."""

    name: str
    questions: int
    """All its questions, of which each seed holds out a share."""
    floor: float
    """Right without memory."""
    fixed: float
    """Wrong without memory and right with it."""
    broke: float
    """Right without memory and wrong with it."""

    @property
    def lift(self) -> float:
        """Tell what memory adds."""
        return self.fixed - self.broke

    def moved_by(self, lift: float) -> "DatabaseTruth":
        """The same database under another lift: breaks stay as they are unless the loss is larger than they are."""
        broke = min(self.floor, max(self.broke, -lift))
        return replace(self, broke=broke, fixed=min(1 - self.floor, max(0.0, broke + lift)))


class Truth(Struct, frozen=True, kw_only=True):
    """Databases with known effects, and what holds for all of them."""

    name: str
    databases: tuple[DatabaseTruth, ...]
    seeds: int
    held_out: float
    """The share of questions that a seed holds out."""
    fixes_repeat: float
    """Share of fixes that every seed repeats; the others are churn, drawn anew for each seed."""
    breaks_repeat: float
    repaired: float
    """Share of the bare solver's failures that repair on demand solves."""
    repaired_if_fixed: float
    """The same share among memory's fixes: the two solve the same questions more often than chance."""

    @property
    def floor(self) -> float:
        """The accuracy without memory, pooled over questions."""
        sizes = [database.questions for database in self.databases]
        return float(np.average([database.floor for database in self.databases], weights=sizes))

    def check_lift(self, lift_pp: float) -> None:
        """Refuse a lift that no memory can have: more than is wrong without it, or a loss of more than is right."""
        if not -100 * self.floor <= lift_pp <= 100 * (1 - self.floor):
            raise ConfigError(
                f"--effect: {lift_pp:+g} points cannot be; {100 * self.floor:.1f} % are right without it, so that a"
                f" lift lies from {-100 * self.floor:.1f} to {100 * (1 - self.floor):+.1f}"
            )

    @property
    def lift(self) -> float:
        """The lift pooled over questions."""
        sizes = [database.questions for database in self.databases]
        return float(np.average([database.lift for database in self.databases], weights=sizes))


def sampling_variance(database: DatabaseTruth, truth: Truth, *, questions: int, seeds: int, held_out: float) -> float:
    """The variance of a database's observed lift when its true one is known: which questions, which churn.

    A question is right or wrong without memory whatever the seed, and is held out under m of the seeds. Its squared
    sum of changes has the mean m·p + m(m-1)·(r·p + (1-r)·p²), where p is the chance of a change and r the share of
    changes that every seed repeats.
    """
    once = seeds * held_out
    twice = seeds * (seeds - 1) * held_out**2
    squares = 0.0
    for share, chance, repeat in (
        (1 - database.floor, database.fixed, truth.fixes_repeat),
        (database.floor, database.broke, truth.breaks_repeat),
    ):
        rate = chance / share if share > 0 else 0.0
        squares += share * (once * rate + twice * (repeat * rate + (1 - repeat) * rate**2))
    mean = once * database.lift
    # Holding out a fixed share of the questions takes the variance of m itself out of the mean.
    centred = squares - mean**2 - database.lift**2 * once * (1 - held_out)
    return max(0.0, centred) / (questions * once**2)


def without_noise(truth: Truth) -> tuple[Truth, float]:
    """The truth with its databases' lifts drawn together, and the standard deviation between them that is left.

    Observed lifts differ by chance too. Taken as they stand, a simulation would add that noise a second time; so they
    are pulled towards their mean until sampling explains the rest.
    """
    lifts = np.array([database.lift for database in truth.databases])
    if len(lifts) < 2:
        return truth, 0.0
    noise = [
        sampling_variance(database, truth, questions=database.questions, seeds=truth.seeds, held_out=truth.held_out)
        for database in truth.databases
    ]
    observed = float(lifts.var(ddof=1))
    spread = sqrt(max(0.0, observed - float(np.mean(noise))))
    shrink = spread / sqrt(observed) if observed else 0.0
    moved = tuple(database.moved_by(truth.lift + shrink * (database.lift - truth.lift)) for database in truth.databases)
    return replace(truth, databases=moved), spread


def truth_from_pairs(
    *, name: str, pairs: Sequence[Pair], repaired: Floats | None, held_out: float, folds: bool = False
) -> Truth:
    """Take what a pilot study found as a truth to plan by; `repaired` says for each pair whether repair solves it.

    Folds hold every question out once, which is one split that holds out all of them.
    """
    if not pairs:
        raise DataError("no question was answered with and without memory: a pilot needs both")
    seeds = 1 if folds else len({pair.after.seed for pair in pairs})
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(pair.after.database, []).append(pair)
    wrong = np.array([not pair.before.right for pair in pairs])
    fixed = np.array([pair.verdict == "fix" for pair in pairs])
    solved = np.zeros(len(pairs)) if repaired is None else np.asarray(repaired, dtype=float)
    return Truth(
        name=name,
        databases=tuple(_observed(database, members, seeds, held_out) for database, members in groups.items()),
        seeds=seeds,
        held_out=held_out,
        fixes_repeat=_repeating(pairs, "fix"),
        breaks_repeat=_repeating(pairs, "break"),
        repaired=float(solved[wrong].mean()) if wrong.any() else 0.0,
        repaired_if_fixed=float(solved[fixed].mean()) if fixed.any() else 0.0,
    )


def _observed(name: str, pairs: Sequence[Pair], seeds: int, held_out: float) -> DatabaseTruth:
    count = len(pairs)
    return DatabaseTruth(
        name=name,
        questions=max(1, round(count / (seeds * held_out))),
        floor=sum(pair.before.right for pair in pairs) / count,
        fixed=sum(pair.verdict == "fix" for pair in pairs) / count,
        broke=sum(pair.verdict == "break" for pair in pairs) / count,
    )


def _repeating(pairs: Sequence[Pair], kind: str) -> float:
    """Of the changes in questions that several seeds hold out, the share that every seed repeats."""
    counts: dict[str, int] = {}
    for pair in pairs:
        counts[pair.after.question] = counts.get(pair.after.question, 0) + 1
    repeated = [pair for pair in pairs if counts[pair.after.question] > 1]
    stable = stability(repeated)
    stable_questions = set(stable.stable_fixes if kind == "fix" else stable.stable_breaks)
    changes = [pair for pair in repeated if pair.verdict == kind]
    return sum(pair.after.question in stable_questions for pair in changes) / len(changes) if changes else 0.5


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
