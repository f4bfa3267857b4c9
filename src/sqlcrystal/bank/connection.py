"""Opening a bank file, and what SQLite's errors mean to the person at the keyboard."""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlcrystal.bank.migrations import belongs_to_a_bank, migrate
from sqlcrystal.errors import BankError

BUSY_SECONDS = 30.0
BANK_VARIABLE = "SQLCRYSTAL_BANK"

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


def default_bank_path() -> Path:
    """Where the bank lies when nobody says: $SQLCRYSTAL_BANK, else the user's data folder."""
    named = os.environ.get(BANK_VARIABLE)
    if named:
        return Path(named).expanduser()
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data) / "sqlcrystal" / "bank.sqlite"


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into one line a user can act on."""
    try:
        yield
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "") or ""
        meaning = next((text for code, text in _MEANING.items() if name.startswith(code)), str(error))
        raise BankError(f"{path}: {meaning}") from error


def connect(path: Path, *, create: bool, busy_seconds: float) -> sqlite3.Connection:
    """Open and, where needed, migrate the file; a file that is something else is left untouched."""
    if not create and not path.is_file():
        raise BankError(f"{path}: there is no bank here yet")
    with explained(path):
        if create:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise BankError(f"{path}: the bank's folder cannot be made ({error.strerror})") from error
        # Autocommit: every transaction below is begun and ended by name.
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=busy_seconds)
        try:
            _prepare(connection, path, busy_seconds)
        except BaseException:
            connection.close()
            raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path, busy_seconds: float) -> None:
    if not belongs_to_a_bank(connection):
        raise BankError(f"{path}: this is an SQLite database, but not a card bank")
    _write_ahead(connection, busy_seconds)
    # FULL syncs the log at every commit: an acknowledged card survives a power cut, not only a killed process.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    migrate(connection)


def _write_ahead(connection: sqlite3.Connection, busy_seconds: float) -> None:
    # The switch to WAL does not wait for the busy timeout, so two processes that open a new bank would race here.
    deadline = time.monotonic() + busy_seconds
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
            return
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
