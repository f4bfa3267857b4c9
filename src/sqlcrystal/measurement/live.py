"""The live lift: a difference of two shares with an interval that holds at every look.

People look every day and stop when they like what they see, which an interval of fixed sample does not survive. This
one is a confidence sequence: with the chance of 95 % it holds the truth at *all* looks together. docs/adr/0009 has the
choice, docs/reference/live.md the measured coverage.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from sqlcrystal.measurement.statistics import ALPHA, POWER

LIKELY_LIFT = 0.07
"""The scale of lift for which the interval is narrowest; other lifts cost width, never coverage."""
PRIOR = 2.0
"""Right and wrong verdicts added to each arm when its variance is taken: few verdicts that agree are no certainty."""
FEWEST = 5
"""Verdicts that each arm needs before there is an interval."""
MATTERS_PP = 5.0
"""The lift, in points, that a team wants to know of unless it says otherwise."""
USUAL_SETTLED = 0.33
"""The share of questions that both arms answer alike, where nothing is known yet: at least so many of Quarry's."""
MOST_VERDICTS = 10_000_000

Count = NDArray[np.float64] | float
"""One number, or one for every look or simulated month."""


@dataclass(frozen=True)
class Tally:
    """Verdicts of the two arms while one share was held out; one verdict a question and day.

    `settled` counts the questions that both arms answered alike: there, memory changed nothing, whoever was shown.
    They stand in neither arm.
    """

    with_memory: Any
    right_with: Any
    without: Any
    right_without: Any
    settled: Any = 0.0

    @property
    def total(self) -> Any:
        """All verdicts."""
        return self.with_memory + self.without + self.settled

    @property
    def usable(self) -> Any:
        """Tell whether both arms have enough verdicts for an interval."""
        return np.minimum(self.with_memory, self.without) >= FEWEST


@dataclass(frozen=True)
class Bounds:
    """A lift with its variance and the ends of its interval, as shares; infinite where there is no interval yet."""

    lift: Any
    variance: Any
    low: Any
    high: Any


@dataclass(frozen=True)
class Asked:
    """All answers that chance gave to each arm, judged or not; `settled` as in a tally."""

    with_memory: Any
    without: Any
    settled: Any = 0.0


class WorstCase(Struct, frozen=True, kw_only=True):
    """The bounds of the lift over all answers, whatever the verdicts on unjudged ones would be, in points."""

    low_pp: float
    high_pp: float
    unjudged: float
    """Percent of the answers that nobody judged and that would tell: not those that both arms answered alike."""


class VerdictRate(Struct, frozen=True, kw_only=True):
    """The answers of a kind that were given and judged."""

    memory: bool
    trouble: bool | None
    """True if the answer showed a sign of trouble; None where that was not kept."""
    asked: int
    judged: int


class VerdictSelection(Struct, frozen=True, kw_only=True):
    """Differences between verdict rates beyond chance, in points; None where there is none, or none can be told."""

    by_arm_pp: float | None
    """Rate with memory less rate without."""
    by_trouble_pp: float | None
    """Rate of answers with a sign of trouble less rate of the others."""

    @property
    def selective(self) -> bool:
        """Tell whether what was judged differs from what was asked, so that the lift among verdicts may be theirs."""
        return self.by_arm_pp is not None or self.by_trouble_pp is not None


class LiveLift(Struct, frozen=True, kw_only=True):
    """The lift of memory among answers that got a verdict, in points; no ends while an arm has too few verdicts."""

    value_pp: float | None
    low_pp: float | None
    high_pp: float | None
    left_out: int
    """Verdicts given while a share was held out that one arm has too few verdicts of."""

    @property
    def excludes_zero(self) -> bool:
        """Tell whether memory is known to help, or to harm."""
        return self.low_pp is not None and self.high_pp is not None and (self.low_pp > 0 or self.high_pp < 0)


def bounds(strata: Sequence[Tally], *, alpha: float = ALPHA) -> Bounds:
    """The lift over all verdicts, each share that was ever held out compared within itself."""
    total = sum(stratum.total for stratum in strata)
    lift: Any = 0.0
    variance: Any = 0.0
    usable: Any = True
    for stratum in strata:
        weight = stratum.total / total
        difference, spread = _difference(stratum)
        lift = lift + weight * difference
        variance = variance + weight**2 * spread
        usable = usable & stratum.usable
    half = np.where(usable, reach(variance=variance, alpha=alpha), np.inf)
    return Bounds(lift, variance, lift - half, lift + half)


def reach(*, variance: Any, alpha: float = ALPHA, likely: float = LIKELY_LIFT) -> Any:
    """Half the width of a confidence sequence around a mean of that variance: Robbins' normal mixture."""
    with np.errstate(divide="ignore", invalid="ignore"):
        information = likely**2 / np.asarray(variance, dtype=float)
        return np.sqrt(2 * variance * (1 + 1 / information) * np.log(np.sqrt(1 + information) / alpha))


def live_lift(strata: Sequence[Tally], *, alpha: float = ALPHA) -> LiveLift:
    """The lift as a team reads it, today."""
    used = [stratum for stratum in strata if bool(stratum.usable)]
    left_out = int(sum(stratum.total for stratum in strata if not bool(stratum.usable)))
    if not used:
        return LiveLift(value_pp=None, low_pp=None, high_pp=None, left_out=left_out)
    interval = bounds(used, alpha=alpha)
    low, high = max(-1.0, float(interval.low)), min(1.0, float(interval.high))
    return LiveLift(value_pp=100 * float(interval.lift), low_pp=100 * low, high_pp=100 * high, left_out=left_out)


