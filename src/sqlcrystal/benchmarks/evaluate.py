"""Scores anybody's prediction file on a benchmark: reading the file, and the one function behind `sqlcrystal score`."""

import time
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec import Struct

from sqlcrystal.benchmarks.cases import Benchmark, Case
from sqlcrystal.benchmarks.catalogue import with_instances
from sqlcrystal.benchmarks.files import parse_json, read_json_lines, read_text
from sqlcrystal.errors import DataError
from sqlcrystal.scoring.cache import GoldCache
from sqlcrystal.scoring.judge import MAX_ROWS, TIMEOUT, OnProgress, PredictedPair, judge
from sqlcrystal.scoring.verdicts import (
    DEFAULT_RULE,
    Judgement,
    Report,
    Scored,
    prepare_gold,
    prepare_prediction,
    report_of,
    rule_named,
)

_BIRD_MARK = "\t----- bird -----\t"
_ID_KEYS = ("id", "question_id")
_SQL_KEYS = ("sql", "prediction", "predicted_sql", "SQL")


def read_predictions(path: Path, benchmark: Benchmark) -> list[str]:
    """One SQL per case of the whole benchmark, in its order; the kind of file is told by its first character."""
    text = read_text(path)
    start = text.lstrip()[:1]
    if not start:
        raise DataError(f"{path}: the file is empty")
    if start == "{":
        lines = [line for line in text.split("\n") if line.strip()]
        if len(lines) > 1 and lines[0].rstrip().endswith("}"):
            return _from_json_lines(path, benchmark)
        document = parse_json(text, path)
        if len(lines) == 1 and any(key in document for key in _SQL_KEYS):
            return _from_json_lines(path, benchmark)
        return _from_object(path, document, benchmark)
    if start == "[":
        return _from_list(path, parse_json(text, path), benchmark)
    return _from_lines(path, text, benchmark)


def _from_object(path: Path, document: dict[str, Any], benchmark: Benchmark) -> list[str]:
    """BIRD: keys are positions (or question ids), values end in the name of the database."""
    keys = _keys(path, list(document), benchmark)
    return [_value(path, key, document[key], position, benchmark) for position, key in enumerate(keys)]


def _value(path: Path, key: str, value: Any, position: int, benchmark: Benchmark) -> str:
    if value is None or isinstance(value, int):
        return ""  # BIRD's own scripts write 0 where a model gave no answer
    if not isinstance(value, str):
        raise DataError(f"{path}: the prediction of {key!r} must be a string of SQL")
    sql, mark, database = value.partition(_BIRD_MARK)
    if mark:
        _check_database(path, f"prediction {key!r}", database.strip(), position, benchmark)
    return sql


def _from_list(path: Path, document: list[Any], benchmark: Benchmark) -> list[str]:
    """A JSON list: of strings by position, or of objects by id."""
    if all(isinstance(value, str) for value in document):
        _check_count(path, len(document), benchmark)
        return [_value(path, str(index), value, index, benchmark) for index, value in enumerate(document)]
    return _from_records(path, list(enumerate(document)), "element", benchmark)


def _from_json_lines(path: Path, benchmark: Benchmark) -> list[str]:
    return _from_records(path, list(read_json_lines(path)), "line", benchmark)


def _from_records(path: Path, records: Sequence[tuple[int, Any]], unit: str, benchmark: Benchmark) -> list[str]:
    """Objects with id or question_id and sql or prediction; without ids they are taken by position."""
    predictions: dict[str, str] = {}
    databases: dict[str, str] = {}
    for index, (number, record) in enumerate(records):
        if not isinstance(record, dict):
            raise DataError(f"{path}: {unit} {number} is not an object")
        sql = next((record[key] for key in _SQL_KEYS if key in record), None)
        if sql is not None and not isinstance(sql, str):
            raise DataError(f"{path}: {unit} {number}: the SQL must be a string or null")
        if sql is None and not any(key in record for key in _SQL_KEYS):
            raise DataError(f"{path}: {unit} {number} has none of the keys {', '.join(_SQL_KEYS)}")
        key = str(next((record[key] for key in _ID_KEYS if key in record), index))
        if key in predictions:
            raise DataError(f"{path}: {unit} {number} repeats the id {key!r}")
        predictions[key] = sql or ""
        if isinstance(database := record.get("database", record.get("db_id")), str):
            databases[key] = database
    keys = _keys(path, list(predictions), benchmark)
    for position, key in enumerate(keys):
        if key in databases:
            _check_database(path, f"prediction {key!r}", databases[key], position, benchmark)
    return [predictions[key] for key in keys]


def _from_lines(path: Path, text: str, benchmark: Benchmark) -> list[str]:
    """Spider: a line of SQL per question, with the database after a tab if at all."""
    lines = text.rstrip("\n").split("\n")
    if len(lines) != len(benchmark.cases):
        lines = [line for line in lines if line.strip()]
    _check_count(path, len(lines), benchmark)
    predictions = []
    for index, line in enumerate(lines):
        sql, tab, database = line.rstrip("\r").partition("\t")
        if tab and database.strip() and _BIRD_MARK not in line:
            _check_database(path, f"line {index + 1}", database.strip(), index, benchmark)
        predictions.append(sql)
    return predictions


def _keys(path: Path, keys: list[str], benchmark: Benchmark) -> list[str]:
    """The file's keys in the order of the cases: question ids if they are exactly those, else positions."""
    count, keys_given = len(benchmark.cases), set(keys)
    orders = [[case.question.id for case in benchmark.cases], [str(index) for index in range(count)]]
    for names in orders:
        if set(names) == keys_given:
            return names
    for names in orders:
        if keys_given < set(names):
            absent = [name for name in names if name not in keys_given]
            more = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
            raise DataError(
                f"{path}: {len(keys)} predictions, but {benchmark.name} has {count} questions: none for"
                f" {absent[0]!r}{more}; an empty string stands for no answer"
            )
    known = set().union(*orders)
    stranger = next((key for key in keys if key not in known), keys[0])
    raise DataError(f"{path}: {stranger!r} is neither a question id of {benchmark.name} nor a position below {count}")


def _check_count(path: Path, count: int, benchmark: Benchmark) -> None:
    if count != len(benchmark.cases):
        raise DataError(f"{path}: {count} predictions, but {benchmark.name} has {len(benchmark.cases)} questions")


def _check_database(path: Path, where: str, database: str, position: int, benchmark: Benchmark) -> None:
    """A file made for other questions would score low without a word; its database names give it away."""
    expected = benchmark.cases[position].question.database
    if database == expected:
        return
    if database not in benchmark.databases:
        raise DataError(
            f"{path}: {where} is for the unknown database {database!r}; {benchmark.name} has no such database"
        )
    raise DataError(f"{path}: {where} is for the database {database!r}, but that question asks {expected!r}")


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
        scored = tuple(_scored(benchmark.cases[place], sqls[place], verdict) for place, verdict in judged_places)
        results.append(Scoring(_report(name, scored, benchmark, chosen, rule=rule, seconds=seconds), scored))
    return tuple(results)


def _report(
    name: str, scored: Sequence[Scored], benchmark: Benchmark, chosen: Benchmark, *, rule: str, seconds: float
) -> Report:
    return report_of(
        scored,
        benchmark=benchmark.name,
        rule=rule,
        predictions=name,
        missing_databases=chosen.missing,
        left_out=len(benchmark.cases) - len(scored),
        seconds=seconds,
    )


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
