"""BIRD dev and BIRD mini-dev (SQLite and PostgreSQL editions), as the official archives lay them out."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct, field

from sqlcrystal.benchmarks.cases import Benchmark, Case, make_benchmark
from sqlcrystal.benchmarks.files import find_file, find_folder, locate, read_records, require_folder
from sqlcrystal.errors import DataError
from sqlcrystal.types import Question


class _BirdEntry(Struct):
    db_id: str
    question: str
    sql: str = field(name="SQL")
    question_id: int | str | None = None
    evidence: str | None = ""
    difficulty: str = ""


def load_dev(data: Path | None, databases: Sequence[str] = ()) -> Benchmark:
    """BIRD dev: dev.json and dev_databases/<db>/<db>.sqlite."""
    return _load("bird", data, "dev.json", databases)


def load_minidev(data: Path | None, databases: Sequence[str] = ()) -> Benchmark:
    """BIRD mini-dev, SQLite edition: mini_dev_sqlite.json and dev_databases/."""
    return _load("minidev", data, "mini_dev_sqlite.json", databases)


def load_minidev_postgresql(data: Path | None, databases: Sequence[str] = ()) -> Benchmark:
    """BIRD mini-dev, PostgreSQL edition: mini_dev_postgresql.json and URLs given with --databases."""
    return _load("minidev-postgresql", data, "mini_dev_postgresql.json", databases, files=False)


def _load(name: str, data: Path | None, file_name: str, databases: Sequence[str], *, files: bool = True) -> Benchmark:
    folder = require_folder(data, name)
    path = find_file(folder, file_name)
    if path is None:
        raise DataError(f"--data: no {file_name} in {folder} or two folders below")
    cases = _cases(read_records(path, _BirdEntry))
    folders = _database_folders(folder, path.parent) if files else []
    return make_benchmark(
        name, cases, locate((case.question.database for case in cases), folders=folders, given=databases)
    )


def _cases(entries: list[_BirdEntry]) -> list[Case]:
    """One case per entry; mini-dev repeats two question ids, so a repeated id gets a suffix."""
    uses: Counter[str] = Counter()
    cases = []
    for position, entry in enumerate(entries):
        identity = str(position if entry.question_id is None else entry.question_id)
        uses[identity] += 1
        question = Question(
            id=identity if uses[identity] == 1 else f"{identity}-{uses[identity]}",
            database=entry.db_id,
            text=entry.question,
            evidence=entry.evidence or "",
            difficulty=entry.difficulty,
        )
        cases.append(Case(question=question, sql=entry.sql))
    return cases


def _database_folders(data: Path, beside: Path) -> list[Path]:
    """The dev_databases folder, wherever the archive put it, and the same folder nested in itself."""
    folders = [find_folder(beside, "dev_databases"), find_folder(data, "dev_databases")]
    return [candidate for folder in folders if folder for candidate in (folder, folder / "dev_databases")]
