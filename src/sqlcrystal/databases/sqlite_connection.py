"""One locked-down SQLite connection: read-only, watched by an authorizer, with limits for one of two lanes.

Knows nothing of the guard, so that the worker process, which runs this module, starts fast.
"""

import contextlib
import os
import re
import sqlite3
import sys
from collections import OrderedDict
from threading import Lock, Thread
from time import perf_counter, sleep

import msgspec
from msgspec import Struct

from sqlcrystal.databases.child import GRACE_SECONDS, OUTSIDE, Request, bound_memory, light_fuse, read, write
from sqlcrystal.databases.functions import built_in
from sqlcrystal.databases.results import MAX_MESSAGE, TooLarge, collect
from sqlcrystal.errors import DatabaseError
from sqlcrystal.types import Execution, Failure, FailureKind, Rows

MAX_STATEMENT = 800_000
MAX_CONNECTIONS = 4
PROCESS_LIMIT = 512 * 2**20
TICK = 0.05


class Lane(Struct, frozen=True):
    """Limits on one statement: the fast lane is for most, and nothing in it can run on for long."""

    max_value: int
    max_pattern: int
    heap: int = 0
    """SQLite's memory in this process; none where others share it."""
    detours: frozenset[str] = frozenset()
    """Functions that may run on within one step, whatever the size of a value."""


FAST = Lane(64 * 2**10, 500, detours=frozenset({"printf", "format", "trim", "ltrim", "rtrim", "unhex"}))
SLOW = Lane(16 * 2**20, 10_000, heap=128 * 2**20)
_LIMITS = {
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: MAX_STATEMENT,
    sqlite3.SQLITE_LIMIT_COLUMN: 2000,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 1000,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 500,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 5_000_000,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 100,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: 100,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
_READING = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE})
_SCHEMA_PRAGMAS = frozenset(
    [
        "table_info",
        "table_xinfo",
        "table_list",
        "index_list",
        "index_info",
        "index_xinfo",
        "foreign_key_list",
        "data_version",
    ]
)
_TABLE_FUNCTIONS = ("json_each", "json_tree", *(f"pragma_{name}" for name in _SCHEMA_PRAGMAS if name != "data_version"))
_REFUSED = re.compile(r"not authorized|prohibited|readonly|only execute one statement")
_MISSING = re.compile(r"no such (table|column|function|collation|module|index)|wrong number of arguments")
_SYNTAX = re.compile(r"syntax error|incomplete input|unrecognized token|parser stack overflow")
_TOO_LARGE = re.compile(r"too big|too large|out of memory|too many|database or disk is full|too complex")
_BROKEN = re.compile(
    r"not a database|disk image is malformed|malformed database|unable to open|disk I/O|locking protocol"
)
_BATCH_BYTES = 16 * 2**20


