"""How often do the 95 % intervals hold the truth? Simulated, with databases as unequal as BIRD's."""

import argparse
import time

import numpy as np

from sqlcrystal.measurement.outcomes import PairedOutcomes, paired
from sqlcrystal.measurement.statistics import METHODS, difference

# Held-out questions per seed and no-memory accuracy, from the paper's per-database table.
BIRD = (
    (44, 0.583), (39, 0.846), (27, 0.247), (52, 0.571), (39, 0.667), (32, 0.198),
    (49, 0.592), (56, 0.750), (47, 0.773), (57, 0.655), (19, 0.737),
)  # fmt: skip
CHURN = 0.045
"""Share of pairs that break, as in the paper (67 of 1,383, rounded): what is fixed is this plus the effect."""


def simulate(rng: np.random.Generator, groups: int, effect: float, spread: float) -> PairedOutcomes:
    """Draw databases with their own effect, then questions held out by three seeds' 70/30 splits."""
    rows: list[tuple[str, str, str, int, int]] = []
    for group in range(groups):
        held_out, floor = BIRD[int(rng.integers(len(BIRD)))]
        own = rng.normal(effect, spread)
        fixes = np.clip((CHURN + own) / (1 - floor), 0, 1)
        breaks = np.clip((CHURN - min(0.0, CHURN + own)) / floor, 0, 1)
        questions = round(held_out / 0.3)
        right = rng.random(questions) < floor
        moved = rng.random(questions) < np.where(right, breaks, fixes)
        for seed in ("42", "7", "13"):
            for question in rng.choice(questions, held_out, replace=False):
                # One answer in fifty flips between identical runs, as the paper measured.
                flip = rng.random() < 0.02
                a = int(right[question])
                rows.append((f"d{group}", f"q{question}", seed, a, int(a ^ moved[question] ^ flip)))
    return paired(rows)


def truth_pp(groups: int, effect: float, spread: float) -> float:
    """The expected difference of the simulation itself, averaged over many draws."""
    rng = np.random.default_rng(1)
    totals = np.zeros(2)
    for _ in range(4_000 // groups):
        outcomes = simulate(rng, groups, effect, spread)
        totals += (float(np.sum(outcomes.b - outcomes.a)), len(outcomes))
    return float(100 * totals[0] / totals[1])


def coverage(groups: int, effect: float, spread: float, runs: int, resamples: int) -> dict[str, float]:
    """The share of runs whose interval holds the truth, per method."""
    truth, hits = truth_pp(groups, effect, spread), dict.fromkeys(METHODS, 0)
    for run in range(runs):
        outcomes = simulate(np.random.default_rng((7, run)), groups, effect, spread)
        for method in METHODS:
            result = difference(outcomes=outcomes, rng=np.random.default_rng(run), method=method, resamples=resamples)
            hits[method] += result.low <= truth <= result.high
    return {method: count / runs for method, count in hits.items()}


def main() -> None:
    """Print the coverage table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--resamples", type=int, default=1000)
    options = parser.parse_args()
    print(f"| databases | effect (pp) | spread between databases (pp) | {' | '.join(METHODS)} |")
    print(f"|---|---|---|{'---|' * len(METHODS)}")
    started = time.monotonic()
    for groups in (5, 11, 20):
        for effect in (0.0, 0.0434):
            for spread in (0.0, 0.025, 0.05, 0.1):
                found = coverage(groups, effect, spread, options.runs, options.resamples)
                cells = " | ".join(f"{share:.3f}" for share in found.values())
                print(f"| {groups} | {100 * effect:.2f} | {100 * spread:.1f} | {cells} |", flush=True)
    print(f"\n{options.runs} simulated studies a row, {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
