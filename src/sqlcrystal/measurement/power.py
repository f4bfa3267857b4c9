"""The power of a study before it is run: detectable lift, expected intervals, the size a lift needs, and its calls.

Closed forms answer at once and for any size; simulated studies with the same truth (`simulation`) check them and show
what the interval will look like.
"""

from math import isfinite, sqrt
from typing import Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from sqlcrystal.measurement import clusters
from sqlcrystal.measurement.clusters import Floats
from sqlcrystal.measurement.simulation import (
    DatabaseTruth,
    Population,
    Studies,
    Truth,
    intervals,
    ratios,
    sampling_variance,
    simulate,
)
from sqlcrystal.measurement.statistics import ALPHA, LARGEST_PP, POWER, detectable, possible

Dimension = Literal["databases", "questions", "seeds"]
LARGEST: dict[str, int] = {"databases": 1_000_000, "questions": 1_000_000, "seeds": 1_000}
"""The end of the search for a size: beyond it the answer is that no such study exists."""
LIKE_NORMAL = 500
"""Degrees of freedom from which the noncentral t is the normal distribution, and its routine gives up."""
QUESTIONS_AT_ONCE = 1_000_000
"""Questions simulated at once: some hundred megabytes."""


class PlannedStudy(Struct, frozen=True, kw_only=True):
    """A study to be run, and the truth it is assumed to meet; lift and spread in percentage points."""

    databases: int
    questions: int | None
    """Of each database; None for sizes as the truth has them."""
    seeds: int
    held_out: float
    lift_pp: float
    spread_pp: float
    """Standard deviation of the lift between databases."""
    family: int = 1
    """Over how many contrasts Holm's adjustment runs; the power is that of the contrast which it asks most of."""
    folds: int = 0
    """Into how many folds questions are dealt; each is then held out once: one seed that holds out everything."""


class Forecast(Struct, frozen=True, kw_only=True):
    """The resolution of a design, in percentage points."""

    design: PlannedStudy
    n_questions: int
    n_pairs: int
    """Held-out question–seed pairs."""
    standard_error_pp: float
    df: float
    power: float
    """The chance that a two-sided 5 % test tells the lift from zero, within its family."""
    detectable_pp: float | None
    """The lift that is told from zero with 80 % power; None where it takes more than is wrong without memory."""
    interval_pp: tuple[float, float]
    """The 95 % interval to expect."""


class ExpectedInterval(Struct, frozen=True, kw_only=True):
    """The reports of simulated studies of a design, by one method; intervals are medians of their ends."""

    method: str
    studies: int
    interval_pp: tuple[float, float] | None
    """None where no simulated study has an interval."""
    width_pp: float | None
    """The mean width."""
    told_from_zero: float
    """Share of studies whose interval excludes zero."""
    covered: float
    """Share of studies whose interval holds the true lift."""


class ExpectedRatio(Struct, frozen=True, kw_only=True):
    """The crystallization ratio that simulated studies report, in percent."""

    ratio: float | None
    interval: tuple[float, float] | None
    unbounded: float
    """Share of studies whose interval has no end on at least one side."""


def databases_of(truth: Truth, design: PlannedStudy) -> list[DatabaseTruth]:
    """The design's databases: the truth's in turn, as often as needed, each with the design's lift and size."""
    like = [database.moved_by(design.lift_pp / 100) for database in truth.databases]
    sized = like if design.questions is None else [replace(database, questions=design.questions) for database in like]
    return [sized[index % len(sized)] for index in range(min(design.databases, len(sized)))]


