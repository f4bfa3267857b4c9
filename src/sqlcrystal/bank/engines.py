"""The engines a store can lie in: one SQLite file, or PostgreSQL for several processes or machines.

Not guaranteed: SQLite over a network file system, where its locks and shared memory do not hold; and that a forgotten
datum leaves a PostgreSQL server's write-ahead log and backups, which are the server's to keep.
"""

import sqlite3
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

import sqlalchemy as sa

from sqlcrystal.damaged_files import is_whole
from sqlcrystal.errors import BankError, ConfigError, StoreAway

STORE_MARK = 0x53514C43
"""SQLC: tells a store from any other SQLite file, and names the lock that lets one PostgreSQL writer in at a time."""


class Engine(Protocol):
    """The differences between SQLite and PostgreSQL."""

    where: str
    """The store's name in errors and reports; never with a password."""
    sqlalchemy: sa.Engine
    readers: int
    """How many connections may read at the same moment."""

    def take_lock(self, connection: sa.Connection, /) -> None:
        """Let one writer in at a time, so that what it reads is what it writes over."""
        ...

    def reader(self) -> sa.Connection:
        """Open a connection for single queries; two of them may see two moments."""
        ...

    def snapshot(self) -> sa.Connection:
        """Open a connection that sees one moment of the store, however long the reader takes."""
        ...

    def explained(self, error: BaseException | None, /) -> BankError:
        """Say what the driver's error means to the person at the keyboard, and whether the store may come back."""
        ...

    def erase(self) -> None:
        """Make sure that deleted rows are not left over in files."""
        ...


# ── SQLite ───────────────────────────────────────────────────────────────────────────────────────────────────────────

_SQLITE_MEANING = {
    "SQLITE_BUSY": "another process has kept the bank locked; try again when it is done",
    "SQLITE_LOCKED": "another process has kept the bank locked; try again when it is done",
    "SQLITE_NOTADB": "this file is not a card bank",
    "SQLITE_CORRUPT": "the bank file is damaged; restore it from an export",
    "SQLITE_CANTOPEN": "the bank cannot be opened; look at the path and its permissions",
    "SQLITE_READONLY": "the bank is read-only",
    "SQLITE_FULL": "the disk is full",
    "SQLITE_IOERR": "the disk failed",
}


class SqliteEngine:
    """Write-ahead log, synced at every commit; one writer at a time, readers never wait."""

    readers = 64  # an open file each

    def __init__(self, path: Path, *, create: bool, busy_seconds: float) -> None:
        """Open the file after a look at it: one that is something else is left untouched."""
        self.path = path
        self.where = str(path)
        self._busy_seconds = busy_seconds
        if not create and not path.is_file():
            raise BankError(f"{path}: there is no bank here yet")
        if create:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise BankError(f"{path}: the bank's folder cannot be made ({error.strerror})") from error
        try:
            self._prepare()
        except sqlite3.Error as error:
            raise self.explained(error) from error
        except UnicodeDecodeError as error:  # SQLite quotes the damaged text of a table, which Python cannot read
            raise BankError(f"{path}: {_SQLITE_MEANING['SQLITE_CORRUPT']}") from error
        self.sqlalchemy = sa.create_engine(
            "sqlite://", creator=self._connect, poolclass=sa.pool.QueuePool, pool_size=8, max_overflow=56
        )
        sa.event.listen(self.sqlalchemy, "begin", _begin)

    def take_lock(self, _: sa.Connection) -> None:
        """Do nothing: BEGIN IMMEDIATE took it."""

    def reader(self) -> sa.Connection:
        """Connect without a transaction: each statement sees its own moment."""
        return self.sqlalchemy.connect()

    def snapshot(self) -> sa.Connection:
        """Connect with a deferred transaction, which sees the moment of its first read."""
        return self.sqlalchemy.connect().execution_options(sqlcrystal_begin="BEGIN")

    def explained(self, error: BaseException | None) -> BankError:
        """Translate SQLite's own name of the error; a file does not go away."""
        name = getattr(error, "sqlite_errorname", "") or ""
        meaning = next((text for code, text in _SQLITE_MEANING.items() if name.startswith(code)), str(error))
        return BankError(f"{self.where}: {meaning}")

    def erase(self) -> None:
        """Move the log into the file and empty it; secure_delete has overwritten the rows there."""
        with self.sqlalchemy.connect() as connection:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").all()

    def _connect(self) -> sqlite3.Connection:
        # Autocommit: every transaction is begun and ended by name.
        connection = sqlite3.connect(
            f"file:{quote(str(self.path.absolute()))}",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            timeout=self._busy_seconds,
        )
        # FULL syncs the log at every commit: an acknowledged write survives a power cut, not only a killed process.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA secure_delete = ON")
        return connection

    def _prepare(self) -> None:
        connection = self._connect()
        try:
            if not _belongs_to_a_store(connection):
                raise BankError(f"{self.path}: this is an SQLite database, but not a card bank")
            if not is_whole(connection, self.path):
                raise BankError(f"{self.path}: {_SQLITE_MEANING['SQLITE_CORRUPT']}")
            self._write_ahead(connection)
        finally:
            connection.close()

    def _write_ahead(self, connection: sqlite3.Connection) -> None:
        # The switch to WAL does not wait for the busy timeout, so two processes that open a new store would race here.
        deadline = time.monotonic() + self._busy_seconds
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL").fetchone()
                if connection.execute("PRAGMA application_id").fetchone()[0] != STORE_MARK:
                    connection.execute(f"PRAGMA application_id = {STORE_MARK}")
                return
            except sqlite3.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)


