"""SQLite through the standard library, read-only; the second lock is the file mode, the authorizer and the limits.

What it does NOT guarantee: a single long VM instruction (a huge sort step) is not interrupted until it ends; the heap
limit is one for the whole process, so it also bounds every other SQLite connection in it; virtual tables that prepare
writes when opened (rtree) are refused.
"""

import hashlib
import re
import sqlite3
from pathlib import Path
from threading import Lock
from time import perf_counter
from urllib.parse import quote

from msgspec.structs import replace

from sqlcrystal.databases import guard, vocabulary, watchdog
from sqlcrystal.databases.limits import TooLarge, collect
from sqlcrystal.databases.parsing import MAX_CHARACTERS
from sqlcrystal.errors import DatabaseError, DataError
from sqlcrystal.types import Execution, Failure, FailureKind, Rows

MAX_VALUE = 16 * 2**20
FUSE = 0.25
HEAP_LIMIT = 128 * 2**20

_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: MAX_VALUE,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: MAX_CHARACTERS * 4,
    sqlite3.SQLITE_LIMIT_COLUMN: 2000,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 1000,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 500,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 5_000_000,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 100,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 10_000,
    sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: 100,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
_READING = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE})
_DENIED_FUNCTIONS = vocabulary.FUNCTIONS["sqlite"].names
_FAILURES = (sqlite3.Error, sqlite3.Warning, TooLarge, MemoryError, ValueError)
_REFUSED = re.compile(r"not authorized|prohibited|readonly|only execute one statement")
_MISSING = re.compile(r"no such (table|column|function|collation|module|index)|wrong number of arguments")
_SYNTAX = re.compile(r"syntax error|incomplete input|unrecognized token|parser stack overflow")
_TOO_LARGE = re.compile(r"too big|too large|out of memory|too many|database or disk is full")
_BROKEN = re.compile(r"not a database|malformed|unable to open|disk I/O|locking protocol")


class SqliteDatabase:
    """One SQLite file; threads check out a connection each."""

    dialect = "sqlite"

    def __init__(self, path: Path, *, name: str | None = None) -> None:
        """Open the file read-only, and say in one line when it is missing or no database."""
        self.path = path
        self.name = name or path.stem
        if not path.is_file():
            raise DataError(f"database {self.name}: no such file: {path}")
        self._lock = Lock()
        self._idle: list[_Connection] = []
        self._uri = f"file:{quote(str(path.resolve()))}?mode=ro"
        self._closed = False
        self._give_back(self._first_connection())

    def execute(self, sql: str, *, timeout: float = 30.0, max_rows: int = 100_000) -> Execution:
        """Run one guarded statement."""
        return guard.check(sql, "sqlite") or self._run(sql, timeout, max_rows)

    def schema(self) -> str:
        """The stored CREATE TABLE and CREATE VIEW texts, in the order they were made."""
        return "\n\n".join(f"{statement};" for _, statement in self._definitions())

    def fingerprint(self) -> str:
        """A digest of the stored definitions of tables and views, blind to layout and to data."""
        digest = hashlib.sha256()
        for kind, statement in sorted(self._definitions()):
            digest.update(f"{kind}\0{_canonical(statement)}\0".encode())
        return digest.hexdigest()

    def close(self) -> None:
        """Close every idle connection; one in use closes when its statement ends."""
        with self._lock:
            idle, self._idle, self._closed = self._idle, [], True
        for connection in idle:
            connection.close()

    def _run(self, sql: str, timeout: float, max_rows: int) -> Execution:
        """Run a statement behind the engine lock alone."""
        connection = self._take()
        try:
            return connection.run(sql, timeout, max_rows)
        finally:
            self._give_back(connection)

    def _definitions(self) -> list[tuple[str, str]]:
        query = (
            "SELECT type, sql FROM sqlite_master WHERE type IN ('table', 'view') AND sql IS NOT NULL "
            "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid"
        )
        result = self._run(query, 30.0, 1_000_000)
        if isinstance(result, Failure):
            raise DatabaseError(f"database {self.name}: {result.message}")
        return [(str(kind), _tidy(str(statement))) for kind, statement in result.rows]

    def _first_connection(self) -> "_Connection":
        """A connection that has read the schema once; a read-only folder needs the file declared immutable."""
        try:
            return _Connection(self._uri)
        except sqlite3.Error:
            try:
                immutable = f"{self._uri}&immutable=1"
                connection = _Connection(immutable)
            except sqlite3.Error as error:
                raise DataError(f"database {self.name}: {self.path} cannot be read as SQLite: {error}") from None
            self._uri = immutable
            return connection

    def _take(self) -> "_Connection":
        with self._lock:
            if self._closed:
                raise DatabaseError(f"database {self.name} is closed")
            if self._idle:
                return self._idle.pop()
        try:
            return _Connection(self._uri)
        except sqlite3.Error as error:
            raise DatabaseError(f"database {self.name}: {error}") from None

    def _give_back(self, connection: "_Connection") -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(connection)
                return
        connection.close()


