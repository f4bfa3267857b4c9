"""What each figure of `value` covers where people choose what they judge: the table of docs/reference/statistics.md.

    python benchmarks/live_bounds.py [--months 300]

Simulated months with a known truth: 100 questions a day, half held out, half of the right answers judged, and wrong
ones as each row says. Exits 1 where a worst case or an audit misses the truth in more than 5 % of the months.
"""

import argparse
import itertools
import sys
from pathlib import Path

import numpy as np
from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from simulated_months import COVERED, Month, held, simulate_months

USERS = {
    "judge all alike": Month(),
    "judge half as many wrong answers": Month(judged_wrong=(0.25, 0.25)),
    "judge wrong answers of memory less": Month(judged_wrong=(0.25, 0.5)),
    "judge wrong answers without memory less": Month(judged_wrong=(0.5, 0.25)),
    "judge as many of either, chosen otherwise": Month(judged_right=(0.6, 0.4), judged_wrong=(0.2, 0.5)),
    "judge wrong answers of memory less, audited or not": Month(judged_wrong=(0.25, 0.5), heeds=False),
}
ANSWERING = ((False, 0.05), (False, 0.2), (True, 0.05))
HEAD = (
    "| users | answered by | lift (pp) | audit | warned | lift among verdicts: holds | mean"
    " | worst case: holds | from, to (pp) | audit: holds | from, to (pp) |"
)


def row(who: str, month: Month, *, months: int, seed: int) -> tuple[str, bool]:
    """Simulate one row, and tell whether both bounds cover as they should."""
    lift, key = month.lift, (seed, int(100 * month.audit), int(100 * month.lift), month.both)
    seen = simulate_months(month, months=months, rng=np.random.default_rng(key))
    worst, audited = held(seen.worst, lift), held(seen.audited, lift)
    ends = [
        ", ".join(f"{100 * np.clip(np.median(end[:, -1]), -1, 1):+.0f}" for end in (figure.low, figure.high))
        for figure in (seen.worst, seen.audited)
    ]
    cells = (
        *(who, "both arms" if month.both else "one arm", f"{100 * lift:+.0f}", f"{month.audit:.0%}"),
        *(f"{np.mean(seen.warned):.0%}", f"{seen.holds(lift):.3f}", f"{100 * np.mean(seen.seen.lift[:, -1]):+.1f}"),
        *(f"{worst:.3f}", ends[0], f"{audited:.3f}", ends[1]),
    )
    return f"| {' | '.join(cells)} |", min(worst, audited) >= COVERED


def main(months: int, seed: int) -> int:
    """Print the table; 1 where a bound covers less than it says."""
    print(f"{HEAD}\n|{'---|' * HEAD.count(' | ')}---|")
    covered = []
    for (who, users), lift, (both, audit) in itertools.product(USERS.items(), (0.06, 0.0), ANSWERING):
        month = replace(users, lift=lift, share=0.5, errs=0.0, both=both, audit=audit)
        text, holds = row(who, month, months=months, seed=seed)
        print(text, flush=True)
        covered.append(holds)
    return 0 if all(covered) else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--months", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    sys.exit(main(options.months, options.seed))
