"""What all arms of a study share: the questions, their databases, and a verdict on every SQL, found out once."""

from threading import Lock

from msgspec import Struct

from sqlcrystal.benchmarks.cases import Benchmark, Case
from sqlcrystal.databases import open_database
from sqlcrystal.protocols import Check, Database
from sqlcrystal.scoring.judge import MAX_ROWS, check_files
from sqlcrystal.scoring.preparation import prepare_gold, prepare_prediction
from sqlcrystal.scoring.verdicts import GOLD_KINDS, RULES, Kind, compare
from sqlcrystal.types import Execution, Failure, FailureKind, Question, Rows

KEPT_ROWS = 5_000
NO_SQL = "no SQL"
UNEVALUABLE = "unevaluable"
"""The kind of an answer that could not be had or judged; it counts as wrong, and is left out of the evaluable-only."""


class Judgement(Struct, frozen=True):
    """What every rule says of one SQL; `kind` is set when the SQL or its gold gave no rows to compare."""

    rules: dict[str, bool]
    kind: str = ""

    def named(self, rule: str) -> str:
        """How the answer ended under one rule."""
        return self.kind or str(Kind.MATCH if self.rules[rule] else Kind.MISMATCH)


class World:
    """The benchmark as a study meets it; gold stays in here and comes out as bits."""

    def __init__(self, benchmark: Benchmark, *, check: str, timeout: float) -> None:
        """Look for the database files; each is opened on first use."""
        check_files({name: benchmark.locations[name] for name in benchmark.databases})
        self.benchmark = benchmark
        self.check = check
        self.timeout = timeout
        self._cases = {key_of(case.question): case for case in benchmark.cases}
        self._databases: dict[str, RememberingDatabase] = {}
        self._judged: dict[tuple[str, str, str], Judgement] = {}
        self._lock = Lock()

    def database(self, name: str) -> "RememberingDatabase":
        """A database by name, opened once."""
        with self._lock:
            if name not in self._databases:
                opened = open_database(self.benchmark.locations[name], name=name)
                self._databases[name] = RememberingDatabase(opened, timeout=self.timeout)
            return self._databases[name]

    def judge(self, question: Question, sql: str | None) -> Judgement:
        """What every rule says; each SQL of a question is executed and compared once."""
        if sql is None:
            return Judgement(dict.fromkeys(RULES, False), NO_SQL)
        key = (*key_of(question), sql)
        found = self._judged.get(key)
        if found is None:
            found = self._judged[key] = self._compare(self._cases[key_of(question)], sql)
        return found

    def right(self, question: Question, sql: str) -> bool:
        """The oracle's bit."""
        return self.judge(question, sql).rules[self.check]

    def check_of(self, question: Question) -> Check:
        """The bit for one question: all that a source may see."""
        return lambda sql: self.right(question, sql)

    def evaluable(self, question: Question) -> bool:
        """Whether the question's gold runs; without it nothing can be judged."""
        database = self.database(question.database)
        gold = prepare_gold(self._cases[key_of(question)].sql, self.check)
        return isinstance(database.execute(gold, max_rows=MAX_ROWS), Rows)

    def close(self) -> None:
        """Close every database."""
        for database in self._databases.values():
            database.close()

    def _compare(self, case: Case, sql: str) -> Judgement:
        database = self.database(case.question.database)
        verdicts = {}
        for rule in RULES:
            gold_sql = prepare_gold(case.sql, rule)
            gold = database.execute(gold_sql, max_rows=MAX_ROWS)
            predicted = database.execute(prepare_prediction(sql, rule), max_rows=MAX_ROWS)
            verdicts[rule] = compare(gold, predicted, rule, gold_sql=gold_sql)
        kind = verdicts[self.check].kind
        compared = kind in (Kind.MATCH, Kind.MISMATCH)
        bits = {rule: verdict.correct for rule, verdict in verdicts.items()}
        return Judgement(bits, "" if compared else UNEVALUABLE if kind in GOLD_KINDS else str(kind))


class RememberingDatabase:
    """A database that runs each statement once; large results are run again rather than kept.

    It does not guarantee that two threads never run the same statement at once; the results are equal.
    """

    def __init__(self, database: Database, *, timeout: float) -> None:
        """Wrap a database; no statement may take longer than `timeout`."""
        self.name = database.name
        self.dialect = database.dialect
        self._database = database
        self._timeout = timeout
        self._schema = database.schema()
        self._fingerprint = database.fingerprint()
        self._known: dict[tuple[str, float, int], Execution] = {}

    def schema(self) -> str:
        """The DDL, read once."""
        return self._schema

    def fingerprint(self) -> str:
        """The digest of the schema, computed once."""
        return self._fingerprint

    def execute(self, sql: str, *, timeout: float = 30.0, max_rows: int = 100_000) -> Execution:
        """What the statement returned when it first ran."""
        limit = min(max_rows, 100_000)
        found = self._once(sql, min(timeout, self._timeout), limit)
        if max_rows > limit and isinstance(found, Failure) and found.kind is FailureKind.TOO_LARGE:
            return self._once(sql, min(timeout, self._timeout), max_rows)
        return found

    def close(self) -> None:
        """Release the database."""
        self._database.close()

    def _once(self, sql: str, timeout: float, max_rows: int) -> Execution:
        key = (sql, timeout, max_rows)
        found = self._known.get(key)
        if found is None:
            found = self._database.execute(sql, timeout=timeout, max_rows=max_rows)
            if isinstance(found, Failure) or len(found.rows) <= KEPT_ROWS:
                self._known[key] = found
        return found


def key_of(question: Question) -> tuple[str, str]:
    """What tells a question from every other of its benchmark."""
    return question.database, question.id
