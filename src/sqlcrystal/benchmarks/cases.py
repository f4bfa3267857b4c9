"""A benchmark: questions with gold, and where their databases are. Gold lives here and nowhere else."""

import hashlib
from collections.abc import Collection

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sqlcrystal.errors import ConfigError, DataError
from sqlcrystal.types import Question


class Case(Struct, frozen=True, kw_only=True):
    """A question with its gold SQL; `wrong` holds plausible queries known to be wrong, where a benchmark keeps them."""

    question: Question
    sql: str
    wrong: tuple[str, ...] = ()
    paraphrases: tuple[str, ...] = ()
    """The same question in other words: it has the same gold."""
    known: bool = False
    """Whether an earlier study asked it, so that a new one does not start blind."""

    @property
    def earlier(self) -> tuple[Question, ...]:
        """Give the questions before it in its dialogue; most questions stand alone."""
        return ()

    @property
    def opening(self) -> Question:
        """Give the question that its dialogue begins with: itself, where it is no dialogue's."""
        return self.earlier[0] if self.earlier else self.question


class LaterTurn(Case, frozen=True, kw_only=True):
    """A question that goes on from others, which are to be answered before it.

    A type of its own, so that the digest of a benchmark without dialogues stays as it was.
    """

    earlier: tuple[Question, ...]


class Benchmark(Struct, frozen=True, kw_only=True):
    """Cases, and for each database a file path or SQLAlchemy URL; `missing` names the databases that have neither."""

    name: str
    cases: tuple[Case, ...]
    locations: dict[str, str]
    missing: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    """Databases that were missing, and whose questions were left out because they might be."""
    instances: dict[str, tuple[str, ...]] = {}
    """Further instances of each database, for the rule `instances`; empty until they are asked for."""

    @property
    def databases(self) -> tuple[str, ...]:
        """Every database that has a question, in the order they first appear."""
        return tuple(dict.fromkeys(case.question.database for case in self.cases))

    @property
    def digest(self) -> str:
        """A name for exactly these questions; gold is part of it and cannot be read from it."""
        return hashlib.sha256(msgspec.json.encode([self.name, self.cases])).hexdigest()

    def first(self, limit: int) -> "Benchmark":
        """At most so many questions of each database, the first ones."""
        by_database: dict[str, list[Case]] = {}
        for case in self.cases:
            by_database.setdefault(case.question.database, []).append(case)
        return replace(self, cases=tuple(case for members in by_database.values() for case in members[:limit]))

    def only(self, databases: Collection[str]) -> "Benchmark":
        """The part of the benchmark that asks these databases."""
        for name in databases:
            if name not in self.databases:
                raise ConfigError.unknown("database", name, self.databases)
        return replace(
            self,
            cases=tuple(case for case in self.cases if case.question.database in databases),
            missing=tuple(name for name in self.missing if name in databases),
        )

    def available(self, *, skip_missing: bool) -> "Benchmark":
        """The part whose databases are here; raises when some are not, unless they may be skipped."""
        if not self.missing:
            return self
        if not skip_missing:
            listed = ", ".join(self.missing)
            count = len(self.missing)
            raise DataError(
                f"--data: {count} of {len(self.databases)} databases of {self.name} are missing: {listed};"
                " pass --skip-missing to leave their questions out"
            )
        here = [name for name in self.databases if name not in self.missing]
        if not here:
            raise DataError(f"--data: none of the databases of {self.name} is there: {', '.join(self.missing)}")
        return replace(self.only(here), skipped=self.missing)


def make_benchmark(name: str, cases: list[Case], locations: dict[str, str]) -> Benchmark:
    """A benchmark over the databases found, naming those that were not."""
    if not cases:
        raise DataError(f"{name}: the file holds no questions")
    needed = dict.fromkeys(case.question.database for case in cases)
    return Benchmark(
        name=name,
        cases=tuple(cases),
        locations={database: locations[database] for database in needed if database in locations},
        missing=tuple(database for database in needed if database not in locations),
    )