def forecast(truth: Truth, design: PlannedStudy) -> Forecast:
    """The closed form: sampling within databases, the spread between them, and Satterthwaite's degrees of freedom."""
    from scipy.special import stdtrit

    kinds = databases_of(truth, design)
    base, extra = divmod(design.databases, len(kinds))
    often = base + (np.arange(len(kinds)) < extra).astype(float)
    pairs = np.array([max(1, round(kind.questions * design.held_out)) * design.seeds for kind in kinds], dtype=float)
    within = [
        sampling_variance(kind, truth, questions=kind.questions, seeds=design.seeds, held_out=design.held_out)
        for kind in kinds
    ]
    total = float(often @ pairs)
    variance = often @ (pairs**2 * (1e4 * np.array(within) + design.spread_pp**2)) / total**2
    error, df = sqrt(float(variance)), _degrees(pairs, often)
    reach = float(stdtrit(df, 1 - ALPHA / 2)) * error
    smallest = detectable(standard_error=error, df=df, alpha=ALPHA / design.family)
    return Forecast(
        design=design,
        n_questions=int(often @ np.array([kind.questions for kind in kinds])),
        n_pairs=int(total),
        standard_error_pp=error,
        df=df,
        power=_power(design.lift_pp, error, df, ALPHA / design.family),
        detectable_pp=smallest if smallest <= 100 * (1 - truth.floor) else None,
        interval_pp=(possible(design.lift_pp - reach), possible(design.lift_pp + reach)),
    )


def _power(lift: float, error: float, df: float, alpha: float) -> float:
    """The chance that a two-sided t-test tells a lift from zero."""
    from scipy.special import nctdtr, ndtr, stdtrit

    if not error:
        return 1.0 if lift else alpha
    critical = float(stdtrit(df, 1 - alpha / 2))
    shift = abs(lift) / error
    exact = 1 - float(nctdtr(df, shift, critical)) + float(nctdtr(df, shift, -critical))
    if df > LIKE_NORMAL or not isfinite(exact):  # the library gives none for lifts of very many errors, all found
        return float(ndtr(shift - critical) + ndtr(-shift - critical))
    return exact


def _degrees(sizes: Floats, often: Floats) -> float:
    """Satterthwaite's degrees of freedom with `often` databases of each size, without writing them all out."""
    share = sizes / float(often @ sizes)
    leverage = share**2 / (1 - share)
    return 1 / float(often @ share**2 + (often @ leverage) ** 2 - often @ leverage**2)


def needed(truth: Truth, design: PlannedStudy, dimension: Dimension, *, power: float = POWER) -> int | None:
    """The smallest number of databases, questions a database, or seeds that gives the power; None where none does."""

    def enough(size: int) -> bool:
        return forecast(truth, _with(design, dimension, size)).power >= power

    low = clusters.FEWEST_DATABASES if dimension == "databases" else 4 if dimension == "questions" else 1
    high = low
    while not enough(high):
        if high >= LARGEST[dimension]:
            return None
        low, high = high + 1, min(2 * high, LARGEST[dimension])
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return high


def _with(design: PlannedStudy, dimension: Dimension, size: int) -> PlannedStudy:
    if dimension == "databases":
        return replace(design, databases=size)
    if dimension == "questions":
        return replace(design, questions=size)
    return replace(design, seeds=size)


def expected(
    truth: Truth, design: PlannedStudy, *, method: str, studies: int, rng: np.random.Generator, resamples: int = 500
) -> ExpectedInterval:
    """Tell what simulated studies of the design report."""
    parts = [
        intervals(batch, method=method, rng=rng, resamples=resamples)
        for batch in _simulated(truth, design, studies, rng)
    ]
    value, low, high = (np.concatenate([getattr(part, name) for part in parts]) for name in ("value", "low", "high"))
    low, high = np.clip(low, -LARGEST_PP, LARGEST_PP), np.clip(high, -LARGEST_PP, LARGEST_PP)
    defined = np.isfinite(low)
    outside = (low > 0) | (high < 0)
    return ExpectedInterval(
        method=method,
        studies=len(value),
        interval_pp=(float(np.median(low[defined])), float(np.median(high[defined]))) if defined.any() else None,
        width_pp=float(np.mean(high[defined] - low[defined])) if defined.any() else None,
        told_from_zero=float(np.mean(outside)),
        covered=float(np.mean(~((low > design.lift_pp) | (high < design.lift_pp)))),
    )


