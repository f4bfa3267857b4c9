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
from sqlcrystal.databases.child import GRACE_SECONDS, START_SECONDS, Child, Gone, Late, Request, decode
from sqlcrystal.databases.description import with_views
from sqlcrystal.databases.engines import Opening
from sqlcrystal.databases.functions import Catalogue, Functions
from sqlcrystal.errors import DatabaseError, DataError
from sqlcrystal.types import Column, Execution, Failure, FailureKind, Row, Table

MAX_CHILDREN = 4
LEAST_SECONDS = 0.1
_FUNCTIONS = """
SELECT function_name, NOT bool_or(coalesce(has_side_effects, false)
  OR function_type IN ('table', 'table_macro', 'pragma')), bool_and(internal) FROM duckdb_functions() GROUP BY 1
"""
_TABLES = """
SELECT 'type', type_name, 'CREATE TYPE ' || type_name || ' AS ENUM ' || labels::VARCHAR || ';', ''
FROM duckdb_types() WHERE NOT internal AND logical_type = 'ENUM'
UNION ALL SELECT 'table', table_name, sql, coalesce(comment, '') FROM duckdb_tables() WHERE NOT internal
UNION ALL SELECT 'view', view_name, sql, coalesce(comment, '') FROM duckdb_views() WHERE NOT internal
"""
_COLUMNS = """
SELECT table_name, column_name, data_type, coalesce(comment, '') FROM duckdb_columns() WHERE NOT internal
ORDER BY table_name, column_index
"""
_REFERENCES = """
SELECT DISTINCT table_name, referenced_table FROM duckdb_constraints()
WHERE constraint_type = 'FOREIGN KEY' ORDER BY ALL
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
        if not path.is_file():
            raise DataError(f"database {self.name}: no such file: {path}")
        self._lock = Lock()
        self._places = BoundedSemaphore(MAX_CHILDREN)
        self._closed = False
        self._idle = [self._ready(self._child())]
        live = self._catalogue()
        self._rules = guard.DatabaseRules(Functions(self.dialect, catalogue=lambda: live, allowed=functions), inspect)

    def execute(self, sql: str, *, timeout: float = 30.0, max_rows: int = 100_000) -> Execution:
        """Run one guarded statement."""
        statement = guard.read(sql, self.dialect, self._rules)
        if isinstance(statement, Failure):
            return statement
        return self._run(statement.text, timeout, max_rows, inspection=statement.inspection, pivot=statement.pivot)

    def schema(self) -> str:
        """The CREATE statements DuckDB keeps, types before tables before views, each in the order of names."""
        found = sorted((_ORDER[str(kind)], str(name), str(sql).strip()) for kind, name, sql in self._rows(_DEFINITIONS))
        return "\n\n".join(sql for _, _, sql in found)

    def tables(self) -> tuple[Table, ...]:
        """Every type, table and view with its comments."""
        columns: dict[str, list[Column]] = {}
        for table, column, declared, comment in self._rows(_COLUMNS):
            columns.setdefault(str(table), []).append(
                Column(name=str(column), type=str(declared), comment=str(comment))
            )
        references: dict[str, list[str]] = {}
        for table, other in self._rows(_REFERENCES):
            references.setdefault(str(table), []).append(str(other))
        found = sorted(
            (
                (str(kind), str(table), str(sql).strip(), str(comment))
                for kind, table, sql, comment in self._rows(_TABLES)
            ),
            key=lambda row: (_ORDER[row[0]], row[1]),
        )
        return with_views(
            Table(
                name=table,
                kind=kind,
                columns=tuple(columns.get(table, ())) if kind != "type" else (),
                definition=sql,
                comment=comment,
                references=tuple(references.get(table, ())),
            )
            for kind, table, sql, comment in found
        )

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
        """Run a statement behind the engine lock alone; waiting for a process is part of its time."""
        start = perf_counter()
        if not self._places.acquire(timeout=timeout):
            return Failure(FailureKind.TIMEOUT, f"{MAX_CHILDREN} statements ran all the time", perf_counter() - start)
        try:
            child = self._take()
            left = max(LEAST_SECONDS, timeout - (perf_counter() - start))
            request = Request(sql, left, max_rows, inspection, pivot)
            try:
                result = decode(child.ask(msgspec.msgpack.encode(request), left + GRACE_SECONDS))
            except Late:
                result = Failure(FailureKind.TIMEOUT, "the statement took too long")
            except Gone:
                result = Failure(FailureKind.TOO_LARGE, "the statement needed more memory than it may have")
            self._give_back(child)
        finally:
            self._places.release()
        return msgspec.structs.replace(result, seconds=perf_counter() - start)

    def _rows(self, sql: str) -> tuple[Row, ...]:
        """Give the rows of a query of our own."""
        result = self._run(sql, 30.0, 1_000_000)
        if isinstance(result, Failure):
            raise DatabaseError(f"database {self.name}: {result.message}")
        return result.rows

    def _catalogue(self) -> Catalogue:
        """Ask this version of DuckDB about its functions; macros of the file are not its own."""
        listed = [(str(name).lower(), bool(pure), bool(own)) for name, pure, own in self._rows(_FUNCTIONS)]
        return Catalogue(
            {name: pure and own for name, pure, own in listed}, frozenset(name for name, _, own in listed if not own)
        )

    def _child(self) -> Child:
        return Child("sqlcrystal.databases.duckdb_worker", str(self.path.resolve()))

    def _ready(self, child: Child) -> Child:
        """Wait until a process has opened the file."""
        if child.ready:
            return child
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
            child = self._idle.pop() if self._idle else None
        return self._ready(child or self._child())

    def _give_back(self, child: Child) -> None:
        """Keep the process for the next; for one that was ended another is started, so that the next need not wait."""
        kept = child if child.alive or self._closed else self._child()
        with self._lock:
            if not self._closed:
                self._idle.append(kept)
                return
        kept.close()


def open_duckdb(opening: Opening) -> DuckdbDatabase:
    """Open a DuckDB file."""
    return DuckdbDatabase(opening.path, name=opening.name, inspect=opening.inspect, functions=opening.functions)
