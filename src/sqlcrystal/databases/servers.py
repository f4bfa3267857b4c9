"""The engine locks of PostgreSQL and of MySQL/MariaDB: read-only transactions, time limits, bounded streams."""

import re
from collections.abc import Iterator
from typing import Any, Protocol

import sqlalchemy as sa

from sqlcrystal.databases.guard import bare
from sqlcrystal.databases.limits import MAX_BYTES
from sqlcrystal.types import FailureKind

ROWS_PER_CHUNK = 500
CONNECT_SECONDS = 10
SERVER_MEMORY = 256 * 2**20
Stream = tuple[tuple[str, ...], Iterator[Any]]


class ServerLock(Protocol):
    """What an engine must offer to be opened read-only."""

    dialect: str
    driver: str
    errors: tuple[type[Exception], ...]

    def connect(self, url: sa.URL) -> Any:
        """A driver connection."""
        ...

    def fileno(self, connection: Any) -> int:
        """The connection's socket."""
        ...

    def stream(self, connection: Any, sql: str, timeout: float, max_rows: int, /) -> Stream:
        """The columns, and the rows as they come, of one statement in a read-only transaction."""
        ...

    def finish(self, connection: Any) -> None:
        """End the transaction and leave nothing behind in the session."""
        ...

    def abandon(self, connection: Any) -> None:
        """Hang up on a result that is not wanted any more."""
        ...

    def classify(self, error: Exception) -> FailureKind | None:
        """What the error says of the statement; None when it says something of the server instead."""
        ...

    def types(self, inspector: Any, /) -> list[str]:
        """The CREATE TYPE statements the tables need."""
        ...