def expected_ratio(
    truth: Truth, design: PlannedStudy, *, studies: int, rng: np.random.Generator
) -> ExpectedRatio | None:
    """The ratio that simulated studies report, by Fieller's theorem; None where repair leaves no headroom."""
    if truth.repaired <= 0:
        return None
    simulated = [ratios(batch) for batch in _simulated(truth, design, studies, rng)]
    values = np.concatenate([value for value, _ in simulated])
    fieller_sets = [fieller_set for _, sets in simulated for fieller_set in sets]
    ends = [(fieller_set.low, fieller_set.high) for fieller_set in fieller_sets if fieller_set.shape == "bounded"]
    middle = np.median(np.array(ends, dtype=float), axis=0) if ends else None
    return ExpectedRatio(
        ratio=float(np.nanmedian(values)) if np.isfinite(values).any() else None,
        interval=(float(middle[0]), float(middle[1])) if middle is not None else None,
        unbounded=1 - len(ends) / len(fieller_sets),
    )


def _simulated(truth: Truth, design: PlannedStudy, studies: int, rng: np.random.Generator) -> list[Studies]:
    """Studies of the design, so many at a time that memory stays bounded."""
    kinds = databases_of(truth, design)
    kinds = [kinds[index % len(kinds)] for index in range(design.databases)]
    step = max(1, QUESTIONS_AT_ONCE // sum(kind.questions for kind in kinds))
    return [
        simulate(
            _population(kinds, design, min(step, studies - start), rng),
            truth,
            seeds=design.seeds,
            held_out=design.held_out,
            rng=rng,
        )
        for start in range(0, studies, step)
    ]


def _population(kinds: list[DatabaseTruth], design: PlannedStudy, studies: int, rng: np.random.Generator) -> Population:
    """The design's databases in every study, their lifts drawn anew around the common one."""
    parameters = np.array([(kind.questions, kind.floor, kind.broke) for kind in kinds])
    sizes, floor, breaks = np.repeat(parameters.T[:, None, :], studies, axis=1)
    own = design.lift_pp / 100 + design.spread_pp / 100 * rng.standard_normal(sizes.shape)
    broke = np.minimum(floor, np.maximum(breaks, -own))
    return Population(sizes.astype(np.int64), floor, np.clip(broke + own, 0, 1 - floor), broke)


class CallProfile(Struct, frozen=True, kw_only=True):
    """The cost of answering and repairing one question, from the paper's account or a pilot's ledger."""

    name: str
    answer_tokens: float
    """Prompt and completion of one attempt without memory."""
    memory_tokens: float
    """The tokens that cards add to it."""
    failing: float
    """Share of first attempts that fail, and so are repaired."""
    repair_calls: float
    """Calls that repairing one failure takes."""
    repair_tokens: float
    seconds_per_call: float | None = None


class StudyEffort(Struct, frozen=True, kw_only=True):
    """Calls and tokens of a whole study.

    Without memory a question's prompts are the same under every seed, so a recording answers them once for collection,
    P_0 and P_K; what memory adds is asked for each seed and arm. `calls_unrecorded` is what it would be without one.
    """

    calls: int
    tokens: int
    calls_unrecorded: int
    hours: float | None
    """None where nobody has measured how long a call takes."""


def effort(forecast: Forecast, profile: CallProfile, *, arms: int = 1, jobs: int = 1) -> StudyEffort:
    """The calls of one collection, P_0 and P_K, and of `arms` memory arms on held-out questions."""
    questions, pairs, design = forecast.n_questions, forecast.n_pairs, forecast.design
    collections = design.folds - 1 if design.folds else design.seeds
    repaired = 1 + profile.failing * profile.repair_calls
    calls = questions * repaired + arms * pairs
    tokens = questions * (profile.answer_tokens + profile.failing * profile.repair_tokens)
    tokens += arms * pairs * (profile.answer_tokens + profile.memory_tokens)
    unrecorded = collections * questions * repaired + (1 + arms) * pairs
    seconds = profile.seconds_per_call
    return StudyEffort(
        calls=round(calls),
        tokens=round(tokens),
        calls_unrecorded=round(unrecorded),
        hours=None if seconds is None else calls * seconds / jobs / 3600,
    )


DIMENSIONS: tuple[Dimension, ...] = ("databases", "questions", "seeds")
SLOW_METHOD_STUDIES = 300
"""Bootstrapped studies: each costs as much as thousands of the others."""
LARGEST_SIMULATED = 2_000_000
"""Questions of a study beyond which there is nothing left to simulate: the closed form is then exact enough."""
MOST_QUESTIONS = 400_000_000
"""Questions simulated in all: some minutes."""


class Curve(Struct, frozen=True, kw_only=True):
    """One line of a figure."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]


class Prospect(Struct, frozen=True, kw_only=True):
    """The resolution of a design, its expected intervals, the size that a lift needs, and the cost."""

    truth: str
    forecast: Forecast
    power_wanted: float
    expected: tuple[ExpectedInterval, ...]
    ratio: ExpectedRatio | None
    needed: dict[str, int | None]
    """The size that gives the wanted power when the other two stay as they are; None where no size does."""
    effort: StudyEffort
    power_by_lift: tuple[Curve, ...]
    detectable_by_databases: tuple[Curve, ...]


def prospect(
    truth: Truth,
    calls: CallProfile,
    design: PlannedStudy,
    *,
    studies: int,
    rng: np.random.Generator,
    power: float = POWER,
    arms: int = 1,
    jobs: int = 1,
) -> Prospect:
    """Plan a study: in closed form, then simulated with the same truth."""
    truth.check_lift(design.lift_pp)
    closed_form = forecast(truth, design)
    simulable = closed_form.n_questions <= LARGEST_SIMULATED
    count = min(studies, max(50, MOST_QUESTIONS // closed_form.n_questions))
    by_method = {"cr2": count, "two-stage": min(count, SLOW_METHOD_STUDIES)} if simulable else {}
    return Prospect(
        truth=truth.name,
        forecast=closed_form,
        power_wanted=power,
        expected=tuple(
            expected(truth, design, method=method, studies=many, rng=rng) for method, many in by_method.items()
        ),
        ratio=expected_ratio(truth, design, studies=count, rng=rng) if simulable else None,
        needed={dimension: needed(truth, design, dimension, power=power) for dimension in DIMENSIONS},
        effort=effort(closed_form, calls, arms=arms, jobs=jobs),
        power_by_lift=_power_by_lift(truth, design, closed_form),
        detectable_by_databases=_detectable_by_databases(truth, design),
    )


def _power_by_lift(truth: Truth, design: PlannedStudy, closed_form: Forecast) -> tuple[Curve, ...]:
    """The power at each lift: as designed, with half the databases, with twice as many."""
    most = 100 * (1 - truth.floor)
    found = most if closed_form.detectable_pp is None else closed_form.detectable_pp
    lifts = np.linspace(0, min(most, 2 * max(found, abs(design.lift_pp))), 41)
    return tuple(
        Curve(
            name=f"{count} databases",
            x=tuple(map(float, lifts)),
            y=tuple(forecast(truth, replace(design, databases=count, lift_pp=float(lift))).power for lift in lifts),
        )
        for count in sorted({max(3, design.databases // 2), design.databases, 2 * design.databases})
    )


def _detectable_by_databases(truth: Truth, design: PlannedStudy) -> tuple[Curve, ...]:
    """The lift found with 80 % power, against databases: with one seed and with the design's, at two sizes."""
    counts = [int(count) for count in np.unique(np.geomspace(3, max(100, 4 * design.databases), 30).astype(int))]
    size = forecast(truth, design).n_questions // design.databases
    curves = []
    for questions, seeds in dict.fromkeys(((size, 1), (size, design.seeds), (4 * size, design.seeds))):
        designs = (replace(design, databases=count, questions=questions, seeds=seeds) for count in counts)
        found = [(each.databases, forecast(truth, each).detectable_pp) for each in designs]
        points = [(float(count), lift) for count, lift in found if lift is not None]
        name = f"{questions} questions each, {seeds} seed{'s' if seeds > 1 else ''}"
        curves.append(Curve(name=name, x=tuple(x for x, _ in points), y=tuple(y for _, y in points)))
    return tuple(curves)
