"""DuckDB, read-only, in child processes: the operating system bounds their memory, and a kill ends what will not stop.

What it does NOT guarantee: another process that writes to the file keeps it locked, and it cannot be opened then; where
the system has no resource limits for data (macOS), only DuckDB's own memory limit holds.
"""

import hashlib
import select
import subprocess
import sys
from pathlib import Path
from threading import BoundedSemaphore, Lock
from time import perf_counter

import msgspec

from sqlcrystal.databases import guard
from sqlcrystal.databases.messages import Request, read, write
from sqlcrystal.errors import DatabaseError, DataError
from sqlcrystal.types import Execution, Failure, FailureKind, Rows

MAX_CHILDREN = 4
GRACE_SECONDS = 1.0
START_SECONDS = 60.0
_EXECUTION: msgspec.msgpack.Decoder[Rows | Failure] = msgspec.msgpack.Decoder(Rows | Failure)
_DEFINITIONS = """
SELECT 'table', table_name, sql FROM duckdb_tables() WHERE NOT internal
UNION ALL SELECT 'type', type_name, 'CREATE TYPE ' || type_name || ' AS ENUM ' || labels::VARCHAR || ';'
FROM duckdb_types() WHERE NOT internal AND logical_type = 'ENUM'
UNION ALL SELECT 'view', view_name, sql FROM duckdb_views() WHERE NOT internal
"""
_ORDER = {"type": 0, "table": 1, "view": 2}


class DuckdbDatabase:
    """One DuckDB file; threads check out a child process each."""

    dialect = "duckdb"

    def __init__(self, path: Path, *, name: str | None = None) -> None:
        """Start a first child, so that a missing or broken file is known now."""
        self.path = path
        self.name = name or path.stem
        if not path.is_file():
            raise DataError(f"database {self.name}: no such file: {path}")
        self._lock = Lock()
        self._places = BoundedSemaphore(MAX_CHILDREN)
        self._closed = False
        self._idle = [_Child(path, self.name)]

    def execute(self, sql: str, *, timeout: float = 30.0, max_rows: int = 100_000) -> Execution:
        """Run one guarded statement."""
        return guard.check(sql, self.dialect) or self._run(sql, timeout, max_rows)

    def schema(self) -> str:
        """The CREATE statements DuckDB keeps, types before tables before views, each in the order of names."""
        result = self._run(_DEFINITIONS, 30.0, 100_000)
        if isinstance(result, Failure):
            raise DatabaseError(f"database {self.name}: {result.message}")
        found = sorted((_ORDER[str(kind)], str(name), str(sql).strip()) for kind, name, sql in result.rows)
        return "\n\n".join(sql for _, _, sql in found)

    def fingerprint(self) -> str:
        """A digest of the definitions."""
        return hashlib.sha256(self.schema().encode()).hexdigest()

    def close(self) -> None:
        """End every idle child; one in use ends with its statement."""
        with self._lock:
            idle, self._idle, self._closed = self._idle, [], True
        for child in idle:
            child.close()

    def _run(self, sql: str, timeout: float, max_rows: int) -> Execution:
        """Run a statement behind the engine lock alone."""
        with self._places:
            child = self._take()
            start = perf_counter()
            try:
                result = child.ask(sql, timeout, max_rows)
            except BaseException:  # an interrupt too: a child in mid-answer must not be asked again, nor outlive us
                child.close()
                raise
            self._give_back(child)
            return msgspec.structs.replace(result, seconds=perf_counter() - start)

    def _take(self) -> "_Child":
        with self._lock:
            if self._closed:
                raise DatabaseError(f"database {self.name} is closed")
            if self._idle:
                return self._idle.pop()
        return _Child(self.path, self.name)

    def _give_back(self, child: "_Child") -> None:
        with self._lock:
            if child.alive and not self._closed:
                self._idle.append(child)
                return
        child.close()


class _Child:
    """One worker process and the pipe to it."""

    def __init__(self, path: Path, name: str) -> None:
        self.alive = True
        command = [sys.executable, "-m", "sqlcrystal.databases.duckdb_worker", str(path.resolve())]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        started = self._answer(START_SECONDS)
        if isinstance(started, Failure):
            self.close()
            raise DataError(f"database {name}: {path} cannot be read as DuckDB: {started.message}")

    def ask(self, sql: str, timeout: float, max_rows: int) -> Execution:
        """Send one statement and wait for its result, with some grace after the timeout, then end the process."""
        assert self._process.stdin
        try:
            write(self._process.stdin, msgspec.msgpack.encode(Request(sql, timeout, max_rows)))
        except BrokenPipeError:
            self.alive = False
            return Failure(FailureKind.ENGINE, "the database process has ended")
        return self._answer(timeout + GRACE_SECONDS)

    def _answer(self, seconds: float) -> Execution:
        output = self._process.stdout
        assert output
        if not select.select([output], [], [], seconds)[0]:
            self.alive = False
            return Failure(FailureKind.TIMEOUT, "the statement took too long")
        message = read(output)
        if not message:
            self.alive = False
            return Failure(FailureKind.TOO_LARGE, "the statement needed more memory than it may have")
        return _EXECUTION.decode(message)

    def close(self) -> None:
        """End the process at once: it holds nothing that could be lost."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                pipe.close()
