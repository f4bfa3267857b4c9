"""Anybody's prediction file: BIRD's JSON object, Spider's lines, or JSON Lines."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sqlcrystal.benchmarks.cases import Benchmark
from sqlcrystal.benchmarks.files import parse_json, read_json_lines, read_text
from sqlcrystal.errors import DataError

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
