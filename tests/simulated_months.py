"""Does `value` hold the truth when somebody looks every day? Simulated months of service with a known truth.

Users err or choose what they judge, questions recur, a share is held out. As a script it prints the table of users who
err in docs/reference/live.md, and fails where the interval misses the truth in more than 5 % of the months, or is more
than twice as wide as an interval for one look. `benchmarks/live_bounds.py` has the users who choose.
"""

import argparse
import itertools
import sys
from dataclasses import dataclass

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from sqlcrystal.measurement.live import Asked, Bounds, Tally, VerdictRate, bounds, verdict_selection, worst_bounds

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
    judged_right: tuple[float, float] | None = None
    """Shares of right answers that get a verdict, with memory and without; as `judged` where it is None."""
    judged_wrong: tuple[float, float] | None = None
    """The same of wrong answers."""
    audit: float = 0.0
    """The share of answers that must be judged, drawn by chance."""
    heeds: bool = True
    """Whether users judge what must be judged; else they judge it like anything else."""
    trouble: tuple[float, float] = (0.05, 0.4)
    """Shares of right and of wrong answers that show a sign of trouble."""


@dataclass(frozen=True)
class Months:
    """What many months show at the end of every day: one row a month, one column a day."""

    seen: Bounds
    fixed_sample: NDArray[np.float64]
    """Half the width of an interval for one look, of the same verdicts."""
    in_traffic: NDArray[np.float64]
    """The true lift of the questions that were judged so far: what service itself could know at best."""
    worst: Bounds
    """Over every answer, whatever the verdicts on unjudged ones would be."""
    audited: Bounds
    """Of the audited answers alone, whatever the verdicts on those would be that nobody judged."""
    warned: Flags
    """Whether verdict rates that differ by arm or by sign of trouble are told at the end of the month."""

    def holds(self, truth: float | NDArray[np.float64]) -> float:
        """The share of months in which the interval held the truth at every daily look."""
        return held(self.seen, truth)

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
    answered_right = np.where(held_out, before, after)
    judged = rng.random(shape) < _verdict_rate(month, answered_right, held_out)
    right = answered_right ^ (rng.random(shape) < month.errs)
    audited = rng.random(shape) < month.audit if month.audit else np.zeros(shape, dtype=bool)
    judged |= audited & month.heeds
    settled = (before == after) & (rng.random(shape) < 0.9) if month.both else np.zeros(shape, dtype=bool)

    def daily(flags: Flags) -> NDArray[np.float64]:
        daily = flags.reshape(months, month.days, month.asked).sum(axis=2)
        return np.asarray(np.cumsum(daily, axis=1), dtype=float)

    def tally_of(chosen: Flags) -> Tally:
        return Tally(
            with_memory=daily(chosen & ~held_out & ~settled),
            right_with=daily(chosen & ~held_out & ~settled & right),
            without=daily(chosen & held_out & ~settled),
            right_without=daily(chosen & held_out & ~settled & right),
            settled=daily(chosen & settled),
        )

    def asked_of(chosen: Flags) -> Asked:
        arms = (chosen & ~held_out & ~settled, chosen & held_out & ~settled, chosen & settled)
        return Asked(*map(daily, arms))

    tally = tally_of(judged)
    shown = rng.random(shape) < np.where(answered_right, *month.trouble)
    with np.errstate(divide="ignore", invalid="ignore"):
        in_traffic = (daily(judged & after & ~before) - daily(judged & before & ~after)) / daily(judged)
        audits = worst_bounds([(tally_of(audited & judged), asked_of(audited))])  # of the first days there may be none
    return Months(
        bounds([tally]),
        fixed_sample(tally),
        in_traffic,
        worst_bounds([(tally, asked_of(np.ones(shape, dtype=bool)))]),
        audits,
        _warned(held_out, shown, judged),
    )


def _verdict_rate(month: Month, right: Flags, held_out: Flags) -> NDArray[np.float64]:
    rights, wrongs = (shares or (month.judged, month.judged) for shares in (month.judged_right, month.judged_wrong))
    return np.where(right, np.where(held_out, rights[1], rights[0]), np.where(held_out, wrongs[1], wrongs[0]))


def _warned(held_out: Flags, trouble: Flags, judged: Flags) -> Flags:
    """Of every month, whether its verdict rates are told to be selective at its end."""
    kinds = [
        (memory, sign, (held_out ^ memory) & (trouble ^ (not sign)))
        for memory in (True, False)
        for sign in (True, False)
    ]
    counts = [(memory, sign, kind.sum(axis=1), (kind & judged).sum(axis=1)) for memory, sign, kind in kinds]
    return np.array(
        [
            verdict_selection(
                [
                    VerdictRate(memory=memory, trouble=sign, asked=int(asked[month]), judged=int(given[month]))
                    for memory, sign, asked, given in counts
                ]
            ).selective
            for month in range(len(held_out))
        ]
    )


def held(seen: Bounds, truth: float | NDArray[np.float64]) -> float:
    """The share of months in which an interval held the truth at every daily look; none yet holds everything."""
    low, high = np.nan_to_num(seen.low, nan=-np.inf), np.nan_to_num(seen.high, nan=np.inf)
    return float(np.mean(np.all((low <= truth) & (truth <= high), axis=1)))


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


# ── as a script ──────────────────────────────────────────────────────────────────────────────────────────────────────

COVERED, WIDEST = 0.95, 2.0
TOLERATED = 0.05
"""Users who err more often pull the estimate further than any interval for sampling error can hold."""
HEAD = (
    "| held out | answered by | lift (pp) | users err | holds, daily looks"
    " | mean estimate | width, ± pp | × one look | known to help |"
)


def judged_at_random(months: int, seed: int) -> int:
    """Print one row a kind of month; the number of rows that leave the bar."""
    print(HEAD)
    print("|" + "---|" * HEAD.count(" | ") + "---|")
    failed = 0
    for both, share, lift, errs in itertools.product((False, True), (0.1, 0.2, 0.5), (0.06, 0.0), (0.0, 0.05, 0.1)):
        month = Month(lift=lift, share=share, errs=errs, both=both)
        seen = simulate_months(month, months=months, rng=np.random.default_rng((seed, int(100 * share), both)))
        held, ratio = seen.holds(lift), seen.width_ratio
        half = 50 * float(np.median((seen.seen.high - seen.seen.low)[:, -1]))
        mean, helps = 100 * float(np.mean(seen.seen.lift[:, -1])), float(np.mean(seen.seen.low[:, -1] > 0))
        failed += ratio > WIDEST or (held < COVERED and errs <= TOLERATED)
        print(
            f"| {share:.0%} | {'both arms' if both else 'one arm'} | {100 * lift:+.0f} | {errs:.0%} | {held:.3f} "
            f"| {mean:+.1f} | {half:.1f} | {ratio:.2f} | {helps:.0%} |"
        )
    return failed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--months", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    sys.exit(min(1, judged_at_random(arguments.months, arguments.seed)))
