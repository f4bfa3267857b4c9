"""What memory adds in service: a difference of two shares with an interval that holds at every look.

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
        """Whether both arms have enough verdicts for an interval."""
        return np.minimum(self.with_memory, self.without) >= FEWEST


@dataclass(frozen=True)
class Bounds:
    """A lift with its variance and the ends of its interval, as shares; infinite where there is no interval yet."""

    lift: Any
    variance: Any
    low: Any
    high: Any


class LiveLift(Struct, frozen=True, kw_only=True):
    """The lift of memory among answers that got a verdict, in points; no ends while an arm has too few verdicts."""

    value_pp: float | None
    low_pp: float | None
    high_pp: float | None
    n_with: int
    n_without: int
    n_settled: int
    left_out: int
    """Verdicts given while a share was held out that one arm has too few verdicts of."""

    @property
    def excludes_zero(self) -> bool:
        """Whether memory is known to help, or to harm."""
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
    counts = {
        "n_with": int(sum(stratum.with_memory for stratum in used)),
        "n_without": int(sum(stratum.without for stratum in used)),
        "n_settled": int(sum(stratum.settled for stratum in used)),
        "left_out": int(sum(stratum.total for stratum in strata if not bool(stratum.usable))),
    }
    if not used:
        return LiveLift(value_pp=None, low_pp=None, high_pp=None, **counts)
    interval = bounds(used, alpha=alpha)
    low, high = max(-1.0, float(interval.low)), min(1.0, float(interval.high))
    return LiveLift(value_pp=100 * float(interval.lift), low_pp=100 * low, high_pp=100 * high, **counts)


def verdicts_needed(
    *, floor: float, share: float, effect_pp: float = MATTERS_PP, settled: float = 0.0, power: float = POWER
) -> int | None:
    """How many verdicts it takes, in all, until a lift of that size is told from zero with that chance.

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
