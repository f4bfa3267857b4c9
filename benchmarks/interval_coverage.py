"""How often do the 95 % intervals hold the truth? Simulated, with databases as unequal as BIRD's."""

import argparse
import time

import numpy as np
from numpy.typing import NDArray

from sqlcrystal.measurement.outcomes import QuestionTable
from sqlcrystal.measurement.statistics import METHODS, estimate, lift_pp

# Held-out questions per seed and no-memory accuracy, from the paper's per-database table.
BIRD = (
    (44, 0.583), (39, 0.846), (27, 0.247), (52, 0.571), (39, 0.667), (32, 0.198),
    (49, 0.592), (56, 0.750), (47, 0.773), (57, 0.655), (19, 0.737),
)  # fmt: skip
CHURN = 0.045
"""Share of pairs that break, as in the paper (67 of 1,383, rounded): what is fixed is this plus the effect."""
FLIPS = 0.02
"""One answer in fifty changes between identical runs, as the paper measured."""
SEEDS = 3


def simulate(rng: np.random.Generator, groups: int, effect: float, spread: float) -> QuestionTable:
    """Draw databases with their own effect, then questions held out by three seeds' 70/30 splits."""
    drawn = [_database(rng, rng.normal(effect, spread)) for _ in range(groups)]
    sizes = [len(values) for values in drawn]
    names = tuple(f"d{group:02d}" for group in range(groups))
    return QuestionTable(np.repeat(np.arange(groups), sizes), np.concatenate(drawn), names)


def _database(rng: np.random.Generator, own: float) -> NDArray[np.float64]:
    """One database: the difference b - a and the number of pairs, summed over the seeds that hold a question out."""
    held_out, floor = BIRD[int(rng.integers(len(BIRD)))]
    fixes = np.clip((CHURN + own) / (1 - floor), 0, 1)
    breaks = np.clip((CHURN - min(0.0, CHURN + own)) / floor, 0, 1)
    questions = round(held_out / 0.3)
    right = rng.random(questions) < floor
    moved = rng.random(questions) < np.where(right, breaks, fixes)
    held = rng.random((SEEDS, questions)).argsort(axis=1).argsort(axis=1) < held_out
    flipped = rng.random((SEEDS, questions)) < FLIPS
    differences = (right ^ moved ^ flipped).astype(float) - right
    values = np.stack([(differences * held).sum(axis=0), held.sum(axis=0)], axis=1)
    return values[values[:, 1] > 0]


def truth_pp(effect: float, spread: float) -> float:
    """The expected difference of the simulation itself, from one study of very many databases."""
    totals = simulate(np.random.default_rng(1), 40_000, effect, spread).values.sum(axis=0)
    return float(100 * totals[0] / totals[1])


def coverage(groups: int, effect: float, spread: float, runs: int, resamples: int) -> dict[str, float]:
    """The share of runs whose interval holds the truth, per method."""
    truth, hits = truth_pp(effect, spread), dict.fromkeys(METHODS, 0)
    for run in range(runs):
        table = simulate(np.random.default_rng((7, run)), groups, effect, spread)
        for method in METHODS:
            rng = np.random.default_rng(run)
            found = estimate(table=table, statistic=lift_pp, method=method, rng=rng, resamples=resamples)
            hits[method] += found.low <= truth <= found.high
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
