"""How often do intervals for a new database, a ratio and folds, and equivalence tests, hold? Simulated.

Prints the tables of docs/reference/statistics.md. Floors, breaks and churn over three seeds of 70/30 splits are those
of the paper's databases. Every row that is done is kept in --out, so that the same command again goes on.
"""

import argparse
import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from sqlcrystal.measurement.clusters import Floats
from sqlcrystal.measurement.comparison import macro_average, new_database, spread
from sqlcrystal.measurement.simulation import Population, Studies, drawn, intervals, ratios, simulate
from sqlcrystal.measurement.statistics import difference_of, equivalence
from sqlcrystal.planning.power import published_truth

TRUTH = published_truth()
LIFT, MARGIN_PP = 0.0434, 2.5
GROWTH = 0.02
"""How much the lift grows with the logarithm of a database's size."""
Shares = dict[str, float]
Made = tuple[str, str, Callable[[int], Shares]]
"""A row: its table, how it begins, and what makes its figures from a number of studies."""
HEADS = {
    "new": "| databases | SD between databases (pp) |",
    "uneven": "| databases, one holding 60 % | SD between databases (pp), beyond 2 points an e-fold of size |",
    "fieller": "| databases × questions | SD between databases (pp) | repair solves, of failures |",
    "folds": "| databases × questions | SD between databases (pp) | held out |",
    "equivalence": "| databases × questions | seeds | pairs fixed | pairs broken |",
}


def run(population: Population, *, seeds: int, rng: np.random.Generator) -> Studies:
    """Simulate studies of some databases."""
    return simulate(population, TRUTH, seeds=seeds, held_out=TRUTH.held_out, rng=rng)


def predicts(studies: Studies, true_pp: Floats) -> float:
    """Return the share of studies whose prediction interval holds the new database's true difference."""
    held = []
    for study, true in enumerate(true_pp):
        found = spread(table=studies.table(study))
        ends = new_database(found) if found else None
        held.append(ends is None or ends[0] <= true <= ends[1])
    return float(np.mean(held))


def new_rows(databases: int, between: float) -> Callable[[int], Shares]:
    """Databases of 60 questions each, and one more that is not in the study."""

    def shares(studies: int) -> Shares:
        rng = np.random.default_rng((1, databases, int(1e4 * between)))
        drew = drawn(TRUTH, studies=studies, databases=databases + 1, lift=LIFT, spread=between, rng=rng, questions=60)
        seen = run(drew.without_the_last(), seeds=3, rng=rng)
        return {"holds the new database": predicts(seen, drew.lift_pp[:, -1])}

    return shares


def uneven_rows(databases: int, between: float) -> Callable[[int], Shares]:
    """One database of 60 % of all questions, and a lift that grows with size."""

    def shares(studies: int) -> Shares:
        rng = np.random.default_rng((2, databases, int(1e4 * between)))
        drew = drawn(TRUTH, studies=studies, databases=databases + 1, lift=LIFT, spread=0.0, rng=rng)
        noise = between * rng.standard_normal(drew.questions.shape)
        sizes = drew.questions.copy()
        sizes[:, 0] = np.rint(1.5 * sizes[:, 1:-1].sum(axis=1))
        own = LIFT + GROWTH * np.log(sizes / np.median(drew.questions)) + noise
        broke = np.minimum(drew.floor, np.maximum(drew.broke, -own))
        grown = Population(sizes, drew.floor, np.clip(broke + own, 0, 1 - drew.floor), broke)
        seen = run(grown.without_the_last(), seeds=3, rng=rng)
        lifts, weights = grown.lift_pp[:, :-1], sizes[:, :-1]
        pooled, alike = float((lifts * weights).sum() / weights.sum()), float(lifts.mean())
        held = []
        for study in range(studies):
            table = seen.table(study)
            estimate, found = difference_of(table=table, rng=rng), spread(table=table)
            macro = macro_average(found) if found else None
            held.append(
                (
                    estimate.low is None or estimate.high is None or estimate.low <= pooled <= estimate.high,
                    macro is None or macro.low <= alike <= macro.high,
                )
            )
        by_cr2, by_macro = np.mean(held, axis=0)
        return {
            "CR2 holds the pooled lift": float(by_cr2),
            "the mean over databases is held by its own": float(by_macro),
            "holds the new database": predicts(seen, grown.lift_pp[:, -1]),
        }

    return shares


def fieller_rows(databases: int, between: float, repaired: float) -> Callable[[int], Shares]:
    """Databases of 60 questions each, whose headroom is large or small; the truth is the ratio over all studies."""

    def shares(studies: int) -> Shares:
        rng = np.random.default_rng((4, databases, int(1e4 * between), int(100 * repaired)))
        truth = replace(TRUTH, repaired=repaired, repaired_if_fixed=max(repaired, TRUTH.repaired_if_fixed))
        drew = drawn(truth, studies=studies, databases=databases, lift=LIFT, spread=between, rng=rng, questions=60)
        seen = simulate(drew, truth, seeds=3, held_out=truth.held_out, rng=rng)
        _, sets = ratios(seen)
        true = float(seen.sums.sum() / seen.headroom.sum())
        return {
            "Fieller holds the ratio": float(np.mean([true in kept for kept in sets])),
            "bounded": float(np.mean([kept.shape == "bounded" for kept in sets])),
        }

    return shares


