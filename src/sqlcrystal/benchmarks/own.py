"""The user's own questions: JSON Lines of question, sql and database, beside their databases."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from sqlcrystal.benchmarks.cases import Benchmark, Case, make_benchmark
from sqlcrystal.benchmarks.files import read_json_lines
from sqlcrystal.benchmarks.locations import locate
from sqlcrystal.errors import DataError
from sqlcrystal.types import Question


class _OwnEntry(Struct):
    question: str
    sql: str
    database: str
    id: int | str | None = None
    evidence: str | None = ""
    difficulty: str | None = ""
    paraphrases: tuple[str, ...] = ()


def load(data: Path | None, databases: Sequence[str] = ()) -> Benchmark:
    """A JSON Lines file, or the folder that holds one; databases.toml, databases.json or SQLite files lie beside it."""
    path = _questions_file(data)
    cases: list[Case] = []
    places: dict[str, int] = {}
    for number, value in read_json_lines(path):
        case = _case(path, number, len(cases), value)
        if case.question.id in places:
            raise DataError(
                f"{path}: line {number} repeats the id {case.question.id!r} of line {places[case.question.id]}"
            )
        places[case.question.id] = number
        cases.append(case)
    beside = [path.parent / name for name in ("databases.toml", "databases.json")]
    folders = [path.parent / "databases", path.parent / "database", path.parent]
    names = [case.question.database for case in cases]
    return make_benchmark(
        "own",
        cases,
        locate(names, folders=folders, given=databases, beside=[file for file in beside if file.is_file()]),
    )


def _questions_file(data: Path | None) -> Path:
    if data is None:
        raise DataError("--data: own needs your JSON Lines file or the folder that holds it")
    if not data.is_dir():
        return data
    candidates = [data / "questions.jsonl"] if (data / "questions.jsonl").is_file() else sorted(data.glob("*.jsonl"))
    if len(candidates) != 1:
        names = ", ".join(path.name for path in candidates) or "none"
        raise DataError(f"--data: {data} must hold questions.jsonl or exactly one *.jsonl; found {names}")
    return candidates[0]


def _case(path: Path, number: int, position: int, value: Any) -> Case:
    try:
        entry = msgspec.convert(value, _OwnEntry)
    except msgspec.ValidationError as error:
        raise DataError(f"{path}: line {number}: {error}; needed are question, sql and database") from None
    question = Question(
        id=str(position if entry.id is None else entry.id),
        database=entry.database,
        text=entry.question,
        evidence=entry.evidence or "",
        difficulty=entry.difficulty or "",
    )
    return Case(question=question, sql=entry.sql, paraphrases=entry.paraphrases)
