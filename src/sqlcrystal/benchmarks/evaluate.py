"""Scores predictions on a benchmark: the one function behind `sqlcrystal score`."""

import time
from collections.abc import Mapping, Sequence
from itertools import islice

from msgspec import Struct

from sqlcrystal.benchmarks.cases import Benchmark, Case
from sqlcrystal.benchmarks.catalogue import with_instances
from sqlcrystal.errors import DataError
from sqlcrystal.scoring.cache import GoldCache
from sqlcrystal.scoring.chunks import PredictedPair
from sqlcrystal.scoring.judge import MAX_ROWS, TIMEOUT, OnProgress, judge
from sqlcrystal.scoring.report import Report, Scored, report_of
from sqlcrystal.scoring.tokens import prepare_gold, prepare_prediction
from sqlcrystal.scoring.verdicts import DEFAULT_RULE, Judgement, rule_named


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
    benchmark = with_instances(benchmark, rule)
    _check_lengths(benchmark, predictions)
    chosen = benchmark.only(databases) if databases else benchmark
    available = set(chosen.available(skip_missing=skip_missing).databases)
    places = [place for place, case in enumerate(benchmark.cases) if case.question.database in available]
    start = time.perf_counter()
    pairs = [_on_instances(benchmark, pair) for pair in _pairs(benchmark, predictions, places, rule)]
    judged = iter(
        judge(
            [copy for copies in pairs for copy in copies],
            {**benchmark.locations, **_instances(benchmark)},
            rule=rule,
            jobs=jobs,
            timeout=timeout,
            max_rows=max_rows,
            cache=cache,
            on_progress=on_progress,
        )
    )
    verdicts = [_on_all(list(islice(judged, len(copies)))) for copies in pairs]
    seconds = time.perf_counter() - start
    results = []
    for number, (name, sqls) in enumerate(predictions.items()):
        own_verdicts = verdicts[number * len(places) : (number + 1) * len(places)]
        judged_places = zip(places, own_verdicts, strict=True)
        scored = [_scored(benchmark.cases[place], sqls[place], verdict) for place, verdict in judged_places]
        report = report_of(
            scored,
            benchmark=benchmark.name,
            rule=rule,
            predictions=name,
            missing_databases=chosen.missing,
            left_out=len(benchmark.cases) - len(places),
            seconds=seconds,
        )
        results.append(Scoring(report, tuple(scored)))
    return tuple(results)


def _check_lengths(benchmark: Benchmark, predictions: Mapping[str, Sequence[str]]) -> None:
    count = len(benchmark.cases)
    for name, sqls in predictions.items():
        if len(sqls) != count:
            raise DataError(f"{name}: {len(sqls)} predictions, but {benchmark.name} has {count} questions")


def _pairs(
    benchmark: Benchmark, predictions: Mapping[str, Sequence[str]], places: list[int], rule: str
) -> list[PredictedPair]:
    """Every prediction beside its gold, as the rule executes them: one list after the other."""
    golds = [
        (place, benchmark.cases[place].question.database, prepare_gold(benchmark.cases[place].sql, rule))
        for place in places
    ]
    return [
        PredictedPair(database, gold, prepare_prediction(sqls[place], rule))
        for sqls in predictions.values()
        for place, database, gold in golds
    ]


def _instance(database: str, number: int) -> str:
    return f"{database}, instance {number}"


def _instances(benchmark: Benchmark) -> dict[str, str]:
    """The places of all further instances, by name."""
    return {
        _instance(name, number): location
        for name, further in benchmark.instances.items()
        for number, location in enumerate(further, 1)
    }


def _on_instances(benchmark: Benchmark, pair: PredictedPair) -> list[PredictedPair]:
    """The pair on its database, then on each further instance that the rule asks."""
    further = benchmark.instances.get(pair.database, ())
    return [pair, *(pair._replace(database=_instance(pair.database, number)) for number in range(1, len(further) + 1))]


def _on_all(verdicts: list[Judgement]) -> Judgement:
    """The first verdict that is not right, or else that of the database itself."""
    return next((verdict for verdict in verdicts if not verdict.correct), verdicts[0])


def _scored(case: Case, sql: str, verdict: Judgement) -> Scored:
    question = case.question
    return Scored(
        question_id=question.id,
        database=question.database,
        difficulty=question.difficulty,
        kind=verdict.kind,
        seconds=verdict.seconds,
        message=verdict.message if sql.strip() else "no prediction",
        sql=sql,
    )