def _begin(connection: sa.Connection) -> None:
    options = connection.get_execution_options()
    if options.get("sqlcrystal_writing"):
        # IMMEDIATE takes the write lock first, so that what is read inside is what is written over.
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    elif begin := options.get("sqlcrystal_begin"):
        connection.exec_driver_sql(begin)


def _belongs_to_a_store(connection: sqlite3.Connection) -> bool:
    """Tell whether the open file is a store or empty."""
    if connection.execute("PRAGMA application_id").fetchone()[0] == STORE_MARK:
        return True
    return connection.execute("SELECT 1 FROM sqlite_master").fetchone() is None


# ── PostgreSQL ───────────────────────────────────────────────────────────────────────────────────────────────────────

SCHEMA = "sqlcrystal"
"""The schema of the store's own, so that a store can share a database with anything."""
CONNECT_SECONDS = 10
EF_SEARCH = 100
"""How many candidates pgvector keeps while it searches: more find more, and take longer."""

_POSTGRES_MEANING = {
    "28": "the user name or password is wrong",
    "3D": "there is no database of that name on the server",
    "42501": "this account may not write here; grant it CREATE on the database, or use another",
    "53": "the server has no room or connections left",
    "55P03": "another process has kept the bank locked; try again when it is done",
    "57": "the server stopped or cancelled the statement; try again",
    "25006": "the bank is read-only",
}
_STOPPING = "57P"
"""The class of SQLSTATE with which a server says that it stops, crashed or is not up yet."""
PAUSE = 0.5
"""Seconds between two knocks at a server that is away."""