class _Connection:
    """One locked-down connection with its clock."""

    def __init__(self, uri: str) -> None:
        self._sqlite = sqlite3.connect(uri, uri=True, check_same_thread=False, isolation_level=None)
        try:
            self._lock_down()
        except sqlite3.Error:
            self._sqlite.close()
            raise

    def _lock_down(self) -> None:
        connection = self._sqlite
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        connection.execute(f"PRAGMA hard_heap_limit = {HEAP_LIMIT}").close()
        connection.execute("PRAGMA query_only = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
        for limit, value in _LIMITS.items():
            connection.setlimit(limit, value)
        connection.set_authorizer(_authorize)

    def run(self, sql: str, timeout: float, max_rows: int) -> Execution:
        """Execute and fetch within the clock, the row cap and the byte cap.

        Temporary tables in memory are bounded by the heap limit but slower; so a statement first gets a moment with
        SQLite's own choice, in which it cannot fill a disk, and starts again in memory when that was not enough.
        """
        start = perf_counter()
        if timeout <= FUSE:
            return self._attempt(sql, timeout, max_rows)
        result = self._attempt(sql, FUSE, max_rows)
        if isinstance(result, Failure) and result.kind is FailureKind.TIMEOUT:
            self._keep_temporaries("MEMORY")
            result = self._attempt(sql, timeout - FUSE, max_rows)
            self._keep_temporaries("DEFAULT")
            return replace(result, seconds=perf_counter() - start)
        return result

    def _keep_temporaries(self, where: str) -> None:
        self._sqlite.set_authorizer(None)
        self._sqlite.execute(f"PRAGMA temp_store = {where}")
        self._sqlite.set_authorizer(_authorize)

    def _attempt(self, sql: str, timeout: float, max_rows: int) -> Execution:
        start = perf_counter()
        watchdog.watch(self._sqlite, start + timeout)
        try:
            return self._fetch(sql, max_rows, start)
        except _FAILURES as error:
            message = str(error)
            if "Could not decode to UTF-8" in message:
                return self._run_decoding(sql, max_rows, start)
            if message == "interrupted" and perf_counter() < start + timeout:
                return self._attempt(sql, timeout, max_rows)  # the interrupt was meant for the statement before
            return _failure(error, perf_counter() - start)
        finally:
            watchdog.release(self._sqlite)

    def _run_decoding(self, sql: str, max_rows: int, start: float) -> Execution:
        """Run again with text decoded leniently; slower, so only for databases that hold text that is not UTF-8."""
        self._sqlite.text_factory = _decode
        try:
            return self._fetch(sql, max_rows, start)
        except _FAILURES as error:
            return _failure(error, perf_counter() - start)
        finally:
            self._sqlite.text_factory = str

    def _fetch(self, sql: str, max_rows: int, start: float) -> Execution:
        cursor = self._sqlite.execute(sql)
        try:
            if cursor.description is None:
                return Failure(FailureKind.REFUSED, "the statement is not a query", perf_counter() - start)
            columns = tuple([column[0] for column in cursor.description])
            return Rows(columns, collect(cursor, max_rows), perf_counter() - start)
        finally:
            cursor.close()

    def close(self) -> None:
        """Close the connection."""
        self._sqlite.close()


def _authorize(action: int, _: str | None, second: str | None, *__: object) -> int:
    """Reading is allowed, calling a harmless function is, and nothing else."""
    if action in _READING:
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() not in _DENIED_FUNCTIONS:
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


def _decode(raw: bytes) -> str:
    return raw.decode(errors="replace")


def _failure(error: Exception, seconds: float) -> Failure:
    message = str(error) or type(error).__name__
    if message == "interrupted":
        kind = FailureKind.TIMEOUT
    elif _REFUSED.search(message):
        kind = FailureKind.REFUSED
    elif isinstance(error, MemoryError | TooLarge) or _TOO_LARGE.search(message):
        kind = FailureKind.TOO_LARGE
    elif _MISSING.search(message):
        kind = FailureKind.MISSING
    elif _SYNTAX.search(message):
        kind = FailureKind.SYNTAX
    elif _BROKEN.search(message):
        raise DatabaseError(message) from None
    else:
        kind = FailureKind.ENGINE
    return Failure(kind, message, seconds)


def _tidy(statement: str) -> str:
    """The stored text without trailing blanks and blank lines."""
    lines = [line.rstrip() for line in statement.strip().splitlines()]
    return "\n".join(line for line in lines if line)


def _canonical(statement: str) -> str:
    """The statement with its layout folded, so that reformatting does not count as a change."""
    return " ".join(statement.split())
