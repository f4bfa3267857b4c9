"""Quarry, the bundled benchmark: small databases whose conventions the schema does not show, built on first use."""

import hashlib
import importlib
import json
import os
import sqlite3
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator
from importlib import resources
from pathlib import Path
from random import Random

import msgspec
from msgspec import Struct

from sqlcrystal.benchmarks.cases import Benchmark, Case, make_benchmark
from sqlcrystal.errors import ConfigError, DataError
from sqlcrystal.types import Question

DIFFICULTIES = ("simple", "moderate", "challenging")
FIRST_EDITION = 26
"""The questions of a database up to this number made up the first edition; telecom had one fewer."""
FEWER = {"telecom": 25}
INSTANCES = 4
"""Further instances of each database that the rule `instances` asks."""


class QuarryQuestion(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One question as written: its words, its gold, and plausible queries that are wrong."""

    id: str
    text: str
    evidence: str = ""
    difficulty: str
    conventions: tuple[str, ...] = ()
    sql: str
    wrong: tuple[str, ...]
    empty: bool = False
    """The right answer is no row, or nothing but NULL and zero: an empty result then betrays nobody."""

    @property
    def database(self) -> str:
        """The database the question is asked of, which its id starts with."""
        return self.id.rpartition("-")[0]

    @property
    def edition(self) -> int:
        """The edition of Quarry that brought the question."""
        number = int(self.id.rpartition("-")[2])
        return 1 if number <= FEWER.get(self.database, FIRST_EDITION) else 2

    @property
    def question(self) -> Question:
        """Tell what a solver may see: everything but the gold, the wrong queries and the tags."""
        return Question(
            id=self.id, database=self.database, text=self.text, evidence=self.evidence, difficulty=self.difficulty
        )


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    question: tuple[QuarryQuestion, ...]


def names() -> tuple[str, ...]:
    """Every database of Quarry, in alphabetical order."""
    files = (file.name for file in resources.files(__name__).iterdir())
    return tuple(sorted(file.removesuffix(".toml") for file in files if file.endswith(".toml")))


def entries(name: str) -> tuple[QuarryQuestion, ...]:
    """The questions of one database, in the order of its file."""
    if name not in names():
        raise ConfigError.unknown("database", name, names())
    text = resources.files(__name__).joinpath(f"{name}.toml").read_text(encoding="utf-8")
    try:
        return msgspec.convert(tomllib.loads(text), _File).question
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise DataError(f"{name}.toml: {error}") from error


def paraphrases() -> dict[str, tuple[str, ...]]:
    """Read two other wordings each of 200 questions, by id."""
    text = resources.files(__name__).joinpath("paraphrases.json").read_bytes()
    return msgspec.json.decode(text, type=dict[str, tuple[str, ...]])


def instances(name: str) -> tuple[str, ...]:
    """Give the files of a database's further instances; builds those that were not built yet."""
    return tuple(str(path(name, instance=number)) for number in range(1, INSTANCES + 1))


def load(*, edition: int = 2) -> Benchmark:
    """Quarry as a benchmark, up to an edition; builds the databases that were not built yet."""

    wordings = paraphrases()
    cases = [
        Case(
            question=entry.question,
            sql=entry.sql,
            wrong=entry.wrong,
            paraphrases=wordings.get(entry.id, ()),
            known=entry.edition < edition,
        )
        for name in names()
        for entry in entries(name)
        if entry.edition <= edition
    ]
    return make_benchmark(
        "quarry" if edition == 2 else f"quarry-{edition}", cases, {name: str(path(name)) for name in names()}
    )


RECIPE = 1
"""Raised when this module builds other bytes from the same generator."""

Generator = Callable[[Random], Iterator[tuple[str, list[tuple[object, ...]]]]]


class Blueprint(Struct, frozen=True):
    """The description of one database by its module."""

    name: str
    domain: str
    conventions: dict[str, str]
    schema: str
    rows: Generator


def blueprint(name: str) -> Blueprint:
    """Read the module of one database."""
    if name not in names():
        raise ConfigError.unknown("database", name, names())
    module = importlib.import_module(f"sqlcrystal.benchmarks.quarry.{name}")
    return Blueprint(name, module.DOMAIN, module.CONVENTIONS, module.SCHEMA, module.rows)


def cache_directory() -> Path:
    """Tell where built databases are kept: SQLCRYSTAL_CACHE, else the user's cache folder."""
    if chosen := os.environ.get("SQLCRYSTAL_CACHE"):
        return Path(chosen) / "quarry"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sqlcrystal" / "quarry"


def path(name: str, directory: Path | None = None, *, instance: int = 0) -> Path:
    """The file of one database, built if this version of its generator was not built yet.

    Instance 0 is the database that questions are asked of; others hold different rows by the same rules.
    """
    if name not in names():
        raise ConfigError.unknown("database", name, names())
    source = resources.files(__package__).joinpath(f"{name}.py").read_bytes()
    version = hashlib.sha256(source + str(RECIPE).encode()).hexdigest()[:12]
    target = (
        (directory or cache_directory()) / version / (f"{name}.{instance}.sqlite" if instance else f"{name}.sqlite")
    )
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            fresh = Path(scratch) / target.name
            build(name, fresh, instance=instance)
            fresh.replace(target)
    return target


def build(name: str, target: Path, *, instance: int = 0) -> None:
    """Write one database to a file that does not exist yet."""
    plan = blueprint(name)
    connection = sqlite3.connect(target, isolation_level=None)
    try:
        for pragma in (
            "page_size = 4096",
            "encoding = 'UTF-8'",
            "auto_vacuum = NONE",
            "journal_mode = OFF",
            "secure_delete = ON",
        ):
            connection.execute(f"PRAGMA {pragma}").fetchall()
        connection.execute("BEGIN")
        for statement in plan.schema.split(";"):
            if statement.strip():
                connection.execute(statement.strip())
        for table, rows in plan.rows(Random(f"quarry/{name}/{instance}" if instance else f"quarry/{name}")):
            if rows:
                marks = ", ".join("?" * len(rows[0]))
                connection.executemany(f'INSERT INTO "{table}" VALUES ({marks})', rows)
        connection.execute("COMMIT")
        connection.execute("VACUUM")
    finally:
        connection.close()
    _forget_the_writer(target)


def _forget_the_writer(target: Path) -> None:
    """Fix the header fields that name the writing SQLite's version and count its writes."""
    with target.open("r+b") as file:
        for offset in (24, 92):
            file.seek(offset)
            file.write((1).to_bytes(4, "big"))
        file.seek(96)
        file.write((3_037_000).to_bytes(4, "big"))


def digest(file: Path) -> str:
    """A digest of the schema and every row, whatever the version of SQLite that wrote the pages."""
    total = hashlib.sha256()
    connection = sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)
    try:
        tables = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
        for table, sql in tables:
            total.update(_line((table, sql)))
            for row in connection.execute(f'SELECT * FROM "{table}" ORDER BY rowid'):
                total.update(_line(row))
    finally:
        connection.close()
    return total.hexdigest()


def pinned() -> dict[str, str]:
    """The digests that the databases had when the benchmark was last released."""
    pins: dict[str, str] = json.loads(resources.files(__package__).joinpath("digests.json").read_text())
    return pins


def _line(values: Iterable[object]) -> bytes:
    return (repr(tuple(values)) + "\n").encode()
