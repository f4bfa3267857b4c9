"""The common part of all arms: questions, databases, the oracle, and stages that do each piece of work once."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from sqlcrystal.benchmarks.cases import Benchmark
from sqlcrystal.benchmarks.catalogue import GENERATED, instances, load_asked, with_instances
from sqlcrystal.benchmarks.oracle import GoldOracle
from sqlcrystal.benchmarks.query_log import logged
from sqlcrystal.config import StudyFile
from sqlcrystal.databases import open_database
from sqlcrystal.errors import ConfigError, DataError, ModelError, RecordingMiss
from sqlcrystal.pipeline import Memory
from sqlcrystal.protocols import Check, Database, Solver, Source, Writer
from sqlcrystal.querylog.definitions import Defined, read_definitions
from sqlcrystal.querylog.readers import read_file
from sqlcrystal.scoring.judge import check_files
from sqlcrystal.single_flight import SingleFlight
from sqlcrystal.solving.following import PastTurn, Reading
from sqlcrystal.telling.definitions import statement_of
from sqlcrystal.telling.words import Glossary, Meant
from sqlcrystal.types import (
    Admitted,
    Attempt,
    Card,
    CardId,
    Effort,
    Execution,
    Failure,
    FailureKind,
    Message,
    Question,
    Retrieved,
    Written,
)

KEPT_ROWS = 5_000
USUAL_ROWS = 100_000
QuestionKey: TypeAlias = tuple[str, str]
Wording: TypeAlias = tuple[str, str, str, str]
Readings: TypeAlias = SingleFlight[tuple[int, Wording, tuple[PastTurn, ...]], Reading]
REPEATED = (ModelError, RecordingMiss)
"""A call that failed once fails for all units of the run that need it; it is not sent again until the next run."""
Attempts: TypeAlias = SingleFlight[tuple[str, int, Wording, tuple[str, ...]], Attempt]
Efforts: TypeAlias = SingleFlight[tuple[str, str, str, bool, QuestionKey, tuple[Message, ...]], Effort]
Cards: TypeAlias = SingleFlight[tuple[str, str, str, str, QuestionKey, str, tuple[Message, ...]], Written]


def as_asked(question: Question) -> Wording:
    """Identify a question in these words: a paraphrase has the id of the question that it repeats."""
    return (*question.key, question.text, question.evidence)


class RememberedSolver:
    """A solver that answers a question once for each repetition and each text of its cards."""

    def __init__(self, solver: Solver, attempts: Attempts, *, name: str, repetition: int) -> None:
        self._solver, self._attempts, self._name, self._repetition = solver, attempts, name, repetition

    def shown(self, question: Question) -> Database:
        """As the solver shows it."""
        return self._solver.shown(question)

    def solve(self, question: Question, cards: Sequence[Card] = ()) -> Attempt:
        """The attempt, made when it is first needed."""
        key = (self._name, self._repetition, as_asked(question), tuple(card.text for card in cards))
        return self._attempts.get(key, lambda: self._solver.solve(question, cards))


class RememberedSource:
    """A source that works on an attempt once in each regime, which decides what it accepts, and over each schema."""

    def __init__(self, source: Source, efforts: Efforts, *, regime: str, schema: str) -> None:
        self._source, self._efforts, self._regime, self._schema = source, efforts, regime, schema
        self.name = source.name

    def acquire(self, attempt: Attempt, *, right: bool, accept: Check) -> Effort:
        """The effort, made when it is first needed."""
        asked = attempt.call.messages if attempt.calls else (Message("log", attempt.sql or ""),)
        key = (self.name, self._regime, self._schema, right, attempt.question.key, asked)
        return self._efforts.get(key, lambda: self._source.acquire(attempt, right=right, accept=accept))

    def calls_in(self, rounds: float) -> float:
        """As the source says."""
        return self._source.calls_in(rounds)


class RememberedWriter:
    """A writer that writes an episode once for each signal that let it through."""

    def __init__(self, writer: Writer, cards: Cards, *, name: str) -> None:
        self._writer, self._cards, self._name = writer, cards, name

    def write(self, admitted: Admitted) -> Written:
        """The card, written when it is first needed."""
        episode, admission = admitted.episode, admitted.admission
        trace = episode.attempt.call.messages
        key = (self._name, episode.source, admission.signal, admission.detail, episode.question.key, episode.sql, trace)
        return self._cards.get(key, lambda: self._writer.write(admitted))


class RememberedDatabase:
    """A database that runs each statement once; large results are run again rather than kept."""

    def __init__(self, database: Database, *, timeout: float) -> None:
        """Wrap a database; no statement may take longer than `timeout`."""
        self.name, self.dialect = database.name, database.dialect
        self._database = database
        self._timeout = timeout
        self._schema = database.schema()
        self._fingerprint = database.fingerprint()
        self._known: SingleFlight[tuple[str, float, int], Execution] = SingleFlight(
            keep=lambda execution: isinstance(execution, Failure) or len(execution.rows) <= KEPT_ROWS
        )

    def schema(self) -> str:
        """The DDL, read once."""
        return self._schema

    def fingerprint(self) -> str:
        """The digest of the schema, computed once."""
        return self._fingerprint

    def execute(self, sql: str, *, timeout: float = 30.0, max_rows: int = USUAL_ROWS) -> Execution:
        """Give the result of the statement's first run; a caller who allows more rows than usual pays for a second."""
        usual = self._run(sql, timeout, min(max_rows, USUAL_ROWS))
        if max_rows > USUAL_ROWS and isinstance(usual, Failure) and usual.kind is FailureKind.TOO_LARGE:
            return self._run(sql, timeout, max_rows)
        return usual

    def close(self) -> None:
        """Release the database."""
        self._database.close()

    def _run(self, sql: str, timeout: float, max_rows: int) -> Execution:
        seconds = min(timeout, self._timeout)
        return self._known.get(
            (sql, seconds, max_rows), lambda: self._database.execute(sql, timeout=seconds, max_rows=max_rows)
        )


