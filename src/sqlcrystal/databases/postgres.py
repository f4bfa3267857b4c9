"""PostgreSQL's engine lock: read-only transactions, time limits, and rows weighed on the server before they travel."""

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import psycopg
import sqlalchemy as sa

from sqlcrystal.databases.functions import Purity
from sqlcrystal.databases.guard import Statement
from sqlcrystal.databases.limits import MAX_BYTES
from sqlcrystal.databases.postgres_values import read_leniently
from sqlcrystal.databases.servers import CONNECT_SECONDS, Stream
from sqlcrystal.errors import DatabaseError
from sqlcrystal.types import FailureKind

ROWS_PER_CHUNK = 64
NAMING_SECONDS = 0.1
# How the session must read and write: strings as the guard does, values as the tests know them.
_PINNED = {
    "standard_conforming_strings": "on",
    "backslash_quote": "safe_encoding",
    "client_encoding": "UTF8",
    "datestyle": "ISO, MDY",
    "intervalstyle": "postgres",
    "bytea_output": "hex",
    "xmlbinary": "base64",
}
_FUNCTIONS = """
SELECT proname, NOT bool_or(provolatile = 'v' OR prokind = 'p' OR prorettype IN (2279, 3838))
FROM pg_proc WHERE pronamespace <> 'information_schema'::regnamespace GROUP BY 1
"""
_READER = (
    "CREATE ROLE reader LOGIN PASSWORD '…'; GRANT pg_read_all_data TO reader; "
    "(or GRANT SELECT on the tables it shall read)"
)
_POWERS = """
SELECT rolsuper, coalesce((SELECT string_agg(role.rolname, ', ') FROM pg_roles AS role WHERE role.rolname IN
  ('pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program')
  AND pg_has_role(current_user, role.oid, 'MEMBER')), ''), current_user
FROM pg_roles WHERE rolname = current_user
"""


