"""How often do 95 % intervals hold the truth, and how often do they find what is not there? Simulated by the thousand.

Floors, sizes, breaks and churn over seeds are those of the paper's databases; the lifts of a study's databases are
drawn around a common one. Fails where the default method leaves its bar.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sqlcrystal.measurement.clusters import DEFAULT_METHOD, METHODS
from sqlcrystal.measurement.simulation import Population, drawn, intervals, ratios, simulate
from sqlcrystal.planning.power import published_truth

TRUTH = published_truth()
LIFT = 0.0434
SPREADS = (0.0, 0.03, 0.06)
COVERED, REJECTED = (0.93, 0.98), (0.03, 0.07)
HEADS = {
    "coverage": "| databases | sizes | SD between databases (pp) |",
    "rejection": "| databases | SD between databases (pp) |",
    "ratio": "| databases | SD between databases (pp) |",
}


@dataclass(frozen=True)
class Cell:
    """One kind of study; `large` lets the first database hold 60 % of the questions."""

    databases: int
    lift: float
    spread: float
    large: bool = False

    def population(self, studies: int) -> Population:
        """The databases of every study."""
        rng = np.random.default_rng((studies, self.databases, int(1e4 * self.lift), int(1e4 * self.spread)))
        population = drawn(
            TRUTH, studies=studies, databases=self.databases, lift=self.lift, spread=self.spread, rng=rng
        )
        if self.large:
            population.questions[:, 0] = np.rint(1.5 * population.questions[:, 1:].sum(axis=1))
        return population

    def holds(self, studies: int, resamples: int) -> dict[str, float]:
        """The share of studies whose interval holds the true lift; one without an interval rules nothing out."""
        many = Cell(self.databases, self.lift, self.spread).population(200_000 // self.databases)
        true_pp = float(np.average(many.lift_pp, weights=many.questions))
        population, rng = self.population(studies), np.random.default_rng(self.databases)
        shares = dict.fromkeys(METHODS, 0.0)
        step = max(1, 1_000_000 // int(population.questions.sum(axis=1).mean()))
        for start in range(0, studies, step):
            part = slice(start, start + step)
            some = Population(
                population.questions[part], population.floor[part], population.fixed[part], population.broke[part]
            )
            seen = simulate(some, TRUTH, seeds=TRUTH.seeds, held_out=TRUTH.held_out, rng=rng)
            for method in METHODS:
                estimated = intervals(seen, method=method, rng=rng, resamples=resamples)
                shares[method] += float((~estimated.excludes(true_pp)).sum()) / studies
        return shares

    def ratio_holds(self, studies: int) -> dict[str, float]:
        """The share of studies whose Fieller set holds the true ratio, and of those in which it is unbounded."""
        rng = np.random.default_rng(self.databases)
        seen = simulate(self.population(studies), TRUTH, seeds=TRUTH.seeds, held_out=TRUTH.held_out, rng=rng)
        _, kept = ratios(seen)
        true = float((seen.sums.sum(axis=1) / seen.sizes.sum(axis=1)).mean())
        true /= float((seen.headroom.sum(axis=1) / seen.sizes.sum(axis=1)).mean())
        return {
            "holds": float(np.mean([true in fieller_set for fieller_set in kept])),
            "unbounded": float(np.mean([fieller_set.shape != "bounded" for fieller_set in kept])),
        }


def rows(studies: int, resamples: int) -> Iterator[tuple[str, str, dict[str, float], bool]]:
    """Every cell: its table, how it begins, what each method gives, and whether the default keeps to its bar."""
    for databases in (5, 11, 20):
        for large in (False, True):
            for spread in SPREADS:
                shares = Cell(databases, LIFT, spread, large).holds(studies, resamples)
                # One lift for all, one database large: Satterthwaite errs to the safe side, above the bar (LOG.md).
                high = 1.0 if large and not spread else COVERED[1]
                sizes = "one holds 60 %" if large else "as BIRD's"
                good = COVERED[0] <= shares[DEFAULT_METHOD] <= high
                yield "coverage", f"| {databases} | {sizes} | {100 * spread:.0f} |", shares, good
    for databases in (3, 5, 11, 20):
        for spread in SPREADS:
            kept = Cell(databases, 0.0, spread).holds(studies, resamples)
            shares = {method: 1 - share for method, share in kept.items()}
            good = REJECTED[0] <= shares[DEFAULT_METHOD] <= REJECTED[1]
            yield "rejection", f"| {databases} | {100 * spread:.0f} |", shares, good
    for databases in (5, 11, 20):
        for spread in SPREADS:
            held = Cell(databases, LIFT, spread).ratio_holds(studies)
            good = COVERED[0] <= held["holds"] <= COVERED[1]
            yield "ratio", f"| {databases} | {100 * spread:.0f} |", held, good


def main() -> None:
    """Print the tables as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", "--runs", type=int, default=2000)
    parser.add_argument("--resamples", type=int, default=200, help="of each two-stage interval")
    options = parser.parse_args()
    started, table, missed = time.monotonic(), "", 0
    for name, row, shares, good in rows(options.studies, options.resamples):
        if name != table:
            head = f"{HEADS[name]} {' | '.join(shares)} |"
            print(f"\n{head}\n{'|---' * (head.count('|') - 1)}|")
            table = name
        missed += not good
        figures = " | ".join(f"{share:.3f}" for share in shares.values())
        above = name == "coverage" and shares[DEFAULT_METHOD] > COVERED[1]
        remark = "  <- off the bar" if not good else "  <- above the bar, which is known" if above else ""
        print(f"{row} {figures} |{remark}", flush=True)
    print(f"\n{options.studies} studies a row, {time.monotonic() - started:.0f} s; rows off the bar: {missed}")
    sys.exit(missed > 0)


if __name__ == "__main__":
    main()
