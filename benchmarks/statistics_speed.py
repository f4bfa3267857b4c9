"""Measures 10,000 resamples of the two-stage bootstrap against plain loops, side by side; fails on a missed bar."""

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from sqlcrystal.measurement.clusters import two_stage_totals
from sqlcrystal.measurement.outcomes import paired

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from plain_bootstrap import outcomes_like_the_paper, plain_two_stage

BAR = 100.0
PAIRS = 8
SHARE = 100
"""Plain loops draw so many of the 10,000 resamples; all of them would take a minute."""


def seconds(run: Callable[[], object]) -> float:
    """Processor time, so that who else is at work counts less."""
    started = time.process_time()
    run()
    return time.process_time() - started


def main() -> int:
    """Print the bar; 0 when it is met."""
    rows = outcomes_like_the_paper()
    table = paired(rows).differences
    ratios = []
    for _ in range(PAIRS):
        fast = seconds(lambda: two_stage_totals(table=table, rng=np.random.default_rng(0)))
        ratios.append(10_000 / SHARE * seconds(lambda: plain_two_stage(rows, SHARE)) / fast)
    met = statistics.median(ratios) >= BAR
    print(
        f"{'ok  ' if met else 'MISS'} two-stage bootstrap, 10,000 resamples: times faster than plain loops"
        f"  bar {BAR:.0f}  measured {statistics.median(ratios):.0f} ({min(ratios):.0f} to {max(ratios):.0f})"
    )
    return int(not met)


if __name__ == "__main__":
    sys.exit(main())