class PostgresLock:
    """READ ONLY transaction, timeouts, the rights of pg_read_all_data, and a running byte count inside the query."""

    dialect = "postgres"
    driver = "postgresql+psycopg"
    _TOO_LARGE = "sqlcrystal: the result is too large"
    # A subquery can hold nothing but a query; the window sums up the rows on the server, before they travel, because
    # the client library must take in a whole row before anybody can weigh it. OFFSET 0 keeps the planner from merging
    # the levels, which would compute every column twice.
    _BOUNDED = (
        "SELECT *, CASE WHEN sum(pg_column_size(bounded)) OVER (ROWS UNBOUNDED PRECEDING) <= {limit} THEN NULL "
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

    def __init__(self) -> None:
        import psycopg

        self.errors: tuple[type[Exception], ...] = (psycopg.Error,)
        self._psycopg = psycopg

    def connect(self, url: sa.URL) -> Any:
        """Connect, note whether the account is a superuser, and pin the search path before any change of role."""
        parameters = url.translate_connect_args(username="user", database="dbname") | dict(url.query)
        connection = self._psycopg.connect(
            **({"connect_timeout": CONNECT_SECONDS} | parameters), autocommit=True, prepare_threshold=None
        )
        row = connection.execute(
            "SELECT rolsuper, array_to_string("
            "array(SELECT quote_ident(s) FROM unnest(current_schemas(false)) AS s), ', ') "
            "FROM pg_roles WHERE rolname = current_user"
        ).fetchone()
        superuser, path = row if row else (False, "")
        if path:
            connection.execute(f"SET search_path = {path}")
        connection.sqlcrystal_role = "SET LOCAL ROLE pg_read_all_data;" if superuser else ""  # type: ignore[attr-defined]
        return connection

    def fileno(self, connection: Any) -> int:
        """Of libpq."""
        return int(connection.fileno())

    def stream(self, connection: Any, sql: str, timeout: float, _: int) -> Stream:
        """Begin, then let the rows flow in chunks; libpq takes one statement only, since parameters are in use."""
        milliseconds = max(1, round(timeout * 1000))
        connection.execute(
            f"BEGIN TRANSACTION READ ONLY; SET LOCAL statement_timeout = {milliseconds};"
            f"SET LOCAL lock_timeout = {milliseconds}; {connection.sqlcrystal_role}"
        )
        query = self._BOUNDED.format(limit=MAX_BYTES, message=self._TOO_LARGE, sql=bare(sql, self.dialect)).encode()
        cursor = connection.cursor()
        rows = cursor.stream(query, size=ROWS_PER_CHUNK)
        first = next(rows, None)
        if first is None:
            cursor.execute(query + b" LIMIT 0", binary=False)  # a stream without rows does not tell its columns
        columns = tuple(column.name for column in cursor.description[:-1])
        return columns, _without_last(first, rows)

    def finish(self, connection: Any) -> None:
        """Roll back, which undoes any setting, and drop advisory locks, which a rollback keeps."""
        connection.execute("ROLLBACK; SELECT pg_advisory_unlock_all()")

    def abandon(self, connection: Any) -> None:
        """Close the connection, which ends the statement on the server."""
        connection.cancel_safe(timeout=CONNECT_SECONDS)
        connection.close()

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


class MysqlLock:
    """READ ONLY transaction, execution time limit, bounded memory, and a byte budget on the socket."""

    dialect = "mysql"
    driver = "mysql+pymysql"
    _KINDS = (
        (FailureKind.SYNTAX, {1064, 1065, 1149, 1222, 1241, 1248}),
        (FailureKind.MISSING, {1049, 1051, 1054, 1109, 1128, 1146, 1305, 1356, 1630, 4161}),
        (FailureKind.TIMEOUT, {1205, 1317, 1969, 3024, 1028}),
        (FailureKind.REFUSED, {1044, 1142, 1143, 1227, 1290, 1370, 1792, 1148, 3948, 1235}),
        (FailureKind.TOO_LARGE, {1021, 1037, 1038, 1041, 1104, 1114, 1153, 1260, 1301, 1436}),
    )
    _SERVER_FAULTS = frozenset({1040, 1045, 1053, 1152, 1184, 2002, 2003, 2006, 2013, 2055})

    def __init__(self) -> None:
        import pymysql

        self.errors: tuple[type[Exception], ...] = (pymysql.MySQLError,)
        self._pymysql = pymysql

    def connect(self, url: sa.URL) -> Any:
        """Connect without local files or stacked statements, and set the session's bounds."""
        from sqlcrystal.databases.mysql_connection import BoundedConnection

        parameters = url.translate_connect_args(username="user") | dict(url.query)
        if "port" in parameters:
            parameters["port"] = int(parameters["port"])
        connection = BoundedConnection(
            **parameters,
            charset="utf8mb4",
            connect_timeout=CONNECT_SECONDS,
            local_infile=False,
            autocommit=True,
            cursorclass=self._pymysql.cursors.SSCursor,
        )
        # For the session, not only for the transaction: DDL ends a transaction first, and would then run outside it.
        connection.query("SET SESSION TRANSACTION READ ONLY")
        if connection.is_mariadb:
            connection.query(f"SET SESSION max_session_mem_used = {SERVER_MEMORY}")
        return connection

    def fileno(self, connection: Any) -> int:
        """Of PyMySQL."""
        return int(connection.fileno())

    def stream(self, connection: Any, sql: str, timeout: float, max_rows: int) -> Stream:
        """Begin, then read row by row; the server itself stops after one row too many."""
        limit = f"max_statement_time = {timeout:.3f}"
        if not connection.is_mariadb:
            limit = f"max_execution_time = {max(1, round(timeout * 1000))}"
        seconds = max(1, round(timeout))
        connection.query(
            f"SET SESSION {limit}, lock_wait_timeout = {seconds}, innodb_lock_wait_timeout = {seconds}, "
            f"sql_select_limit = {max_rows + 1}"
        )
        connection.query("START TRANSACTION READ ONLY")
        connection.limit(MAX_BYTES)
        cursor = connection.cursor()
        cursor.execute(sql)
        if cursor.description is None:
            raise self._pymysql.ProgrammingError(1792, "the statement is not a query")
        return tuple(column[0] for column in cursor.description), iter(cursor)

    def finish(self, connection: Any) -> None:
        """Roll back and drop named locks, which a rollback keeps."""
        connection.unlimit()
        connection.rollback()
        connection.query("DO RELEASE_ALL_LOCKS()")

    def abandon(self, connection: Any) -> None:
        """Hang up; the server notices at its next row."""
        connection.abandon()

    def classify(self, error: Exception) -> FailureKind | None:
        """By error number."""
        number = error.args[0] if error.args else 0
        if re.search(r"max[-_]session[-_]mem[-_]used", str(error)):
            return FailureKind.TOO_LARGE
        if number in self._SERVER_FAULTS:
            return None
        return next((kind for kind, numbers in self._KINDS if number in numbers), FailureKind.ENGINE)

    def types(self, _: Any) -> list[str]:
        """MySQL spells its enumerations in the table."""
        return []


def _without_last(first: Any, rows: Iterator[Any]) -> Iterator[Any]:
    """The rows without the column that carried the byte count."""
    if first is not None:
        yield first[:-1]
        for row in rows:
            yield row[:-1]


def lock_for(dialect: str) -> ServerLock:
    """The lock of a dialect; its driver is imported now."""
    return PostgresLock() if dialect == "postgres" else MysqlLock()