class PostgresLock:
    """READ ONLY transaction, timeouts, the rights of pg_read_all_data, and a running byte count inside the query."""

    dialect = "postgres"
    driver = "postgresql+psycopg"
    _TOO_LARGE = "sqlcrystal: the result is too large"
    # A subquery can hold nothing but a query; the window sums up the rows on the server, before they travel, because
    # the client library must take in a whole row before anybody can weigh it. A row from a table may hold compressed
    # values, so what is not small is weighed as text. OFFSET 0 keeps the planner from merging the levels, which would
    # compute every column twice.
    _BOUNDED = (
        "SELECT *, CASE WHEN sum(CASE WHEN pg_column_size(bounded) < 1000 THEN pg_column_size(bounded) "
        "ELSE octet_length(bounded::text) END) OVER (ROWS UNBOUNDED PRECEDING) <= {limit} THEN NULL "
        "ELSE ('{message} ' || pg_column_size(bounded))::boolean END "
        "FROM (SELECT * FROM (\n{sql}\n) AS statement OFFSET 0) AS bounded"
    )
    _KINDS = (
        ("57014", FailureKind.TIMEOUT),
        ("55P03", FailureKind.TIMEOUT),
        ("25006", FailureKind.REFUSED),
        ("42501", FailureKind.REFUSED),
        ("42P01", FailureKind.MISSING),
        ("42703", FailureKind.MISSING),
        ("42883", FailureKind.MISSING),
        ("42704", FailureKind.MISSING),
        ("3F000", FailureKind.MISSING),
        ("42601", FailureKind.SYNTAX),
        ("53", FailureKind.TOO_LARGE),
        ("54", FailureKind.TOO_LARGE),
    )
    _SERVER_FAULTS = ("08", "57P", "58", "XX", "F0")

    errors: tuple[type[Exception], ...] = (psycopg.Error,)

    def connect(self, url: sa.URL) -> Any:
        """Connect, pin how the session reads and where it looks for names, and check that it does."""
        parameters = {"connect_timeout": CONNECT_SECONDS} | _parameters(url)
        connection = psycopg.connect(**parameters, autocommit=True, prepare_threshold=None)
        try:
            row = connection.execute(_POWERS.encode()).fetchone()
            found = connection.execute(
                "SELECT array_to_string(array(SELECT quote_ident(s) FROM unnest(current_schemas(false)) AS s), ', ')"
            ).fetchone()
            pins = "; ".join(f"SET {name} = '{value}'" for name, value in _PINNED.items())
            path = f"; SET search_path = {found[0]}" if found and found[0] else ""
            connection.execute((pins + path).encode())
            self._check(connection)
        except BaseException:
            connection.close()
            raise
        superuser, groups, account = row or (False, "", "")
        connection.sqlcrystal_powers = (superuser, groups, account)  # type: ignore[attr-defined]
        connection.sqlcrystal_role = "SET LOCAL ROLE pg_read_all_data;" if superuser else ""  # type: ignore[attr-defined]
        read_leniently(connection)
        return connection

    def privileges(self, connection: Any) -> str | None:
        """Superusers, and who may read or write the server's files or run its programs."""
        superuser, groups, account = connection.sqlcrystal_powers
        if not superuser and not groups:
            return None
        what = "is a superuser" if superuser else f"belongs to {groups}"
        return f"account {account} {what}; make a reader: {_READER}"

    def functions(self, connection: Any) -> Purity:
        """By the volatility that pg_proc notes."""
        return {str(name): bool(pure) for name, pure in connection.execute(_FUNCTIONS.encode()).fetchall()}

    def fileno(self, connection: Any) -> int:
        """Of libpq."""
        return int(connection.fileno())

    def stream(self, connection: Any, statement: Statement, timeout: float, max_rows: int) -> Stream:
        """Begin, then let the rows flow in chunks; libpq takes one statement only, since parameters are in use."""
        self._check(connection)
        milliseconds = max(1, round(timeout * 1000))
        connection.execute(
            f"BEGIN TRANSACTION READ ONLY; SET LOCAL statement_timeout = {milliseconds};"
            f"SET LOCAL lock_timeout = {milliseconds}; {connection.sqlcrystal_role}"
        )
        cursor = connection.cursor()
        if statement.inspection:
            cursor.execute(statement.text.encode())
            return tuple(column.name for column in cursor.description or ()), iter(cursor.fetchmany(max_rows + 1))
        query = self._BOUNDED.format(limit=MAX_BYTES, message=self._TOO_LARGE, sql=statement.text).encode()
        rows = cursor.stream(query, size=ROWS_PER_CHUNK)
        first = next(rows, None)
        if first is None:
            cursor.execute(query + b" LIMIT 0", binary=False)  # a stream without rows does not tell its columns
        columns = tuple(column.name for column in cursor.description[:-1])
        return columns, _without_last(first, rows)

    def finish(self, connection: Any) -> None:
        """Roll back, which undoes any setting, and drop advisory locks, which a rollback keeps."""
        connection.execute("ROLLBACK; SELECT pg_advisory_unlock_all()")

    def end(self, connection: Any, url: sa.URL) -> str | None:
        """Cancel, close, and look from another session whether the backend goes on."""
        backend = connection.info.backend_pid
        with suppress(psycopg.Error, OSError):
            connection.cancel_safe(timeout=1.0)
        with suppress(psycopg.Error, OSError):
            connection.close()
        with suppress(psycopg.Error, OSError):
            other = psycopg.connect(**({"connect_timeout": 1} | _parameters(url)), autocommit=True)
            try:
                other.execute("SELECT pg_terminate_backend(%s)", (backend,))
                time.sleep(NAMING_SECONDS)
                found = other.execute(
                    "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND state = 'active'", (backend,)
                ).fetchone()
                return f"backend {backend}" if found else None
            finally:
                other.close()
        return None

    def _check(self, connection: Any) -> None:
        """The server tells its clients when one of these changes, so that looking costs nothing."""
        status = connection.info.parameter_status
        if status("standard_conforming_strings") != "on" or status("client_encoding") != "UTF8":
            raise DatabaseError("the session does not read strings as standard SQL in UTF-8")

    def classify(self, error: Exception) -> FailureKind | None:
        """By SQLSTATE."""
        state = getattr(error, "sqlstate", None)
        if self._TOO_LARGE in str(error):
            return FailureKind.TOO_LARGE
        if state is None or (state.startswith(self._SERVER_FAULTS) and state != "XX000"):
            return None
        return next((kind for prefix, kind in self._KINDS if state.startswith(prefix)), FailureKind.ENGINE)

    def types(self, inspector: Any) -> list[str]:
        """The enumerations."""
        return [
            f"CREATE TYPE {enum['name']} AS ENUM ({', '.join(repr(label) for label in enum['labels'])});"
            for enum in sorted(inspector.get_enums(), key=lambda enum: str(enum["name"]))
        ]


def _parameters(url: sa.URL) -> dict[str, Any]:
    """The URL as psycopg takes it."""
    return url.translate_connect_args(username="user", database="dbname") | dict(url.query)


def _without_last(first: Any, rows: Iterator[Any]) -> Iterator[Any]:
    """The rows without the column that carried the byte count."""
    if first is not None:
        yield first[:-1]
        for row in rows:
            yield row[:-1]
