"""The engine lock of MySQL and MariaDB: read-only sessions, time limits, and a byte budget on the socket."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pymysql
import sqlalchemy as sa
from pymysql.connections import Connection

from sqlcrystal.databases.engines import Opening
from sqlcrystal.databases.functions import Catalogue
from sqlcrystal.databases.guard import Statement
from sqlcrystal.databases.results import MAX_BYTES, TooLarge
from sqlcrystal.databases.servers import CONNECT_SECONDS, Stream, open_server
from sqlcrystal.errors import DatabaseError
from sqlcrystal.protocols import Database
from sqlcrystal.types import FailureKind

SERVER_MEMORY = 256 * 2**20
NAMING_SECONDS = 0.1
# Modes in which the server would read a text otherwise than the guard does.
_OTHER_READINGS = frozenset(
    [
        "NO_BACKSLASH_ESCAPES",
        "ANSI_QUOTES",
        "ANSI",
        "ORACLE",
        "MSSQL",
        "DB2",
        "POSTGRESQL",
        "MAXDB",
        "IGNORE_SPACE",
        "PIPES_AS_CONCAT",
    ]
)
_READER = "CREATE USER reader IDENTIFIED BY '…'; GRANT SELECT, SHOW VIEW ON your_database.* TO reader;"
_GRANT = re.compile(
    r"GRANT (?P<powers>.+?) ON (?:(?:TABLE|FUNCTION|PROCEDURE|PACKAGE|PACKAGE BODY) )?(?P<what>\S+) TO .*?"
    r"(?P<passes_on> WITH GRANT OPTION)?",
    re.IGNORECASE | re.DOTALL,
)
_ROLE = re.compile(r"GRANT (?P<role>\S+) TO ", re.IGNORECASE)
# What shows and changes nothing; what the functions of a database do is theirs to answer for.
_READING = frozenset(
    {"USAGE", "SELECT", "SHOW VIEW", "SHOW DATABASES", "SHOW CREATE ROUTINE", "SHOW_ROUTINE", "EXECUTE", "PROCESS"}
    | {"REPLICATION CLIENT", "BINLOG MONITOR", "SLAVE MONITOR", "REPLICA MONITOR"}
)


class MysqlLock:
    """READ ONLY transaction, execution time limit, bounded memory, and a byte budget on the socket."""

    dialect = "mysql"
    driver = "mysql+pymysql"
    _KINDS = (
        (FailureKind.SYNTAX, {1064, 1065, 1149, 1222, 1241, 1248}),
        (FailureKind.MISSING, {1049, 1051, 1054, 1109, 1128, 1146, 1305, 1356, 1370, 1630, 4161}),
        (FailureKind.TIMEOUT, {1205, 1317, 1969, 3024, 1028}),
        (FailureKind.REFUSED, {1044, 1045, 1142, 1143, 1227, 1290, 1792, 1148, 3948, 1235}),
        (FailureKind.TOO_LARGE, {1021, 1037, 1038, 1041, 1104, 1114, 1153, 1260, 1301, 1436}),
    )
    _SERVER_FAULTS = frozenset({1040, 1053, 1152, 1184, 2002, 2003, 2006, 2013, 2055})

    errors: tuple[type[Exception], ...] = (pymysql.MySQLError,)

    def connect(self, url: sa.URL) -> Any:
        """Connect without local files or stacked statements, and set the session's bounds and its way of reading."""
        connection = BoundedConnection(
            **_parameters(url),
            charset="utf8mb4",
            connect_timeout=CONNECT_SECONDS,
            local_infile=False,
            autocommit=True,
            cursorclass=pymysql.cursors.SSCursor,
        )
        try:
            # For the session, not only for the transaction: DDL ends a transaction first, and would run outside it.
            connection.query("SET SESSION TRANSACTION READ ONLY")
            if connection.is_mariadb:
                connection.query(f"SET SESSION max_session_mem_used = {SERVER_MEMORY}")
            modes = str(_asked(connection, "SELECT @@sql_mode")[0][0]).split(",")
            kept = ",".join(mode for mode in modes if mode not in _OTHER_READINGS)
            connection.query(f"SET SESSION sql_mode = '{kept}'")
            [(modes_now, charset)] = _asked(connection, "SELECT @@sql_mode, @@character_set_client")
            if _OTHER_READINGS & set(str(modes_now).split(",")) or charset != "utf8mb4":
                raise DatabaseError("the session does not read strings as MySQL does by default, in UTF-8")
        except BaseException:
            connection.close()
            raise
        return connection

    def privileges(self, connection: Any) -> str | None:
        """Name every grant that is for more than reading, those of the account's roles too."""
        found = sorted(set(_beyond_reading(_grants(connection))))
        if not found:
            return None
        account = _asked(connection, "SELECT CURRENT_USER()")[0][0]
        return f"account {account} has {', '.join(found)}; make a reader: {_READER}"

    def functions(self, _: Any) -> Catalogue:
        """The server does not say which functions are pure."""
        return Catalogue()

    def fileno(self, connection: Any) -> int:
        """Of PyMySQL."""
        return int(connection.fileno())

    def stream(self, connection: Any, statement: Statement, timeout: float, max_rows: int) -> Stream:
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
        cursor.execute(statement.text)
        if cursor.description is None:
            raise pymysql.ProgrammingError(1792, "the statement is not a query")
        result = connection._result
        result.converters = [(None, _lenient(encoding, converter)) for encoding, converter in result.converters]
        return tuple(column[0] for column in cursor.description), iter(cursor)

    def finish(self, connection: Any) -> None:
        """Roll back and drop named locks, which a rollback keeps."""
        connection.unlimit()
        connection.rollback()
        connection.query("DO RELEASE_ALL_LOCKS()")

    def abandon(self, connection: Any) -> int:
        """Hang up; the server calls a session a thread."""
        thread = int(connection.thread_id())
        connection.abandon()
        return thread

    def session_named(self, number: int) -> str:
        """Name it as the process list does."""
        return f"connection {number}"

    def end(self, session: int, url: sa.URL) -> bool:
        """Kill the session from another one, and look whether it goes on."""
        with suppress(pymysql.MySQLError, OSError):
            other = BoundedConnection(
                **_parameters(url), connect_timeout=1, read_timeout=1, write_timeout=1, autocommit=True
            )
            try:
                with suppress(pymysql.MySQLError):  # it may have ended meanwhile
                    other.query(f"KILL CONNECTION {session}")
                time.sleep(NAMING_SECONDS)
                listed = f"SELECT ID FROM information_schema.PROCESSLIST WHERE ID = {session}"
                return bool(_asked(other, listed))
            finally:
                other.close()
        return False

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


