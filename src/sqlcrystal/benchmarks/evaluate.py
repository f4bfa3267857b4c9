"""Scores predictions on a benchmark: the one function behind `sqlcrystal score`."""

import time
from collections.abc import Mapping, Sequence

from msgspec import Struct

from sqlcrystal.benchmarks.cases import Benchmark
from sqlcrystal.errors import DataError
from sqlcrystal.scoring.cache import GoldCache
from sqlcrystal.scoring.judge import MAX_ROWS, TIMEOUT, OnProgress, Pair, judge
from sqlcrystal.scoring.preparation import prepare_gold, prepare_prediction
from sqlcrystal.scoring.report import Report, Scored, report_of
from sqlcrystal.scoring.verdicts import DEFAULT_RULE, rule_named


class Scoring(Struct, frozen=True):
    """A report with the verdicts it adds up, in the order of the benchmark."""

    report: Report
    scored: tuple[Scored, ...]


def score_predictions(
    benchmark: Benchmark,
    predictions: Mapping[str, Sequence[str]],
    *,
    rule: str = DEFAULT_RULE,
    jobs: int | None = None,
    timeout: float = TIMEOUT,
    max_rows: int = MAX_ROWS,
    skip_missing: bool = False,
    databases: Sequence[str] = (),
    cache: GoldCache | None = None,
    on_progress: OnProgress | None = None,
) -> tuple[Scoring, ...]:
    """Score each named list of predictions, which holds one SQL per case of the whole benchmark, in its order.

    Missing databases raise unless skipped; `databases` scores only those. All lists are judged in one pass, so SQL that
    several of them share runs once.
    """
    rule_named(rule)
    for name, sqls in predictions.items():
        if len(sqls) != len(benchmark.cases):
            raise DataError(
                f"{name}: {len(sqls)} predictions, but {benchmark.name} has {len(benchmark.cases)} questions"
            )
    chosen = (benchmark.only(databases) if databases else benchmark).available(skip_missing=skip_missing)
    kept = set(chosen.databases)
    places = [index for index, case in enumerate(benchmark.cases) if case.question.database in kept]
    golds = {index: prepare_gold(benchmark.cases[index].sql, rule) for index in places}
    pairs = [
        Pair(benchmark.cases[index].question.database, golds[index], prepare_prediction(sqls[index], rule))
        for sqls in predictions.values()
        for index in places
    ]
    start = time.perf_counter()
    verdicts = iter(
        judge(
            pairs,
            benchmark.locations,
            rule=rule,
            jobs=jobs,
            timeout=timeout,
            max_rows=max_rows,
            cache=cache,
            on_progress=on_progress,
        )
    )
    seconds = time.perf_counter() - start
    missing = [name for name in benchmark.missing if name not in kept and (not databases or name in databases)]
    results = []
    for name in predictions:
        scored = tuple(
            Scored(
                question_id=(question := benchmark.cases[index].question).id,
                database=question.database,
                difficulty=question.difficulty,
                kind=(verdict := next(verdicts)).kind,
                seconds=verdict.seconds,
                message=verdict.message,
            )
            for index in places
        )
        report = report_of(
            scored,
            benchmark=benchmark.name,
            rule=rule,
            predictions=name,
            missing_databases=missing,
            left_out=len(benchmark.cases) - len(places),
            seconds=seconds,
        )
        results.append(Scoring(report, scored))
    return tuple(results)
