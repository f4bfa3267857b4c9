"""The settings kept apart, P_0, P_M and P_K on held-out questions; and the ratio made of them, lift over headroom.

Accuracy is over all questions, an unevaluable one counting as wrong; the evaluable-only figure always stands beside it.
"""

from collections.abc import Iterable, Sequence
from math import sqrt
from typing import Literal, Protocol

import numpy as np
from msgspec import Struct

from sqlcrystal.errors import ConfigError, DataError
from sqlcrystal.measurement import clusters
from sqlcrystal.measurement.clusters import DEFAULT_METHOD, RESAMPLES, Floats, percentile, two_stage_totals
from sqlcrystal.measurement.flips import UNEVALUABLE
from sqlcrystal.measurement.outcomes import JudgedQuestion, QuestionTable, question_table
from sqlcrystal.measurement.statistics import check_method

Shape = Literal["bounded", "outside", "unbounded"]


class FiellerSet(Struct, frozen=True):
    """The ratios kept: from low to high; outside low to high; or all of them, when the ends are None."""

    shape: Shape
    low: float | None = None
    high: float | None = None

    def __contains__(self, ratio: float) -> bool:
        if self.low is None or self.high is None:
            return True
        inside = self.low <= ratio <= self.high
        return inside if self.shape == "bounded" else not self.low < ratio < self.high


def fieller(*, lift: float, headroom: float, lift_parts: Floats, headroom_parts: Floats, df: float) -> FiellerSet:
    """The set of ratios r with |lift - r × headroom| within t standard errors, from each database's part of the errors.

    Squared, that is a quadratic in r: a r² - 2 b r + c <= 0.
    """
    from scipy.special import stdtrit

    squared = float(stdtrit(df, 0.975)) ** 2
    a = headroom**2 - squared * float(np.sum(headroom_parts**2))
    b = lift * headroom - squared * float(np.sum(lift_parts * headroom_parts))
    c = lift**2 - squared * float(np.sum(lift_parts**2))
    discriminant = b**2 - a * c
    if a == 0 or discriminant <= 0:
        return FiellerSet("unbounded")
    ends = sorted(((b - sqrt(discriminant)) / a, (b + sqrt(discriminant)) / a))
    return FiellerSet("bounded" if a > 0 else "outside", *ends)


# ── the ratio itself ─────────────────────────────────────────────────────────────────────────────────────────────────


class RepairedOnce(JudgedQuestion, Protocol):
    """One question before and after repair, whatever record holds it."""

    @property
    def first_right(self) -> bool: ...


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
        """Tell how many questions on-demand repair adds."""
        return self.repaired - self.repair_floor

    @property
    def lift(self) -> int:
        """Tell how many questions memory adds net."""
        return self.memory - self.floor


class CrystallizationRatio(Struct, frozen=True, kw_only=True):
    """CR in percent (None where repair leaves no headroom), always beside the absolute lift."""

    pooled: float | None
    """The lift over the headroom with all seeds together: the headline, which its Fieller interval is about."""
    per_seed: tuple[float | None, ...]
    mean: float | None
    """The mean of the seeds' ratios, as in the paper; None where one seed has none."""
    lift_pp: float


def crystallization_ratio(*, seeds: Sequence[SeedCounts]) -> CrystallizationRatio:
    """The ratio over all seeds and of each of them, computed on counts before rounding."""
    if not seeds:
        raise ConfigError("seeds: at least one is needed for a ratio")
    per_seed = tuple(_percent(seed.lift, seed.headroom) for seed in seeds)
    defined = [ratio for ratio in per_seed if ratio is not None]
    return CrystallizationRatio(
        pooled=_percent(sum(seed.lift for seed in seeds), sum(seed.headroom for seed in seeds)),
        per_seed=per_seed,
        mean=float(np.mean(defined)) if len(defined) == len(seeds) else None,
        lift_pp=100 * sum(seed.lift for seed in seeds) / sum(seed.n for seed in seeds),
    )


def _percent(lift: int, headroom: int) -> float | None:
    return 100 * lift / headroom if headroom > 0 else None