def worst_bounds(strata: Sequence[tuple[Tally, Asked]], *, alpha: float = ALPHA) -> Bounds:
    """The lift over all answers: lowest where unjudged ones are wrong with memory and right without, or the reverse.

    `lift` and `variance` are those of the middle of the two extremes.
    """
    lowest = bounds([_imputed(tally, asked, memory_right=False) for tally, asked in strata], alpha=alpha)
    highest = bounds([_imputed(tally, asked, memory_right=True) for tally, asked in strata], alpha=alpha)
    middle, variance = (lowest.lift + highest.lift) / 2, np.maximum(lowest.variance, highest.variance)
    return Bounds(middle, variance, lowest.low, highest.high)


def _imputed(tally: Tally, asked: Asked, *, memory_right: bool) -> Tally:
    unjudged_with, unjudged_without = asked.with_memory - tally.with_memory, asked.without - tally.without
    return Tally(
        asked.with_memory,
        tally.right_with + unjudged_with * memory_right,
        asked.without,
        tally.right_without + unjudged_without * (not memory_right),
        asked.settled,
    )


def worst_case(strata: Sequence[tuple[Tally, Asked]], *, alpha: float = ALPHA) -> WorstCase | None:
    """The bounds as a team reads them; a share that an arm has too few answers of is left out; None without any."""
    used = [(tally, asked) for tally, asked in strata if min(asked.with_memory, asked.without) >= FEWEST]
    if not used:
        return None
    ends = worst_bounds(used, alpha=alpha)
    asked = sum(asked.with_memory + asked.without + asked.settled for _, asked in used)
    open_ = sum(asked.with_memory + asked.without for _, asked in used)
    unjudged = open_ - sum(tally.with_memory + tally.without for tally, _ in used)
    return WorstCase(
        low_pp=100 * max(-1.0, float(ends.low)),
        high_pp=100 * min(1.0, float(ends.high)),
        unjudged=100 * float(unjudged / asked),
    )


def verdict_selection(rates: Sequence[VerdictRate]) -> VerdictSelection:
    """Tell whether answers of one arm, or those that show a sign of trouble, are judged more often than the others.

    Equal rates prove nothing: who judges wrong answers less often does so in both arms.
    """
    kept = [rate for rate in rates if rate.trouble is not None]
    return VerdictSelection(
        by_arm_pp=_rates_apart([r for r in rates if r.memory], [r for r in rates if not r.memory]),
        by_trouble_pp=_rates_apart([r for r in kept if r.trouble], [r for r in kept if not r.trouble]),
    )


def _rates_apart(some: Sequence[VerdictRate], others: Sequence[VerdictRate]) -> float | None:
    counts = [sum(getattr(rate, key) for rate in side) for side in (some, others) for key in ("asked", "judged")]
    between = live_lift([Tally(*counts)])
    return between.value_pp if between.excludes_zero else None


def paired_verdicts_needed(
    *, floor: float, settled: float = USUAL_SETTLED, effect_pp: float = MATTERS_PP, power: float = POWER
) -> int | None:
    """Count the verdicts needed where both arms answer and chance shows one: those answered alike need no luck."""
    return verdicts_needed(floor=floor, share=0.5, effect_pp=effect_pp, settled=settled, power=power)


def verdicts_needed(
    *, floor: float, share: float, effect_pp: float = MATTERS_PP, settled: float = 0.0, power: float = POWER
) -> int | None:
    """Tell how many verdicts it takes, in all, until a lift of that size is told from zero with that chance.

    `floor` is the share right without memory, `share` what is held out, `settled` the share of questions that both
    arms answer alike; None where no number of verdicts would do.
    """
    effect = effect_pp / 100
    if not 0 < share < 1 or settled >= 1 or effect <= 0:
        return None
    low, high = 1, 1
    while _chance(high, floor, share, effect, settled) < power:
        if high >= MOST_VERDICTS:
            return None
        low, high = high + 1, min(2 * high, MOST_VERDICTS)
    while low < high:
        middle = (low + high) // 2
        enough = _chance(middle, floor, share, effect, settled) >= power
        low, high = (low, middle) if enough else (middle + 1, high)
    return high


def _chance(verdicts: int, floor: float, share: float, effect: float, settled: float) -> float:
    """The chance that the interval excludes zero at that look; an earlier look may have done so already."""
    from scipy.special import ndtr

    open_ = verdicts * (1 - settled)
    # Where both arms answer alike nothing differs, so the whole effect comes from the other questions.
    lifted = min(1.0, floor + effect / (1 - settled))
    tally = Tally(
        open_ * (1 - share), open_ * (1 - share) * lifted, open_ * share, open_ * share * floor, verdicts * settled
    )
    if not bool(tally.usable):
        return 0.0
    interval = bounds([tally])
    return float(ndtr(float(interval.low) / np.sqrt(float(interval.variance))))


def _difference(tally: Tally) -> tuple[Any, Any]:
    """The difference between the arms over all questions, and its variance; what is settled adds a known zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        open_ = (tally.with_memory + tally.without) / tally.total
        difference = tally.right_with / tally.with_memory - tally.right_without / tally.without
        spread = _variance(tally.right_with, tally.with_memory) + _variance(tally.right_without, tally.without)
        variance = open_**2 * spread + open_ * (1 - open_) * difference**2 / tally.total
        return np.where(tally.usable, open_ * difference, 0.0), np.where(tally.usable, variance, np.inf)


def _variance(right: Any, count: Any) -> Any:
    share = (right + PRIOR) / (count + 2 * PRIOR)
    return share * (1 - share) / count