class Connection:
    """A connection of one lane, with its clock."""

    def __init__(self, uri: str, lane: Lane) -> None:
        self._lane = lane
        self._sqlite = sqlite3.connect(uri, uri=True, check_same_thread=False, isolation_level=None)
        try:
            self._lock_down()
        except sqlite3.Error:
            self._sqlite.close()
            raise

    def _lock_down(self) -> None:
        connection, lane = self._sqlite, self._lane
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        self._meet_virtual_tables()
        connection.execute("PRAGMA query_only = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
        if lane.heap:
            connection.execute(f"PRAGMA hard_heap_limit = {lane.heap}").close()
            connection.execute("PRAGMA temp_store = MEMORY")  # else a sort might fill the disk
        for limit, value in _LIMITS.items():
            connection.setlimit(limit, value)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, lane.max_value)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, lane.max_pattern)
        connection.set_authorizer(self._authorize)

    def _meet_virtual_tables(self) -> None:
        """Connect the virtual tables now: that takes a CREATE TABLE, which the authorizer would refuse later."""
        self._sqlite.text_factory = bytes  # their names need not be UTF-8
        made = self._sqlite.execute("SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL TABLE%'").fetchall()
        self._sqlite.text_factory = str
        names = [name.decode(errors="replace") for (name,) in made]
        for name in [*_TABLE_FUNCTIONS, *names]:
            quoted = name.replace('"', '""')
            with contextlib.suppress(sqlite3.Error):  # a module that is not here stays unknown
                self._sqlite.execute(f'SELECT 1 FROM "{quoted}" LIMIT 0').close()

    def _authorize(self, action: int, first: str | None, second: str | None, *_: object) -> int:
        """Reading is allowed, calling a harmless function is, describing the schema is, and nothing else."""
        if action in _READING:
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_FUNCTION:
            name = (second or "").lower()
            if name not in self._lane.detours and not built_in("sqlite").is_banned(name):
                return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_PRAGMA and (first or "").lower() in _SCHEMA_PRAGMAS:
            return sqlite3.SQLITE_OK
        return sqlite3.SQLITE_DENY

    def run(self, sql: str, timeout: float, max_rows: int) -> Execution:
        """Execute and fetch within the clock, the row cap and the byte cap."""
        start = perf_counter()
        _watchdog.watch(self._sqlite, start + timeout)
        try:
            return self._fetch(sql, max_rows, start)
        except Exception as error:
            message = str(error)
            if "Could not decode to UTF-8" in message:
                return self._run_decoding(sql, max_rows, start)
            if message == "interrupted" and perf_counter() < start + timeout:
                return self.run(sql, timeout, max_rows)  # the interrupt was meant for the statement before
            return _failure(error, perf_counter() - start)
        finally:
            _watchdog.release(self._sqlite)

    def _run_decoding(self, sql: str, max_rows: int, start: float) -> Execution:
        """Run again with text decoded leniently; slower, so only for databases that hold text that is not UTF-8."""
        self._sqlite.text_factory = _decode
        try:
            return self._fetch(sql, max_rows, start)
        except Exception as error:
            return _failure(error, perf_counter() - start)
        finally:
            self._sqlite.text_factory = str

    def _fetch(self, sql: str, max_rows: int, start: float) -> Execution:
        cursor = self._sqlite.execute(sql)
        try:
            if cursor.description is None:
                return Failure(FailureKind.REFUSED, "the statement is not a query", perf_counter() - start)
            columns = tuple([column[0] for column in cursor.description])
            batch = max(1, min(64, _BATCH_BYTES // (len(columns) * self._lane.max_value)))
            return Rows(columns, collect(cursor, max_rows, batch=batch), perf_counter() - start)
        finally:
            cursor.close()

    def close(self) -> None:
        """Close the connection."""
        self._sqlite.close()


def _decode(raw: bytes) -> str:
    return raw.decode(errors="replace")


def _failure(error: Exception, seconds: float) -> Failure:
    message = str(error)[:MAX_MESSAGE] or type(error).__name__
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


class _Watchdog:
    """One thread that interrupts SQLite statements past their deadline.

    A progress handler would do the same, but it takes the interpreter's lock every few thousand steps, which slows
    every long query while other threads work.
    """

    def __init__(self) -> None:
        self._deadlines: dict[sqlite3.Connection, float] = {}
        self._starting = Lock()
        self._watcher: Thread | None = None
        if hasattr(os, "register_at_fork"):  # Windows has no fork
            os.register_at_fork(after_in_child=self._forget)

    def watch(self, connection: sqlite3.Connection, deadline: float) -> None:
        """Interrupt the connection when the deadline (perf_counter) passes, at most a tick later."""
        self._deadlines[connection] = deadline
        if self._watcher is None:
            self._start()

    def release(self, connection: sqlite3.Connection) -> None:
        """Forget a statement that has ended; an interrupt may still be on its way."""
        self._deadlines.pop(connection, None)

    def _start(self) -> None:
        with self._starting:
            if self._watcher is None:
                self._watcher = Thread(target=self._loop, name="sqlcrystal-sqlite-watchdog", daemon=True)
                self._watcher.start()

    def _loop(self) -> None:
        while True:
            sleep(TICK)
            now = perf_counter()
            for connection, deadline in list(self._deadlines.items()):
                if now > deadline:
                    try:
                        connection.interrupt()
                    except sqlite3.ProgrammingError:
                        self._deadlines.pop(connection, None)  # closed meanwhile

    def _forget(self) -> None:
        """Start anew in a forked process, which has no watcher thread and no statement running."""
        self._starting = Lock()
        self._watcher = None
        self._deadlines.clear()


_watchdog = _Watchdog()


class _Connections:
    """The databases asked about last."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, Connection] = OrderedDict()

    def to(self, location: str) -> Connection:
        """The connection to a database, opened when it is not at hand."""
        if location not in self._open:
            self._open[location] = Connection(location, SLOW)
            if len(self._open) > MAX_CONNECTIONS:
                self._open.popitem(last=False)[1].close()
        self._open.move_to_end(location)
        return self._open[location]


def _answer(connections: _Connections, request: Request) -> Execution:
    """Run one statement; the system ends this process when that takes too long, even if nobody waits any more."""
    light_fuse(request.timeout + 4 * GRACE_SECONDS)
    try:
        return connections.to(request.location).run(request.sql, request.timeout, request.max_rows)
    except Exception as error:
        return Failure(FailureKind.ENGINE, f"{OUTSIDE}{error}")
    finally:
        light_fuse(0)


def _work() -> None:
    """Serve until the parent closes the pipe."""
    bound_memory(PROCESS_LIMIT)
    connections = _Connections()
    replies, requests = sys.stdout.buffer, sys.stdin.buffer
    write(replies, b"ready")
    while message := read(requests):
        result = _answer(connections, msgspec.msgpack.decode(message, type=Request))
        try:
            reply = msgspec.msgpack.encode(result)
        except Exception as error:
            reply = msgspec.msgpack.encode(Failure(FailureKind.TOO_LARGE, f"the result cannot travel: {error}"))
        write(replies, reply)


if __name__ == "__main__":
    _work()
