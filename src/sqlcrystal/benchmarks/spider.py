"""Spider 1.0 in its dev, train and test layouts, with the official hardness as difficulty."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from sqlcrystal.benchmarks.cases import Benchmark, Case, make_benchmark
from sqlcrystal.benchmarks.files import find_file, find_folder, read_records, require_folder
from sqlcrystal.benchmarks.hardness import hardness
from sqlcrystal.benchmarks.locations import locate
from sqlcrystal.errors import DataError
from sqlcrystal.types import Question


class _SpiderEntry(Struct):
    db_id: str
    question: str
    query: str
    sql: dict[str, Any] | None = None


class _Paraphrase(Struct):
    """A question in other words; `of` is the position of the one it repeats."""

    question: str
    of: str


def load_dev(data: Path | None, databases: Sequence[str] = ()) -> Benchmark:
    """Load Spider dev: dev.json, database/, and paraphrases.json if it is there."""
    return _load("spider", data, ("dev.json",), databases)


def load_train(data: Path | None, databases: Sequence[str] = ()) -> Benchmark:
    """Spider train: train_spider.json, train_others.json if it is there, and database/."""
    return _load("spider-train", data, ("train_spider.json", "train_others.json"), databases)


def load_test(data: Path | None, databases: Sequence[str] = ()) -> Benchmark:
    """Spider test: test.json and test_database/, or database/ where they were merged."""
    return _load("spider-test", data, ("test.json",), databases)


def _load(name: str, data: Path | None, file_names: Sequence[str], databases: Sequence[str]) -> Benchmark:
    folder = require_folder(data, name)
    paths = [find_file(folder, file_name) for file_name in file_names]
    if paths[0] is None:
        raise DataError(f"--data: no {file_names[0]} in {folder} or two folders below")
    entries = [entry for path in paths if path for entry in read_records(path, _SpiderEntry)]
    others = _paraphrases(paths[0].with_name("paraphrases.json"))
    cases = [_case(position, entry, others) for position, entry in enumerate(entries)]
    order = ("test_database", "database") if name == "spider-test" else ("database", "test_database")
    folders = [
        existing for name in order if (existing := find_folder(paths[0].parent, name) or find_folder(folder, name))
    ]
    return make_benchmark(
        name, cases, locate((case.question.database for case in cases), folders=folders, given=databases)
    )


def _paraphrases(path: Path) -> dict[str, list[str]]:
    """Read the other wordings of each question, by its position."""
    wordings: dict[str, list[str]] = {}
    for entry in read_records(path, _Paraphrase) if path.is_file() else ():
        wordings.setdefault(entry.of, []).append(entry.question)
    return wordings


def _case(position: int, entry: _SpiderEntry, paraphrases: Mapping[str, Sequence[str]]) -> Case:
    """Spider numbers its questions by position only."""
    question = Question(
        id=str(position),
        database=entry.db_id,
        text=entry.question,
        difficulty=hardness(entry.sql) if entry.sql else "",
    )
    return Case(question=question, sql=entry.query, paraphrases=tuple(paraphrases.get(question.id, ())))