def fold_rows(databases: int, between: float, held_out: float) -> Callable[[int], Shares]:
    """Every question held out once by folds, or three times 30 % by seeds; the truth is the lift of new databases."""

    def shares(studies: int) -> Shares:
        rng = np.random.default_rng((5, databases, int(1e4 * between), int(100 * held_out)))
        drew = drawn(TRUTH, studies=studies, databases=databases, lift=LIFT, spread=between, rng=rng, questions=60)
        seen = simulate(drew, TRUTH, seeds=1 if held_out == 1 else 3, held_out=held_out, rng=rng)
        true = float(drew.lift_pp.mean())
        found = {method: intervals(seen, method=method, rng=rng) for method in ("cr2", "two-stage")}
        held = {name: float(np.mean(~ends.excludes(true))) for name, ends in found.items()}
        widths = (found["cr2"].high - found["cr2"].low) / 2
        return {
            "CR2 holds the lift": held["cr2"],
            "two-stage holds it": held["two-stage"],
            "half-width of CR2 (pp)": float(np.nanmedian(widths)),
        }

    return shares


def equivalence_rows(seeds: int, fixed: float, broke: float) -> Callable[[int], Shares]:
    """Ten databases of 60 questions whose true difference is the margin itself, so that equivalence is false."""

    def shares(studies: int) -> Shares:
        rng = np.random.default_rng((3, seeds, int(1e4 * fixed)))
        shape = (studies, 10)
        population = Population(np.full(shape, 60), np.full(shape, 0.4), np.full(shape, fixed), np.full(shape, broke))
        seen = run(population, seeds=seeds, rng=rng)
        called = []
        for study in range(studies):
            table = seen.table(study)
            alone = difference_of(table=table, rng=rng, null=MARGIN_PP)
            clustered = alone.p_value is not None and alone.value < MARGIN_PP and alone.p_value / 2 < 0.05
            called.append((clustered, equivalence(table=table, margin_pp=MARGIN_PP, rng=rng).equivalent))
        by_databases, by_larger = np.mean(called, axis=0)
        return {"clustered error alone": float(by_databases), "larger of the two": float(by_larger)}

    return shares


def rows() -> Iterator[Made]:
    """List every row of every table."""
    for databases in (4, 10, 20):
        for between in (0.0, 0.05, 0.06):
            yield "new", f"| {databases} | {100 * between:.0f} |", new_rows(databases, between)
    for databases in (4, 10, 20):
        for between in (0.03, 0.05):
            yield "uneven", f"| {databases} | {100 * between:.0f} |", uneven_rows(databases, between)
    for databases in (4, 10, 20):
        for between, repaired in ((0.0, 0.3), (0.05, 0.3), (0.05, 0.1)):
            begin = f"| {databases} × 60 | {100 * between:.0f} | {100 * repaired:.0f} % |"
            yield "fieller", begin, fieller_rows(databases, between, repaired)
    for databases in (4, 10, 20):
        for between, held_out in itertools.product((0.0, 0.05), (0.3, 1.0)):
            design = "all, once, by folds" if held_out == 1 else "30 %, three seeds"
            yield (
                "folds",
                f"| {databases} × 60 | {100 * between:.0f} | {design} |",
                fold_rows(databases, between, held_out),
            )
    for seeds in (1, 3):
        for broke in (0.0, 0.005, 0.02):
            fixed = broke + MARGIN_PP / 100
            begin = f"| 10 × 60 | {seeds} | {100 * fixed:.1f} % | {100 * broke:.1f} % |"
            yield "equivalence", begin, equivalence_rows(seeds, fixed, broke)


def main() -> None:
    """Print the tables as Markdown, simulating what is not in the file yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--out", type=Path, default=Path("build/coverage.jsonl"))
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    lines = options.out.read_text(encoding="utf-8").splitlines() if options.out.exists() else []
    done = {(line["table"], line["row"], line["studies"]): line["shares"] for line in map(json.loads, lines)}
    table = ""
    for name, begin, make in rows():
        key = name, begin, options.studies
        if key not in done:
            done[key] = make(options.studies)
            line = {"table": name, "row": begin, "studies": options.studies, "shares": done[key]}
            with options.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        if name != table:
            head = f"{HEADS[name]} {' | '.join(done[key])} |"
            print(f"\n{head}\n{'|---' * (head.count('|') - 1)}|")
            table = name
        print(f"{begin} {' | '.join(f'{share:.3f}' for share in done[key].values())} |", flush=True)
    print(f"\n{options.studies} studies a row")


if __name__ == "__main__":
    main()