class RememberedMemory:
    """A memory that recalls once for each question."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._recalled: SingleFlight[Wording, tuple[Retrieved, ...]] = SingleFlight()

    def recall(self, question: Question) -> tuple[Retrieved, ...]:
        """Tell what the memory brought up when it was first asked."""
        return self._recalled.get(as_asked(question), lambda: tuple(self._memory.recall(question)))

    def arrange(self, retrieved: Sequence[Retrieved]) -> Sequence[Card]:
        """As the memory does."""
        return self._memory.arrange(retrieved)


class MemoryWithout:
    """A memory that does without one card of each window; no other card takes its place."""

    def __init__(self, memory: Memory, place: int) -> None:
        """Leave out the card at a place, from 1 on, best first."""
        self._memory, self._place = memory, place

    def left_out(self, question: Question) -> CardId | None:
        """The card that is left out; None where the window is smaller."""
        window = self._memory.recall(question)
        return window[self._place - 1].card.id if self._place <= len(window) else None

    def recall(self, question: Question) -> tuple[Retrieved, ...]:
        """The window without that card."""
        window = self._memory.recall(question)
        return (*window[: self._place - 1], *window[self._place :])

    def arrange(self, retrieved: Sequence[Retrieved]) -> Sequence[Card]:
        """As the memory does."""
        return self._memory.arrange(retrieved)


class StudyDefinitions(NamedTuple):
    """The definitions that a study names, and the digest of their file; none where it names no file."""

    place: str = ""
    digest: str = ""
    defined: tuple[Defined, ...] = ()

    @classmethod
    def of(cls, file: Path | None, databases: Mapping[str, str]) -> "StudyDefinitions":
        """Read the file, which names the database of each definition."""
        if file is None:
            return cls()
        text = read_file(file)
        defined = tuple(read_definitions(text, file.name))
        for each in defined:
            if each.database not in databases:
                raise ConfigError.unknown(f"{file.name}:{each.line}: database", each.database, databases)
        return cls(file.name, hashlib.sha256(text.encode()).hexdigest(), defined)

    def glossary(self, database: Database) -> Glossary:
        """Gather the definitions of a database, each of which must run."""
        own = [each for each in self.defined if each.database == database.name]
        for each in own:
            execution = database.execute(statement_of(each.definition, database.dialect))
            if isinstance(execution, Failure):
                raise DataError(f"{self.place}:{each.line}: {execution.kind}: {execution.message}")
        return Glossary((CardId(f"{self.place}:{each.line}"), each.definition) for each in own)


class World:
    """The benchmark as a study meets it; gold stays in its oracle and comes out as bits."""

    def __init__(self, benchmark: Benchmark, *, check: str, timeout: float, definitions: Path | None = None) -> None:
        """Look for the database files; each is opened on first use."""
        self.definitions = StudyDefinitions.of(definitions, benchmark.locations)
        check_files({name: benchmark.locations[name] for name in benchmark.databases})
        self.benchmark = benchmark
        self.timeout = timeout
        further = self._instances if benchmark.instances else None
        self.oracle = GoldOracle(benchmark.cases, self.database, check=check, instances_of=further)
        self._cases = {case.question.key: case for case in benchmark.cases}
        self._opened: SingleFlight[str, RememberedDatabase] = SingleFlight()
        self._glossaries: SingleFlight[str, Glossary] = SingleFlight()
        self._open: list[RememberedDatabase] = []

    @classmethod
    def of(cls, study: StudyFile) -> "World":
        """Open the world that a study file describes."""
        benchmark = with_instances(load_asked(study.asked), study.check, study.rule)
        definitions = Path(study.definitions) if study.definitions else None
        return cls(benchmark, check=study.check, timeout=study.timeout, definitions=definitions)

    @property
    def identities(self) -> dict[str, str]:
        """Name the questions, and the definitions where there are any."""
        told = {"definitions": self.definitions.digest} if self.definitions.digest else {}
        return {"questions": self.benchmark.digest, **told}

    def database(self, name: str) -> RememberedDatabase:
        """A database by name, opened once."""
        return self._at(self.benchmark.locations[name], name)

    def meant(self, question: Question) -> tuple[Meant, ...]:
        """Give the definitions of a question's terms; all of its database are run once, and one that fails is told."""
        name = question.database
        return self._glossaries.get(name, lambda: self.definitions.glossary(self.database(name))).found(question.text)

    def logged(self, question: Question, share: float) -> str:
        """Give the query that a log holds for a question: its gold, or of a share one that is wrong or stale."""
        return logged(self._cases[question.key], self.database(question.database).dialect, share=share)

    @property
    def generated(self) -> bool:
        """Tell whether its databases can be generated anew, with other rows."""
        return self.benchmark.name in GENERATED

    def by_luck(self, question: Question, sql: str) -> bool:
        """Tell whether an answer that is right here is wrong on another generated instance of its database."""
        return not self.oracle.holds(question, sql, self._instances(question.database))

    def close(self) -> None:
        """Close every database."""
        for database in self._open:
            database.close()

    def _instances(self, name: str) -> list[RememberedDatabase]:
        """The further instances of a database, which only the oracle asks."""
        return [self._at(location, name) for location in instances(self.benchmark, name)]

    def _at(self, location: str, name: str) -> RememberedDatabase:
        def open_one() -> RememberedDatabase:
            opened = open_database(location, name=name, inspect=False)  # a model writes the SQL
            remembered = RememberedDatabase(opened, timeout=self.timeout)
            self._open.append(remembered)
            return remembered

        return self._opened.get(location, open_one)
