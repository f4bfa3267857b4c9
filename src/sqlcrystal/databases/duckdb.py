"""DuckDB, read-only, in child processes: the operating system bounds their memory, and a kill ends what will not stop.

What it does NOT guarantee: another process that writes to the file keeps it locked, and it cannot be opened then; where
the system has no resource limits for data (macOS), only DuckDB's own memory limit holds.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from threading import BoundedSemaphore, Lock
from time import perf_counter

import msgspec

from sqlcrystal.databases import guard
from sqlcrystal.databases.child import Child, Gone, Late
from sqlcrystal.databases.description import duckdb_tables
from sqlcrystal.databases.functions import Functions, Purity
from sqlcrystal.databases.messages import GRACE_SECONDS, Request, decode
from sqlcrystal.errors import DatabaseError, DataError
from sqlcrystal.types import Execution, Failure, FailureKind, Table

MAX_CHILDREN = 4
START_SECONDS = 60.0
_FUNCTIONS = """
SELECT function_name, NOT bool_or(coalesce(has_side_effects, false) OR NOT internal
  OR function_type IN ('table', 'table_macro', 'pragma')) FROM duckdb_functions() GROUP BY 1
"""
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

    def __init__(
        self, path: Path, *, name: str | None = None, inspect: bool = True, functions: Sequence[str] = ()
    ) -> None:
        """Start a first child, so that a missing or broken file is known now."""
        self.path = path
        self.name = name or path.stem
        self._inspect = inspect
        if not path.is_file():
            raise DataError(f"database {self.name}: no such file: {path}")
        self._functions = Functions(self.dialect, catalogue=self._catalogue, allowed=functions)
        self._lock = Lock()
        self._places = BoundedSemaphore(MAX_CHILDREN)
        self._closed = False
        self._idle = [self._start()]

    def execute(self, sql: str, *, timeout: float = 30.0, max_rows: int = 100_000) -> Execution:
        """Run one guarded statement."""
        statement = guard.read(sql, self.dialect, self._functions, inspect=self._inspect)
        if isinstance(statement, Failure):
            return statement
        return self._run(statement.text, timeout, max_rows, inspection=statement.inspection, pivot=statement.pivot)

    def schema(self) -> str:
        """The CREATE statements DuckDB keeps, types before tables before views, each in the order of names."""
        result = self._run(_DEFINITIONS, 30.0, 100_000)
        if isinstance(result, Failure):
            raise DatabaseError(f"database {self.name}: {result.message}")
        found = sorted((_ORDER[str(kind)], str(name), str(sql).strip()) for kind, name, sql in result.rows)
        return "\n\n".join(sql for _, _, sql in found)

    def tables(self) -> tuple[Table, ...]:
        """Every type, table and view with its comments."""
        return duckdb_tables(lambda sql: self._run(sql, 30.0, 1_000_000), self.name)

    def fingerprint(self) -> str:
        """A digest of the definitions."""
        return hashlib.sha256(self.schema().encode()).hexdigest()

    def close(self) -> None:
        """End every idle child; one in use ends with its statement."""
        with self._lock:
            idle, self._idle, self._closed = self._idle, [], True
        for child in idle:
            child.close()

    def _run(
        self, sql: str, timeout: float, max_rows: int, *, inspection: bool = False, pivot: bool = False
    ) -> Execution:
        """Run a statement behind the engine lock alone."""
        request = msgspec.msgpack.encode(Request(sql, timeout, max_rows, inspection, pivot))
        with self._places:
            child = self._take()
            start = perf_counter()
            try:
                result = decode(child.ask(request, timeout + GRACE_SECONDS))
            except Late:
                result = Failure(FailureKind.TIMEOUT, "the statement took too long")
            except Gone:
                result = Failure(FailureKind.TOO_LARGE, "the statement needed more memory than it may have")
            else:
                self._give_back(child)
            return msgspec.structs.replace(result, seconds=perf_counter() - start)

    def _catalogue(self) -> Purity:
        """What this version of DuckDB says of its functions; macros of the file are not its own."""
        result = self._run(_FUNCTIONS, 30.0, 1_000_000)
        if isinstance(result, Failure):
            raise DatabaseError(f"database {self.name}: {result.message}")
        return {str(name).lower(): bool(pure) for name, pure in result.rows}

    def _start(self) -> Child:
        child = Child("sqlcrystal.databases.duckdb_worker", str(self.path.resolve()))
        try:
            started = decode(child.answer(START_SECONDS))
        except (Late, Gone):
            raise DatabaseError(f"database {self.name}: the process for DuckDB does not start") from None
        if isinstance(started, Failure):
            child.close()
            raise DataError(f"database {self.name}: {self.path} cannot be read as DuckDB: {started.message}")
        return child

    def _take(self) -> Child:
        with self._lock:
            if self._closed:
                raise DatabaseError(f"database {self.name} is closed")
            if self._idle:
                return self._idle.pop()
        return self._start()

    def _give_back(self, child: Child) -> None:
        with self._lock:
            if child.alive and not self._closed:
                self._idle.append(child)
                return
        child.close()
