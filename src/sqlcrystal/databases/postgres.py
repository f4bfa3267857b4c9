"""PostgreSQL's engine lock: read-only transactions, time limits, and rows weighed on the server before they travel."""

import secrets
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import psycopg
import sqlalchemy as sa
from psycopg.abc import Loader
from psycopg.pq import Format

from sqlcrystal.databases.engines import Opening
from sqlcrystal.databases.functions import Catalogue
from sqlcrystal.databases.guard import Statement
from sqlcrystal.databases.results import MAX_BYTES, plain
from sqlcrystal.databases.servers import CONNECT_SECONDS, Stream, open_server
from sqlcrystal.errors import DatabaseError
from sqlcrystal.protocols import Database
from sqlcrystal.types import FailureKind

ROWS_PER_CHUNK = 64
NAMING_SECONDS = 0.1
CANCEL_SECONDS = 0.2
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
SELECT proname, NOT bool_or(impure), bool_or(impure AND made)
FROM (SELECT proname, provolatile = 'v' OR prokind = 'p' OR prorettype IN (2279, 3838) AS impure,
    pronamespace <> 'pg_catalog'::regnamespace AS made
  FROM pg_proc WHERE pronamespace <> 'information_schema'::regnamespace) AS listed GROUP BY 1
"""
_READER = (
    "CREATE ROLE reader LOGIN PASSWORD '…'; GRANT pg_read_all_data TO reader; "
    "(or GRANT SELECT on the tables it shall read)"
)
# Every role that the account is or may become counts. PUBLIC may create in the schema public before PostgreSQL 15;
# what everybody may do is not the account's.
_POWERS = """
WITH mine AS (SELECT * FROM pg_roles WHERE pg_has_role(current_user, oid, 'MEMBER')),
  places AS (SELECT * FROM pg_namespace WHERE nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema')
SELECT DISTINCT power FROM mine, LATERAL (VALUES (rolsuper, 'SUPERUSER'), (rolcreaterole, 'CREATEROLE'),
  (rolcreatedb, 'CREATEDB'), (rolreplication, 'REPLICATION'), (rolbypassrls, 'BYPASSRLS'),
  (rolname IN ('pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program', 'pg_write_all_data',
    'pg_signal_backend', 'pg_maintain', 'pg_checkpoint', 'pg_create_subscription', 'pg_signal_autovacuum_worker'),
    'the rights of ' || rolname),
  (has_database_privilege(mine.oid, current_database(), 'CREATE'), 'CREATE on the database')) AS had(has, power)
WHERE has
UNION ALL (SELECT 'more than SELECT on ' || relation.oid::regclass::text
  FROM mine, pg_class AS relation JOIN places ON places.oid = relnamespace
  WHERE (relkind IN ('r', 'p', 'v', 'm', 'f') AND (
      has_table_privilege(mine.oid, relation.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
      OR has_any_column_privilege(mine.oid, relation.oid, 'INSERT, UPDATE, REFERENCES')))
    OR (relkind = 'S' AND has_sequence_privilege(mine.oid, relation.oid, 'USAGE, UPDATE')) LIMIT 1)
UNION ALL (SELECT 'CREATE in schema ' || quote_ident(nspname) FROM mine, places
  WHERE has_schema_privilege(mine.oid, places.oid, 'CREATE') AND NOT EXISTS (SELECT 1
    FROM aclexplode(nspacl) AS granted WHERE grantee = 0 AND privilege_type = 'CREATE') LIMIT 1)
"""
MAX_PARSED = 1_000_000
"""Longer values stay text: as Python objects, arrays and documents take many times the memory."""
_LENIENT_TYPES = (
    "date time timetz timestamp timestamptz interval numeric json jsonb daterange tsrange tstzrange datemultirange "
    "tsmultirange tstzmultirange numrange nummultirange int4range int8range int4multirange int8multirange inet cidr"
)


_INFINITE = frozenset({b"infinity", b"-infinity"})


class PostgresLock:
    """READ ONLY transaction, timeouts, the rights of pg_read_all_data, and a running byte count inside the query."""

    dialect = "postgres"
    driver = "postgresql+psycopg"
    _TOO_LARGE = "sqlcrystal: the result is too large"
    # A subquery can hold nothing but a query; the window sums up the rows on the server, before they travel, because
    # the client library must take in a whole row before anybody can weigh it. Rows are weighed as the text they will
    # be: a table may hold compressed values, and 1e131071 is eight bytes. The alias is drawn anew for each statement,
    # and `alias.*` is the row even where a column has that name. OFFSET 0 keeps the planner from merging the levels,
    # which would compute every column twice.
    _BOUNDED = (
        "SELECT *, CASE WHEN sum(CASE WHEN pg_column_size({row}.*) > {limit} THEN pg_column_size({row}.*) "
        "ELSE octet_length(({row}.*)::text) END) OVER (ROWS UNBOUNDED PRECEDING) <= {limit} THEN NULL "
        "ELSE ('{message} ' || pg_column_size({row}.*))::boolean END "
        "FROM (SELECT * FROM (\n{sql}\n) AS statement OFFSET 0) AS {row}"
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
            row = connection.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user").fetchone()
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
        superuser = bool(row and row[0])
        connection.sqlcrystal_role = "SET LOCAL ROLE pg_read_all_data;" if superuser else ""  # type: ignore[attr-defined]
        # The library forgets the number once the connection is broken, which is when it is needed.
        connection.sqlcrystal_backend = connection.info.backend_pid  # type: ignore[attr-defined]
        _read_leniently(connection)
        return connection

    def privileges(self, connection: Any) -> str | None:
        """Name every right of the account, or of a role it may take on, that is for more than reading."""
        superuser, account = connection.execute(
            "SELECT rolsuper, rolname FROM pg_roles WHERE rolname = current_user"
        ).fetchone()
        if superuser:
            return f"account {account} is a superuser; make a reader: {_READER}"
        found = sorted(power for (power,) in connection.execute(_POWERS.encode()).fetchall())
        return f"account {account} has {', '.join(found)}; make a reader: {_READER}" if found else None

    def functions(self, connection: Any) -> Catalogue:
        """Ask pg_proc for the volatility of each function; a name counts by the worst of its overloads."""
        listed = connection.execute(_FUNCTIONS.encode()).fetchall()
        return Catalogue(
            {str(name): bool(pure) for name, pure, _ in listed},
            frozenset(str(name) for name, _, made_impure in listed if made_impure),
        )

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
        row = f"row_{secrets.token_hex(8)}"
        query = self._BOUNDED.format(row=row, limit=MAX_BYTES, message=self._TOO_LARGE, sql=statement.text).encode()
        rows = cursor.stream(query, size=ROWS_PER_CHUNK)
        first = next(rows, None)
        if first is None:
            cursor.execute(query + b" LIMIT 0", binary=False)  # a stream without rows does not tell its columns
        columns = tuple(column.name for column in cursor.description[:-1])
        return columns, _without_last(first, rows)

    def finish(self, connection: Any) -> None:
        """Roll back, which undoes any setting, and drop advisory locks, which a rollback keeps."""
        connection.execute("ROLLBACK; SELECT pg_advisory_unlock_all()")

    def abandon(self, connection: Any) -> int:
        """Cancel, which needs no room on the server, and close."""
        with suppress(psycopg.Error, OSError):
            connection.cancel_safe(timeout=CANCEL_SECONDS)
        with suppress(psycopg.Error, OSError):
            connection.close()
        return int(connection.sqlcrystal_backend)

    def session_named(self, number: int) -> str:
        """Name it as pg_stat_activity does."""
        return f"backend {number}"

    def end(self, session: int, url: sa.URL) -> bool:
        """Terminate the backend from another session, and look whether it goes on."""
        with suppress(psycopg.Error, OSError):
            other = psycopg.connect(**({"connect_timeout": 1} | _parameters(url)), autocommit=True)
            try:
                other.execute("SELECT pg_terminate_backend(%s)", (session,))
                time.sleep(NAMING_SECONDS)
                found = other.execute(
                    "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND state = 'active'", (session,)
                ).fetchone()
                return found is not None
            finally:
                other.close()
        return False

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


def open_postgres(opening: Opening) -> Database:
    """Open a database of a PostgreSQL server."""
    return open_server(opening, PostgresLock())


def _read_leniently(connection: Any) -> None:
    """Let values that Python cannot hold, and long ones, come as text.

    Python knows no infinite date, no year before Christ and no 24:00:00, and JSON may be too deep for it.
    """
    types = connection.adapters.types
    for name in _LENIENT_TYPES.split():
        info = types.get(name)
        if info is None:
            continue
        for oid in filter(None, (info.oid, info.array_oid)):
            inner = connection.adapters.get_loader(oid, Format.TEXT)
            if inner is not None:
                connection.adapters.register_loader(oid, _lenient(inner))
    for info in types:
        if info.array_oid and info.name not in _LENIENT_TYPES.split():
            inner = connection.adapters.get_loader(info.array_oid, Format.TEXT)
            if inner is not None:
                connection.adapters.register_loader(info.array_oid, _lenient(inner))


def _lenient(inner: type[Loader]) -> type[Loader]:
    """A loader that falls back to the server's own words."""

    class Lenient(Loader):
        format = Format.TEXT

        def __init__(self, oid: int, context: Any = None) -> None:
            self._inner = inner(oid, context)

        def load(self, data: Any) -> Any:
            if len(data) <= MAX_PARSED and bytes(data) not in _INFINITE:
                try:
                    return _storable(self._inner.load(data))
                except Exception:
                    pass
            return bytes(data).decode(errors="replace")

    return Lenient


def _storable(value: Any) -> Any:
    """The value, unless it is text with half a character in it, as JSON can spell, or an integer beyond 64 bits."""
    if isinstance(value, str):
        value.encode()
    return plain(value) if type(value) is int else value
