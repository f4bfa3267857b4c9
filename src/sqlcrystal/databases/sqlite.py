"""SQLite through the standard library, read-only, in two lanes.

A statement first runs in this process, for a quarter of a second, with small values: there nothing can run on within
a single step. What needs more time, memory or larger values, or calls a function that may run on, goes to a child
process that can be ended. What it does NOT guarantee: virtual tables that prepare writes when opened (rtree) are
refused; on Windows and macOS only SQLite's own heap limit bounds the child.
"""

import hashlib
import sqlite3
from pathlib import Path
from threading import Lock
from time import perf_counter
from typing import NamedTuple
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from sqlcrystal.databases.child import Children, Gone, Late
from sqlcrystal.databases.description import sqlite_tables
from sqlcrystal.databases.limits import OVER_THE_CAP
from sqlcrystal.databases.messages import GRACE_SECONDS, OUTSIDE, Request, decode
from sqlcrystal.databases.plain import is_plain
from sqlcrystal.databases.sqlite_connection import FAST, Connection
from sqlcrystal.errors import DatabaseError, DataError
from sqlcrystal.types import Execution, Failure, FailureKind, Row, Table

FAST_SECONDS = 0.25
LEAST_SECONDS = 0.1
MAX_IDLE = 4
MAX_EXPANSION = 500
MAX_FAST_CHARACTERS = 4000
"""Longer statements may take long to plan (400 windows: seconds, 1,900: minutes), which no clock interrupts."""
_DETOUR = frozenset({FailureKind.TIMEOUT, FailureKind.TOO_LARGE, FailureKind.REFUSED})


class SqliteDatabase:
    """One SQLite file; threads check out a connection each, and slow statements a child process."""

    dialect = "sqlite"

    def __init__(self, path: Path, *, name: str | None = None, inspect: bool = True, terse: bool = False) -> None:
        """Open the file read-only, and say in one line when it is missing or no database."""
        self.path = path
        self.name = name or path.stem
        self._inspect = inspect
        self._terse = terse
        if not path.is_file():
            raise DataError(f"database {self.name}: no such file: {path}")
        self._lock = Lock()
        self._idle: list[Connection] = []
        self._uri = f"file:{quote(str(path.resolve()))}?mode=ro"
        self._closed = False
        self._known: _Definitions | None = None
        self._give_back(self._first_connection())
        self._always_slow = self._has_virtual_tables()

    def execute(self, sql: str, *, timeout: float = 30.0, max_rows: int = 100_000) -> Execution:
        """Run one guarded statement; a plain one needs the guard only to say what is wrong with its syntax."""
        if is_plain(sql):
            result = self._run(sql.rstrip("; \t\r\n"), timeout, max_rows)
            if self._terse or not (isinstance(result, Failure) and result.kind is FailureKind.SYNTAX):
                return result
        from sqlcrystal.databases import guard  # which takes longer to load than a file of predictions to score

        statement = guard.read(sql, "sqlite", inspect=self._inspect)
        if isinstance(statement, Failure):
            return statement
        return self._run(statement.text, timeout, max_rows, expansion=statement.expansion)

    def schema(self) -> str:
        """The stored CREATE TABLE and CREATE VIEW texts, in the order they were made."""
        return "\n\n".join(f"{statement};" for _, statement in self._definitions().told)

    def tables(self) -> tuple[Table, ...]:
        """Every table and view, in the order they were made; SQLite keeps comments in the definition."""
        return sqlite_tables(self._uri, [definition for _, definition in self._definitions().told])

    def fingerprint(self) -> str:
        """A digest of the stored definitions of tables and views, blind to layout and to data."""
        return self._definitions().digest

    def close(self) -> None:
        """Close every idle connection; one in use closes when its statement ends."""
        with self._lock:
            idle, self._idle, self._closed = self._idle, [], True
        for connection in idle:
            connection.close()

    def _run(self, sql: str, timeout: float, max_rows: int, *, expansion: int = 1) -> Execution:
        """Run a statement behind the engine lock alone."""
        start = perf_counter()
        if self._closed:
            raise DatabaseError(f"database {self.name} is closed")
        if not self._always_slow and expansion <= MAX_EXPANSION and len(sql) <= MAX_FAST_CHARACTERS:
            connection = self._take()
            try:
                result = connection.run(sql, min(timeout, FAST_SECONDS), max_rows)
            finally:
                self._give_back(connection)
            if not _may_do_better(result, timeout):
                return result
        result = _run_slowly(Request(sql, timeout, max_rows, location=self._uri), start)
        if isinstance(result, Failure) and result.message.startswith(OUTSIDE):
            raise DatabaseError(f"database {self.name}: {result.message.removeprefix(OUTSIDE)}")
        return replace(result, seconds=perf_counter() - start)

    def _has_virtual_tables(self) -> bool:
        """The step of a virtual table (full-text search) takes as long as it likes."""
        query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL TABLE%' LIMIT 1"
        connection = self._take()
        try:
            result = connection.run(query, 30.0, 1)
        finally:
            self._give_back(connection)
        return isinstance(result, Failure) or bool(result.rows)

    def _definitions(self) -> "_Definitions":
        query = (
            "SELECT type, sql FROM sqlite_master WHERE type IN ('table', 'view') AND sql IS NOT NULL "
            "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid"
        )
        result = self._run(query, 30.0, 1_000_000)
        if isinstance(result, Failure):
            raise DatabaseError(f"database {self.name}: {result.message}")
        known = self._known
        if known is None or known.stored != result.rows:
            known = self._known = _Definitions.of(result.rows)
        return known

    def _first_connection(self) -> Connection:
        """A connection that has read the schema once; a read-only folder needs the file declared immutable."""
        try:
            return Connection(self._uri, FAST)
        except (sqlite3.Error, UnicodeDecodeError):
            try:
                immutable = f"{self._uri}&immutable=1"
                connection = Connection(immutable, FAST)
            except (sqlite3.Error, UnicodeDecodeError) as error:
                raise DataError(f"database {self.name}: {self.path} cannot be read as SQLite: {error}") from None
            self._uri = immutable
            return connection

    def _take(self) -> Connection:
        with self._lock:
            if self._closed:
                raise DatabaseError(f"database {self.name} is closed")
            if self._idle:
                return self._idle.pop()
        try:
            return Connection(self._uri, FAST)
        except sqlite3.Error as error:
            raise DatabaseError(f"database {self.name}: {error}") from None

    def _give_back(self, connection: Connection) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(connection)
                return
        connection.close()