def _parameters(url: sa.URL) -> dict[str, Any]:
    """The URL as PyMySQL takes it."""
    parameters: dict[str, Any] = url.translate_connect_args(username="user") | dict(url.query)
    return parameters | ({"port": int(parameters["port"])} if "port" in parameters else {})


def _asked(connection: Any, query: str) -> list[tuple[Any, ...]]:
    """The rows of a query of our own."""
    with connection.cursor() as cursor:
        cursor.execute(query)
        return list(cursor.fetchall())


def _lenient(encoding: str | None, converter: Callable[[Any], Any] | None) -> Callable[[bytes], Any]:
    """Text that is not UTF-8 gets replacements; what the driver cannot convert stays text."""

    def load(data: bytes) -> Any:
        value = data if encoding is None else data.decode(encoding, errors="replace")
        try:
            return value if converter is None else converter(value)
        except Exception:
            return value

    return load


def _grants(connection: Any) -> list[str]:
    """List the account's grants, and those of every role it may take on."""
    grants = [str(row[0]) for row in _asked(connection, "SHOW GRANTS")]
    roles = [match["role"] for grant in grants if (match := _ROLE.match(grant))]
    looked: set[str] = set()
    while roles:
        role = roles.pop()
        if role in looked:
            continue
        looked.add(role)
        more = _grants_of_a_role(connection, role)
        grants += more
        roles += [match["role"] for grant in more if (match := _ROLE.match(grant))]
    return grants


def _grants_of_a_role(connection: Any, role: str) -> list[str]:
    """List the grants of a role; MariaDB shows those of the role that is taken on."""
    try:
        if not connection.is_mariadb:
            return [str(row[0]) for row in _asked(connection, f"SHOW GRANTS FOR CURRENT_USER() USING {role}")]
        taken = _asked(connection, "SELECT CURRENT_ROLE()")[0][0]
        connection.query(f"SET ROLE {role}")
        try:
            return [str(row[0]) for row in _asked(connection, "SHOW GRANTS")]
        finally:
            connection.query(f"SET ROLE {f'`{taken}`' if taken else 'NONE'}")
    except pymysql.MySQLError:
        return [f"GRANT role {role} ON *.* TO unseen"]


def _beyond_reading(grants: list[str]) -> Iterator[str]:
    for grant in grants:
        match = _GRANT.fullmatch(grant)
        if match is None:
            continue
        powers = [power.strip() for power in re.sub(r"\([^)]*\)", "", match["powers"]).split(",")]
        powers += ["GRANT OPTION"] if match["passes_on"] else []
        yield from (f"{power} on {match['what']}" for power in powers if power.upper() not in _READING)


def open_mysql(opening: Opening) -> Database:
    """Open a database of a MySQL or MariaDB server."""
    return open_server(opening, MysqlLock())


class BoundedConnection(Connection):
    """A connection that stops reading at a byte budget, since a single row may be larger than memory."""

    _budget = float("inf")

    @property
    def is_mariadb(self) -> bool:
        """MariaDB names some settings otherwise than MySQL."""
        return "mariadb" in str(self.get_server_info()).lower()  # type: ignore[no-untyped-call]

    def fileno(self) -> int:
        """The socket, for whoever must hang up from another thread."""
        return int(self._sock.fileno())  # type: ignore[attr-defined]

    def limit(self, budget: int) -> None:
        """Bound the bytes of the next result."""
        self._budget = budget

    def unlimit(self) -> None:
        """Lift the bounds, for the statements of this package."""
        self._budget = float("inf")

    def abandon(self) -> None:
        """Hang up on a result that is not wanted any more, instead of reading it to its end."""
        result = self._result  # type: ignore[has-type]
        if result is not None:
            result.unbuffered_active = False
        self._result = None
        self._force_close()  # type: ignore[attr-defined]

    def _read_bytes(self, num_bytes: int) -> Any:
        self._budget -= num_bytes
        if self._budget < 0:
            self.abandon()
            raise TooLarge(f"the result exceeds {MAX_BYTES} bytes")
        return super()._read_bytes(num_bytes)  # type: ignore[misc]
