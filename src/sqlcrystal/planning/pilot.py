"""Truths to plan by: the paper's per-database table, and what a study of one's own has found so far."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sqlcrystal.errors import DataError
from sqlcrystal.ledger.records import read_ledger
from sqlcrystal.measurement.effort import CallProfile
from sqlcrystal.measurement.truth import DatabaseTruth, Truth, truth_from_pairs
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
"""What a question cost in the paper, from its tables of calls and tokens; how long a call took it does not say."""


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


def pilot_truth(folder: Path) -> Truth:
    """What a run's ledger says of memory against none."""
    facts = Facts(read_ledger(folder))
    pairs = facts.headline
    if not pairs:
        raise DataError(
            f"{folder}: no question is answered with and without memory yet, so there is nothing to plan by"
        )
    solved = {(row.seed, row.question): row.right and not row.first_right for row in facts.repairs}
    collected = {row.question for row in facts.rows(facts.default, "collection")}
    held_out = {pair.after.question for pair in pairs}
    folds = bool(facts.manifest.folds)
    splits = 1 if folds else len(facts.seeds)
    return truth_from_pairs(
        name=f"{facts.manifest.study} on {facts.manifest.model}",
        pairs=pairs,
        repaired=np.array([solved.get(pair.key, False) for pair in pairs]) if solved else None,
        held_out=len(pairs) / (splits * max(1, len(held_out | collected))),
        folds=folds,
    )


def pilot_calls(folder: Path) -> CallProfile:
    """What a run's ledger says of calls, tokens and seconds."""
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