class PostgresEngine:
    """Commits wait for the disk whatever the server's default is; writers that look before they write take turns."""

    readers = 8  # a look takes less than a millisecond, and a server has few connections to give

    def __init__(self, url: str, *, create: bool, busy_seconds: float) -> None:
        """Connect, and make the schema if it is to be made."""
        if find_spec("psycopg") is None:
            raise ConfigError("store: postgresql:// needs psycopg; pip install 'sqlcrystal[postgres]'")
        parsed = _parsed(url).set(drivername="postgresql+psycopg")
        self.where = parsed.set(drivername="postgresql").render_as_string(hide_password=True)
        self._busy_milliseconds = round(busy_seconds * 1000)
        self.sqlalchemy = sa.create_engine(
            parsed,
            pool_pre_ping=True,
            pool_size=8,
            max_overflow=24,
            pool_timeout=busy_seconds,
            connect_args={"connect_timeout": CONNECT_SECONDS},
        )
        sa.event.listen(self.sqlalchemy, "connect", self._set_up)
        try:
            self._prepare(create=create)
        except BaseException:
            self.sqlalchemy.dispose()
            raise

    def take_lock(self, connection: sa.Connection) -> None:
        """Take an advisory lock of this transaction."""
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": STORE_MARK})

    def reader(self) -> sa.Connection:
        """Connect without a transaction: each statement is one trip to the server."""
        return self.sqlalchemy.connect().execution_options(isolation_level="AUTOCOMMIT")

    def snapshot(self) -> sa.Connection:
        """Connect with repeatable read, streamed, so that an export does not fill this process."""
        return self.sqlalchemy.connect().execution_options(isolation_level="REPEATABLE READ", stream_results=True)

    def explained(self, error: BaseException | None) -> BankError:
        """Translate the SQLSTATE, else quote the server's first line."""
        state = getattr(error, "sqlstate", None) or ""
        lines = str(error).strip().splitlines() or [type(error).__name__]
        known = next((text for code, text in _POSTGRES_MEANING.items() if state.startswith(code)), "")
        meaning = known or (lines[0] if state else f"cannot connect: {lines[-1].strip()}")
        no_answer = not state and isinstance(error, self.sqlalchemy.dialect.loaded_dbapi.OperationalError)
        kind = StoreAway if no_answer or state.startswith(_STOPPING) else BankError
        return kind(f"{self.where}: {meaning}")

    def erase(self) -> None:
        """Vacuum, which frees the deleted rows for reuse; the module's docstring says what is not guaranteed."""
        with self.sqlalchemy.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(sa.text("VACUUM"))

    def _set_up(self, connection: object, _: object) -> None:
        connection.autocommit = True  # type: ignore[attr-defined]
        with connection.cursor() as cursor:  # type: ignore[attr-defined]
            cursor.execute(
                f"SET search_path = {SCHEMA}, public; SET synchronous_commit = on;"
                f"SET lock_timeout = {self._busy_milliseconds};"
                # For pgvector, where it is used. Strict order goes on until enough cards pass a search's filter,
                # however many of the nearest were disabled.
                f"SET hnsw.ef_search = {EF_SEARCH}; SET hnsw.iterative_scan = strict_order"
            )
        connection.autocommit = False  # type: ignore[attr-defined]

    def _prepare(self, *, create: bool) -> None:
        try:
            with self.sqlalchemy.begin() as connection:
                if connection.scalar(sa.text("SHOW server_encoding")) != "UTF8":
                    raise BankError(f"{self.where}: the database must be encoded in UTF8")
                self.take_lock(connection)
                there = connection.scalar(sa.text("SELECT 1 FROM pg_namespace WHERE nspname = :name"), {"name": SCHEMA})
                if there:
                    return
                if not create:
                    raise BankError(f"{self.where}: there is no bank here yet")
                connection.execute(sa.text(f"CREATE SCHEMA {SCHEMA}"))
        except sa.exc.DBAPIError as error:
            raise self.explained(error.orig) from error


def is_postgres(location: str) -> bool:
    """Tell whether a store's location is a server's, by its scheme."""
    scheme, separator, _ = location.partition("://")
    return bool(separator) and scheme.partition("+")[0] in {"postgres", "postgresql"}


def _parsed(url: str) -> sa.URL:
    try:
        return sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        raise ConfigError("store: not a URL such as postgresql://USER@HOST/DATABASE") from None


def await_server(location: str, seconds: float, tell: Callable[[str], None]) -> None:
    """Wait until the server of a store takes connections, at most so long; one line is told where that is not at once.

    Only a server that does not answer, or says that it is not up yet, is waited for: what it has against an account or
    a name will not change by waiting, and opening the store says it. A file is not waited for.
    """
    if not is_postgres(location) or find_spec("psycopg") is None:
        return
    from psycopg.pq import PGconn, Ping

    url = _parsed(location).set(drivername="postgresql")
    where = url.render_as_string(hide_password=True)
    knock = url.update_query_dict({"connect_timeout": str(CONNECT_SECONDS)}).render_as_string(hide_password=False)
    ends = time.monotonic() + seconds
    told = False
    while PGconn.ping(knock.encode()) in (Ping.REJECT, Ping.NO_RESPONSE):
        if time.monotonic() >= ends:
            raise StoreAway(f"{where}: the store's server did not answer for {seconds:g} s")
        if not told:
            tell(f"{where}: the store's server does not answer; waiting up to {seconds:g} s for it")
        told = True
        time.sleep(PAUSE)
