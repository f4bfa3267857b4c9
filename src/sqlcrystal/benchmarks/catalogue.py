"""Name → loader: every benchmark there is, how to get one, and the user's own questions beside their databases."""

import importlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sqlcrystal.benchmarks import bird, spider
from sqlcrystal.benchmarks.cases import Benchmark, Case, make_benchmark
from sqlcrystal.benchmarks.files import locate, read_json_lines
from sqlcrystal.errors import ConfigError, DataError
from sqlcrystal.scoring.verdicts import INSTANCES
from sqlcrystal.types import Question

if TYPE_CHECKING:
    from sqlcrystal.config import BenchmarkEntry


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


Loader = Callable[[Path | None, Sequence[str]], Benchmark]


def _load_quarry(_data: Path | None, _databases: Sequence[str], *, edition: int = 2) -> Benchmark:
    """The bundled benchmark, imported only when asked for: it builds its databases on first use."""
    benchmark: Benchmark = importlib.import_module("sqlcrystal.benchmarks.quarry").load(edition=edition)
    return benchmark


BENCHMARKS: dict[str, tuple[Loader, str]] = {
    "quarry": (_load_quarry, "bundled: databases whose conventions the schema does not show; needs no --data"),
    "quarry-1": (
        partial(_load_quarry, edition=1),
        "the 259 questions of Quarry's first edition, which are part of quarry",
    ),
    "bird": (bird.load_dev, "BIRD dev: dev.json, dev_databases/"),
    "minidev": (bird.load_minidev, "BIRD mini-dev for SQLite: mini_dev_sqlite.json, dev_databases/"),
    "minidev-postgresql": (bird.load_minidev_postgresql, "BIRD mini-dev for PostgreSQL; needs --databases URL"),
    "spider": (spider.load_dev, "Spider dev: dev.json, database/"),
    "spider-train": (spider.load_train, "Spider train: train_spider.json, train_others.json, database/"),
    "spider-test": (spider.load_test, "Spider test: test.json, test_database/"),
    "sparc": (spider.load_sparc, "SParC dev, in dialogues: sparc_dev.json, and Spider's database/"),
    "cosql": (spider.load_cosql, "CoSQL dev, in dialogues: cosql_dev.json, and Spider's database/"),
    "own": (load, "your JSON Lines file of question, sql, database"),
}


GENERATED = ("quarry", "quarry-1")
"""The benchmarks whose databases come from a generator, so that there can be more of them."""


def load_benchmark(name: str, data: Path | None = None, databases: Sequence[str] = ()) -> Benchmark:
    """Load a benchmark by name; an unknown name is a ConfigError with the choices."""
    if name not in BENCHMARKS:
        raise ConfigError.unknown("benchmark", name, BENCHMARKS)
    loader, _ = BENCHMARKS[name]
    return loader(data, databases)


def with_instances(benchmark: Benchmark, *rules: str) -> Benchmark:
    """The benchmark with further instances of its databases, where one of the rules needs them."""
    if INSTANCES not in rules:
        return benchmark
    if benchmark.name not in GENERATED:
        raise ConfigError(
            f"rule: {INSTANCES} needs databases that can be generated anew, which {' and '.join(GENERATED)} have"
            f" and {benchmark.name} has not"
        )
    return replace(benchmark, instances={name: instances(benchmark, name) for name in benchmark.databases})


def instances(benchmark: Benchmark, name: str) -> tuple[str, ...]:
    """Give the files of a database's further instances; none where it cannot be generated anew."""
    if benchmark.name not in GENERATED:
        return ()
    made: tuple[str, ...] = importlib.import_module("sqlcrystal.benchmarks.quarry").instances(name)
    return made


def load_asked(asked: "BenchmarkEntry") -> Benchmark:
    """The questions that a study file asks for."""
    benchmark = load_benchmark(asked.name, Path(asked.data) if asked.data else None, asked.databases)
    if asked.only:
        benchmark = benchmark.only(asked.only)
    benchmark = benchmark.available(skip_missing=asked.skip_missing)
    if asked.limit < 0:
        raise ConfigError(f"benchmark.limit: {asked.limit} is below 0")
    return benchmark.first(asked.limit) if asked.limit else benchmark
