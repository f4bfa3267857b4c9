"""A store in one SQLite file.

Not guaranteed: use over a network file system, where SQLite's locks and shared memory do not hold.
"""

import sqlite3
import time
from pathlib import Path
from urllib.parse import quote

import sqlalchemy as sa

from sqlcrystal.errors import BankError

APPLICATION_ID = 0x53514C43  # "SQLC": tells a store from any other SQLite file before anything is written to it

_MEANING = {
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
        """Look at the file first: one that is something else is left untouched."""
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
            raise BankError(f"{path}: {self.meaning(error)}") from error
        self.sqlalchemy = sa.create_engine(
            "sqlite://", creator=self._connect, poolclass=sa.pool.QueuePool, pool_size=8, max_overflow=56
        )
        sa.event.listen(self.sqlalchemy, "begin", _begin)

    def take_lock(self, _: sa.Connection) -> None:
        """BEGIN IMMEDIATE took it."""

    def reader(self) -> sa.Connection:
        """Without a transaction: each statement sees its own moment."""
        return self.sqlalchemy.connect()

    def snapshot(self) -> sa.Connection:
        """A deferred transaction sees the moment of its first read."""
        return self.sqlalchemy.connect().execution_options(sqlcrystal_begin="BEGIN")

    def meaning(self, error: BaseException | None) -> str:
        """By SQLite's own name of the error."""
        name = getattr(error, "sqlite_errorname", "") or ""
        return next((text for code, text in _MEANING.items() if name.startswith(code)), str(error))

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
        # FULL syncs the log at every commit: what was acknowledged survives a power cut, not only a killed process.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA secure_delete = ON")
        return connection

    def _prepare(self) -> None:
        connection = self._connect()
        try:
            if not _belongs_to_a_store(connection):
                raise BankError(f"{self.path}: this is an SQLite database, but not a card bank")
            self._write_ahead(connection)
        finally:
            connection.close()

    def _write_ahead(self, connection: sqlite3.Connection) -> None:
        # The switch to WAL does not wait for the busy timeout, so two processes that open a new store would race here.
        deadline = time.monotonic() + self._busy_seconds
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL").fetchone()
                if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
                    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
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
    """Whether the open file is a store or empty; says nothing about what its cards hold."""
    if connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID:
        return True
    return connection.execute("SELECT 1 FROM sqlite_master").fetchone() is None
