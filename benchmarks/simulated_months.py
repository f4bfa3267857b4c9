"""Does `value` hold the truth when somebody looks every day? 300 simulated months of service for each kind of month.

Users err, questions recur, a share is held out. Prints the table of docs/reference/live.md and fails where the interval
misses the truth in more than 5 % of the months, or is more than twice as wide as an interval for one look.
"""

import argparse
import itertools
import sys

import numpy as np

from sqlcrystal.measurement.months import Month, simulate_months

COVERED, WIDEST = 0.95, 2.0
TOLERATED = 0.05
"""Users who err more often pull the estimate further than any interval for sampling error can hold."""
HEAD = (
    "| held out | answered by | lift (pp) | users err | holds, daily looks"
    " | mean estimate | width, ± pp | × one look | known to help |"
)


def main(months: int, seed: int) -> int:
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
    sys.exit(min(1, main(arguments.months, arguments.seed)))