class _Definitions(NamedTuple):
    """The definitions of a schema as SQLite stores them, told in order, and as a digest; each question asks for it."""

    stored: tuple[Row, ...]
    told: tuple[tuple[str, str], ...]
    digest: str

    @classmethod
    def of(cls, stored: tuple[Row, ...]) -> "_Definitions":
        """Read them."""
        told = tuple((str(kind), _tidy(str(statement))) for kind, statement in stored)
        digest = hashlib.sha256()
        for kind, statement in sorted(told):
            digest.update(f"{kind}\0{_canonical(statement)}\0".encode())
        return cls(stored, told, digest.hexdigest())


_slow_lane = Children("sqlcrystal.databases.sqlite_worker", max_idle=MAX_IDLE)


def _run_slowly(request: Request, start: float) -> Execution:
    """Run a statement in a child for what is left of its time; the child is ended when it is late."""
    child = _slow_lane.take()
    left = max(LEAST_SECONDS, request.timeout - (perf_counter() - start))
    try:
        return decode(child.ask(msgspec.msgpack.encode(replace(request, timeout=left)), left + GRACE_SECONDS))
    except Late:
        return Failure(FailureKind.TIMEOUT, "interrupted")
    except Gone:
        return Failure(FailureKind.TOO_LARGE, "the statement needed more memory than it may have")
    finally:
        _slow_lane.give_back(child)


def _may_do_better(result: Execution, timeout: float) -> bool:
    """Whether the slow lane, which has more time, larger values and more functions, may have another answer."""
    if not isinstance(result, Failure) or result.kind not in _DETOUR or result.message.startswith(OVER_THE_CAP):
        return False
    return result.kind is not FailureKind.TIMEOUT or timeout > FAST_SECONDS


def _tidy(statement: str) -> str:
    """The stored text without trailing blanks and blank lines."""
    lines = [line.rstrip() for line in statement.strip().splitlines()]
    return "\n".join(line for line in lines if line)


def _canonical(statement: str) -> str:
    """The statement with its layout folded, so that reformatting does not count as a change."""
    return " ".join(statement.split())