class WholeHeadroom(Struct, frozen=True, kw_only=True):
    """Repair without memory over every question of a benchmark, collected or held out, each counted once."""

    n: int
    floor: int
    repaired: int

    @property
    def headroom_pp(self) -> float:
        """Tell how many points repair adds."""
        return 100 * (self.repaired - self.floor) / self.n

    def share(self, lift_pp: float) -> float | None:
        """The held-out lift over this headroom, in percent."""
        return 100 * lift_pp / self.headroom_pp if self.headroom_pp > 0 else None


def whole_headroom(rows: Iterable[RepairedOnce]) -> WholeHeadroom | None:
    """Count every question once, whatever the seeds; None over no question.

    The draw of held-out questions moves a headroom by points; all of them together leave only the benchmark itself.
    """
    first: dict[tuple[str, str], RepairedOnce] = {}
    for row in rows:
        first.setdefault((row.database, row.question), row)
    if not first:
        return None
    return WholeHeadroom(
        n=len(first),
        floor=sum(row.first_right for row in first.values()),
        repaired=sum(row.right for row in first.values()),
    )


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
    """The lift over the headroom with all seeds together."""
    low: float | None
    high: float | None
    shape: Literal["bounded", "outside", "unbounded", ""]
    """The interval lies between its ends, outside them, or is the whole line; empty where there is none."""
    method: str
    n_databases: int
    n_questions: int
    undefined_share: float = 0.0
    """Share of resamples without headroom; two-stage only."""
    undefined: str = ""


def ratio_table(outcomes: Sequence[HeldOut]) -> QuestionTable:
    """Per question, the number of pairs, the lift and the headroom, all seeds together."""
    columns = np.array([(1.0, row.memory - row.floor, row.repaired - row.repair_floor) for row in outcomes])
    return question_table([row.database for row in outcomes], [row.question for row in outcomes], columns)


