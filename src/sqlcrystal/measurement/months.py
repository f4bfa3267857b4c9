"""Simulated months of service with a known truth: questions that recur, users who err, a look every day."""

from dataclasses import dataclass

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from sqlcrystal.measurement.live import Bounds, Tally, bounds

Flags = NDArray[np.bool_]
_WRONG, _RIGHT, _FIXED, _BROKEN = range(4)


class Month(Struct, frozen=True, kw_only=True):
    """A team's month: its traffic, what memory does, and how its users judge."""

    days: int = 30
    asked: int = 100
    """Different questions a day."""
    questions: int = 2_000
    """Different questions there are; some are asked far more often than others."""
    floor: float = 0.6
    lift: float = 0.06
    broke: float = 0.03
    """Share of questions that are right without memory and wrong with it."""
    share: float = 0.2
    """What is held out."""
    judged: float = 0.5
    """Share of answers that get a verdict."""
    errs: float = 0.05
    """Share of verdicts that are wrong."""
    both: bool = False
    """Whether both arms answer and one is shown."""


@dataclass(frozen=True)
class Months:
    """What many months show at the end of every day: one row a month, one column a day."""

    seen: Bounds
    fixed_sample: NDArray[np.float64]
    """Half the width of an interval for one look, of the same verdicts."""
    in_traffic: NDArray[np.float64]
    """The true lift of the questions that were judged so far: what service itself could know at best."""

    def holds(self, truth: float | NDArray[np.float64]) -> float:
        """The share of months in which the interval held the truth at every daily look."""
        return float(np.mean(np.all((self.seen.low <= truth) & (truth <= self.seen.high), axis=1)))

    @property
    def width_ratio(self) -> float:
        """How many times as wide as an interval of fixed sample the interval is at the end, in the median month."""
        half = (self.seen.high - self.seen.low)[:, -1] / 2
        return float(np.median(half / self.fixed_sample[:, -1]))


def simulate_months(month: Month, *, months: int, rng: np.random.Generator) -> Months:
    """Draw months of traffic and judge them as users do."""
    shape = (months, month.days * month.asked)
    asked = _popular(month, shape, rng)
    without, with_memory = _truth(month, months, rng)
    rows = np.arange(months)[:, None]
    before, after = without[rows, asked], with_memory[rows, asked]
    held_out = rng.random(shape) < month.share
    judged = rng.random(shape) < month.judged
    right = np.where(held_out, before, after) ^ (rng.random(shape) < month.errs)
    settled = (before == after) & (rng.random(shape) < 0.9) if month.both else np.zeros(shape, dtype=bool)

    def daily(flags: Flags) -> NDArray[np.float64]:
        daily = (flags & judged).reshape(months, month.days, month.asked).sum(axis=2)
        return np.asarray(np.cumsum(daily, axis=1), dtype=float)

    tally = Tally(
        with_memory=daily(~held_out & ~settled),
        right_with=daily(~held_out & ~settled & right),
        without=daily(held_out & ~settled),
        right_without=daily(held_out & ~settled & right),
        settled=daily(settled),
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        in_traffic = (daily(after & ~before) - daily(before & ~after)) / daily(np.ones(shape, dtype=bool))
    return Months(bounds([tally]), fixed_sample(tally), in_traffic)


def _popular(month: Month, shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.int64]:
    """Which question is asked: half of the traffic is a head that recurs, the other half is the long tail."""
    head = rng.integers(max(1, month.questions // 10), size=shape)
    return np.where(rng.random(shape) < 0.5, head, rng.integers(month.questions, size=shape))


def _truth(month: Month, months: int, rng: np.random.Generator) -> tuple[Flags, Flags]:
    """Of every question, whether it is answered right without memory and with it; the same all month.

    The shares are met exactly in head and tail, so that the month's truth is the lift itself and not a draw of it.
    """
    head = max(1, month.questions // 10)
    parts = [rng.permuted(_kinds(month, size, months), axis=1) for size in (head, month.questions - head)]
    kinds = np.concatenate(parts, axis=1)
    return (kinds == _RIGHT) | (kinds == _BROKEN), (kinds == _RIGHT) | (kinds == _FIXED)


def _kinds(month: Month, size: int, months: int) -> NDArray[np.int8]:
    fixed, broken = round((month.lift + month.broke) * size), round(month.broke * size)
    right = round(month.floor * size) - broken
    row = np.repeat([_FIXED, _BROKEN, _RIGHT, _WRONG], [fixed, broken, right, size - fixed - broken - right])
    return np.tile(row.astype(np.int8), (months, 1))


def fixed_sample(tally: Tally) -> NDArray[np.float64]:
    """Half the width of the textbook interval for one look at the same verdicts."""
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = (tally.right_with / tally.with_memory, tally.right_without / tally.without)
        open_ = (tally.with_memory + tally.without) / tally.total
        variance = sum(
            share * (1 - share) / count for share, count in zip(shares, (tally.with_memory, tally.without), strict=True)
        )
        between = open_ * (1 - open_) * (shares[0] - shares[1]) ** 2 / tally.total
        return np.asarray(1.959964 * np.sqrt(open_**2 * variance + between), dtype=float)
