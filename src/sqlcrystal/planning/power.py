"""The power of a study's held-out questions before anything is sent, and the truths it is planned by."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from sqlcrystal.benchmarks.cases import Split
from sqlcrystal.errors import ConfigError, DataError
from sqlcrystal.ledger.records import Side, read_ledger
from sqlcrystal.measurement.clusters import FEWEST_DATABASES
from sqlcrystal.measurement.comparison import ENOUGH_SEEDS
from sqlcrystal.measurement.power import CallProfile, PlannedStudy, forecast
from sqlcrystal.measurement.simulation import DatabaseTruth, Truth, truth_from_pairs, without_noise
from sqlcrystal.study.report.comparisons import designated
from sqlcrystal.study.report.facts import Facts
from sqlcrystal.study.report.paper import published

SEEDS, HELD_OUT = 3, 0.3
REPEATING_FIXES, REPEATING_BREAKS = 25, 5
"""Questions fixed, or broken, under every seed that holds them out, at least two (the paper's stable tally)."""
REPAIRED_IF_FIXED = 0.62
"""Of memory's fixes, the share that repair without memory solves too (the paper's substitution test)."""

PUBLISHED_CALLS = CallProfile(
    name="the paper",
    answer_tokens=1_232 + 77,
    memory_tokens=604,
    failing=1 - 0.6219,
    # 2.92 calls a question with repair, one of them the first attempt.
    repair_calls=1.92 / (1 - 0.6219),
    # 4.56 million tokens beyond the first attempts of 1,073 questions.
    repair_tokens=4.56e6 / (1_073 * (1 - 0.6219)),
)
"""The cost of a question in the paper, from its tables of calls and tokens; how long a call took it does not say."""


def published_truth() -> Truth:
    """The paper's table of databases: their sizes, floors and lifts; breaks in proportion to what could break."""
    paper = published()
    rows = [
        (row[0].replace("\\_", "_"), _number(row[1]), _number(row[3]) / 100, _number(row[5]))
        for row in paper.table["per-database"].rows
    ]
    pairs = sum(count for _, count, _, _ in rows)
    right = sum(count * floor for _, count, floor, _ in rows)
    breaks = paper.headline.broke / right
    return Truth(
        name="the paper",
        databases=tuple(
            DatabaseTruth(
                name=name,
                questions=round(count / (SEEDS * HELD_OUT)),
                floor=floor,
                fixed=max(0.0, net / count + breaks * floor),
                broke=breaks * floor,
            )
            for name, count, floor, net in rows
        ),
        seeds=SEEDS,
        held_out=HELD_OUT,
        fixes_repeat=_share(REPEATING_FIXES, paper.headline.fixed),
        breaks_repeat=_share(REPEATING_BREAKS, paper.headline.broke),
        repaired=sum(seed.headroom for seed in paper.seed) / (pairs - right),
        repaired_if_fixed=REPAIRED_IF_FIXED,
    )


def _share(stable: int, events: int) -> float:
    """Of the changes in questions that several seeds hold out, the share in questions that every seed changes."""
    twice, thrice = 3 * HELD_OUT**2 * (1 - HELD_OUT), HELD_OUT**3
    in_repeated = events * (2 * twice + 3 * thrice) / (SEEDS * HELD_OUT)
    in_stable = stable * (2 * twice + 3 * thrice) / (twice + thrice)
    return min(1.0, in_stable / in_repeated)


def _number(cell: str) -> float:
    return float(cell.replace("−", "-").replace(",", ""))


def pilot_truth(folder: Path, contrast: str = "") -> Truth:
    """Tell what a run's ledger says of memory against none, or of `A,B`: two of its arms, or arms in a setting."""
    facts = Facts(read_ledger(folder))
    a, b = _sides(facts, contrast) if contrast else (None, None)
    if a and b:
        pairs, name = facts.pairs_of(a, b), f"{b} − {a} of {facts.manifest.study} on {facts.manifest.model}"
    else:
        pairs, name = facts.headline, f"{facts.manifest.study} on {facts.manifest.model}"
    if not pairs:
        raise DataError(
            f"{folder}: no question is answered by both sides yet ({contrast or 'with and without memory'}),"
            " so there is nothing to plan by"
        )
    # A ratio to the repair headroom is one of a lift over no memory, and of no other contrast.
    floor = Side(facts.bare.name) if facts.bare else None
    repairs = facts.repairs if a in (None, floor) else ()
    solved = {(row.seed, row.question): row.right and not row.first_right for row in repairs}
    collected = {row.question for row in facts.rows(facts.default, "collection")}
    held_out = {pair.after.question for pair in pairs}
    folds = bool(facts.manifest.folds)
    splits = 1 if folds else len({pair.after.seed for pair in pairs})
    return truth_from_pairs(
        name=name,
        pairs=pairs,
        repaired=np.array([solved.get(pair.key, False) for pair in pairs]) if solved else None,
        held_out=len(pairs) / (splits * max(1, len(held_out | collected))),
        folds=folds,
    )


def _sides(facts: Facts, contrast: str) -> tuple[Side, Side]:
    """Read `A,B`; each is an arm of the run."""
    names = [name.strip() for name in contrast.split(",")]
    if len(names) != 2:
        raise ConfigError(f"--contrast: {contrast!r} is not A,B, two arms of the pilot")
    first, second = (Side.of(name) for name in names)
    for side in (first, second):
        if side.arm not in facts.arms:
            raise ConfigError.unknown("--contrast", side.arm, facts.arms)
    return first, second


def pilot_family(folder: Path, contrast: str) -> int:
    """Over how many contrasts the pilot's study adjusts one of its own: all but the primary; 1 for any other."""
    facts = Facts(read_ledger(folder))
    a, b = _sides(facts, contrast)
    family = designated(facts)
    asked = next((one for one in family if set(one.sides) == {a, b}), None)
    bare = {arm.name for arm in facts.arms.values() if not arm.remembers and arm.solver == facts.default.solver}
    primary = [one for one in family if facts.default.name in one.arms and bare & set(one.arms)]
    return max(1, len(family) - len(primary)) if asked is not None and asked not in primary else 1


def pilot_calls(folder: Path) -> CallProfile:
    """Tell what a run's ledger says of calls, tokens and seconds."""
    facts = Facts(read_ledger(folder))
    plain, remembered = facts.rows(facts.bare), facts.rows(facts.default)
    repairs = [row for row in facts.repairs if row.calls > 1]
    if not plain or not remembered:
        raise DataError(f"{folder}: no question is answered with and without memory yet: nothing to plan by")
    answer = _mean([row.prompt_tokens + row.completion_tokens for row in plain])
    every = [*plain, *remembered, *facts.repairs]
    return CallProfile(
        name=f"{facts.manifest.study} on {facts.manifest.model}",
        answer_tokens=answer,
        memory_tokens=_mean([row.prompt_tokens + row.completion_tokens for row in remembered]) - answer,
        failing=1 - _mean([row.right for row in plain]),
        repair_calls=_mean([row.calls - 1 for row in repairs]),
        repair_tokens=max(0.0, _mean([row.prompt_tokens + row.completion_tokens for row in repairs]) - answer),
        seconds_per_call=sum(row.seconds for row in every) / max(1, sum(row.calls for row in every)) or None,
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


class Foresight(Struct, frozen=True, kw_only=True):
    """The size of a study's evidence, and the lift it can tell from zero, planned by the paper's databases."""

    databases: int
    seeds: int
    pairs: int
    """Held-out question–seed pairs."""
    detectable_pp: float | None
    """The lift found with 80 % power; None where databases will give no interval, or no lift there can be is found."""
    warnings: tuple[str, ...]


def foresee(splits: Mapping[int, Split], *, folds: bool = False) -> Foresight:
    """Hold the splits against what is known of floors, breaks and churn; folds together are one split of everything."""
    held_out = [case.question for split in splits.values() for case in split.held_out]
    asked = {case.question.key for split in splits.values() for case in (*split.learn, *split.held_out)}
    sizes = Counter(database for database, _ in asked)
    databases = sorted({question.database for question in held_out})
    return Foresight(
        databases=len(databases),
        seeds=len(splits),
        pairs=len(held_out),
        detectable_pp=_detectable(
            [sizes[name] for name in databases], 1 if folds else len(splits), len(held_out) / max(1, len(asked))
        ),
        warnings=_warnings(len(databases), len(splits)),
    )


def _detectable(sizes: list[int], seeds: int, held_out: float) -> float | None:
    if len(sizes) < FEWEST_DATABASES:
        return None
    paper = published_truth()
    like = tuple(
        replace(paper.databases[place % len(paper.databases)], questions=size) for place, size in enumerate(sizes)
    )
    design = PlannedStudy(
        databases=len(sizes),
        questions=None,
        seeds=seeds,
        held_out=held_out / seeds,
        lift_pp=100 * paper.lift,
        spread_pp=100 * without_noise(paper)[1],
    )
    return forecast(replace(paper, databases=like), design).detectable_pp


def _warnings(databases: int, seeds: int) -> tuple[str, ...]:
    warnings = []
    if databases < FEWEST_DATABASES:
        count = "one database" if databases == 1 else f"{databases} databases"
        warnings.append(
            f"{count}: the report will have an interval over questions, none over databases, which takes three"
        )
    if seeds < ENOUGH_SEEDS:
        warnings.append(f"{seeds} {'seed' if seeds == 1 else 'seeds'}: every figure will be preliminary below three")
    return tuple(warnings)