def pooled_ratio(totals: Floats) -> Floats:
    """CR in percent per resample; NaN where there is no headroom."""
    lift, headroom = totals[:, 1], totals[:, 2]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(headroom > 0, 100 * lift / headroom, np.nan))


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
    value = float(pooled_ratio(table.totals.sum(axis=0, keepdims=True))[0])
    share, interval, why = 0.0, None, _undefined(table, value)
    if not why and method == "two-stage":
        draws = pooled_ratio(two_stage_totals(table=table, rng=rng, resamples=resamples))
        defined = draws[np.isfinite(draws)]
        share = 1 - len(defined) / len(draws)
        ends = percentile(defined) if len(defined) else None
        interval = FiellerSet("bounded", ends.low, ends.high) if ends else FiellerSet("unbounded")
    elif not why:
        interval = _fieller(table, method)
    return RatioEstimate(
        value=value if np.isfinite(value) else None,
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
    """Tell why there is no interval, in words: no ratio at all, or no interval of the lift to agree with."""
    if not np.isfinite(value):
        return "the ratio is undefined: repair leaves no headroom"
    changes = np.stack([100 * table.values[:, 1], table.values[:, 0]], axis=1)
    lifts = QuestionTable(table.database, changes, table.names)
    return clusters.undefined(*lifts.totals.T) or clusters.too_alike(lifts)


def _fieller(table: QuestionTable, method: str) -> FiellerSet:
    """Fieller's set in percent, with the errors and degrees of freedom of the method that judges the lift."""
    sizes, lift, headroom = table.totals.T
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


class AnsweredQuestion(JudgedQuestion, Protocol):
    """An answer as accuracies need it: right at last, right at first, how it ended, and what every rule says."""

    @property
    def first_right(self) -> bool:
        """Tell whether the first attempt was right."""
        ...

    @property
    def kind(self) -> str:
        """Tell how it ended."""
        ...

    @property
    def rules(self) -> dict[str, bool]:
        """Tell what every rule says."""
        ...


class Accuracy(Struct, frozen=True, kw_only=True):
    """Right answers over all questions, and over those that could be judged; None over no question at all."""

    n: int
    right: int
    evaluable: int

    @property
    def percent(self) -> float | None:
        """Over all questions."""
        return 100 * self.right / self.n if self.n else None

    @property
    def percent_evaluable(self) -> float | None:
        """Over the evaluable ones."""
        return 100 * self.right / self.evaluable if self.evaluable else None


class Settings(Struct, frozen=True, kw_only=True):
    """Everything measured of one memory, in its separate settings; `by_rule` repeats P_0 and P_M under every rule."""

    floor: Accuracy
    memory: Accuracy
    repaired: Accuracy
    replay: Accuracy
    retention: Accuracy
    rerun: Accuracy
    seeds: tuple[SeedCounts, ...]
    ratio: CrystallizationRatio | None
    by_rule: dict[str, tuple[Accuracy, Accuracy]]


def accuracy(answers: Iterable[AnsweredQuestion], *, rule: str | None = None, first: bool = False) -> Accuracy:
    """Count right answers: by the headline rule or a named one, of the final SQL or the first attempt."""
    listed = list(answers)
    bits = [
        outcome.first_right if first else outcome.right if rule is None else outcome.rules[rule] for outcome in listed
    ]
    judged = sum(outcome.kind not in UNEVALUABLE for outcome in listed)
    return Accuracy(n=len(listed), right=sum(bits), evaluable=judged)


def measure(
    *,
    floor: Sequence[AnsweredQuestion],
    memory: Sequence[AnsweredQuestion],
    repaired: Sequence[AnsweredQuestion] = (),
    replay: Sequence[AnsweredQuestion] = (),
    retention: Sequence[AnsweredQuestion] = (),
    rerun: Sequence[AnsweredQuestion] = (),
) -> Settings:
    """The settings of one memory against its floor; the ratio needs the repair pass, and is None without it."""
    rules = sorted({rule for outcome in floor for rule in outcome.rules})
    counts = seed_counts(floor=floor, memory=memory, repaired=repaired) if repaired else ()
    return Settings(
        floor=accuracy(floor),
        memory=accuracy(memory),
        repaired=accuracy(repaired),
        replay=accuracy(replay),
        retention=accuracy(retention),
        rerun=accuracy(rerun),
        seeds=counts,
        ratio=crystallization_ratio(seeds=counts) if counts else None,
        by_rule={rule: (accuracy(floor, rule=rule), accuracy(memory, rule=rule)) for rule in rules},
    )


def seed_counts(
    *, floor: Sequence[AnsweredQuestion], memory: Sequence[AnsweredQuestion], repaired: Sequence[AnsweredQuestion]
) -> tuple[SeedCounts, ...]:
    """Per seed, the counts the ratio is made of."""
    return tuple(
        SeedCounts(
            n=sum(outcome.seed == seed for outcome in floor),
            floor=_right(floor, seed),
            memory=_right(memory, seed),
            repaired=_right(repaired, seed),
            repair_floor=sum(outcome.first_right for outcome in repaired if outcome.seed == seed),
        )
        for seed in dict.fromkeys(outcome.seed for outcome in floor)
    )


def held_out(
    *, floor: Sequence[AnsweredQuestion], memory: Sequence[AnsweredQuestion], repaired: Sequence[AnsweredQuestion]
) -> list[HeldOut]:
    """The three passes side by side, question by question, for the ratio's interval."""
    tables = [
        {(outcome.seed, outcome.database, outcome.question): outcome for outcome in answers}
        for answers in (floor, memory, repaired)
    ]
    if not tables[0].keys() == tables[1].keys() == tables[2].keys():
        raise DataError("held-out: the floor, memory and repair passes do not answer the same questions")
    return [
        HeldOut(
            database=key[1],
            question=key[2],
            seed=str(key[0]),
            floor=outcome.right,
            memory=tables[1][key].right,
            repair_floor=tables[2][key].first_right,
            repaired=tables[2][key].right,
        )
        for key, outcome in tables[0].items()
    ]


def _right(answers: Sequence[AnsweredQuestion], seed: int) -> int:
    return sum(outcome.right for outcome in answers if outcome.seed == seed)
