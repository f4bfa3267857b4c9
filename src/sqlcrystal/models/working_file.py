"""The SQLite file a recording is kept in while it grows; a file that holds anything else is refused, never changed."""

import sqlite3
from pathlib import Path

from sqlcrystal.errors import DataError
from sqlcrystal.incoming import MAX_LINE

FORMAT = 1
COLUMNS = ("key", "model", "digest", "messages", "sampling", "completion")


def open_to_read(path: Path) -> sqlite3.Connection:
    """A connection that cannot write, and that leaves nothing beside a file at rest."""
    journals = (path.with_name(path.name + suffix) for suffix in ("-wal", "-journal"))
    # Reading a file at rest in the usual way would leave an empty -wal and -shm behind; a file in use needs its log.
    mode = "mode=ro" if any(journal.exists() for journal in journals) else "immutable=1"
    connection = _connect(f"{path.resolve().as_uri()}?{mode}", path)
    try:
        _check(connection, path)
    except DataError:
        connection.close()
        raise
    return connection


def open_to_write(path: Path) -> sqlite3.Connection:
    """A connection to an old recording, or to a new one where there is no file or an empty one."""
    if path.exists() and path.stat().st_size:
        open_to_read(path).close()
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = _connect(str(path), path)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        with connection:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS completion ("
                "key TEXT PRIMARY KEY, model TEXT NOT NULL, digest TEXT NOT NULL, "
                "messages BLOB NOT NULL, sampling BLOB NOT NULL, completion BLOB NOT NULL) WITHOUT ROWID"
            )
            connection.execute(f"PRAGMA user_version = {FORMAT}")
    except sqlite3.Error as error:
        connection.close()
        raise DataError(f"recording {path}: cannot be written: {error}") from None
    return connection


def _connect(database: str, path: Path) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(database, timeout=30.0, check_same_thread=False, uri=database.startswith("file:"))
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_LINE)
        return connection
    except sqlite3.Error as error:
        raise DataError(f"recording {path}: cannot be opened: {error}") from None


def _check(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file that holds anything but the one table; one without any is a recording that was not begun.

    A view of the table's name, or a column that is computed, makes gigabytes of a file of a few kilobytes.
    """
    try:
        tables = [str(row[0]) for row in connection.execute("SELECT name FROM sqlite_master WHERE type != 'index'")]
        columns = [str(row[1]) for row in connection.execute("PRAGMA table_xinfo(completion)")]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.Error as error:
        raise DataError(f"recording {path}: not a recording: {error}") from None
    kinds = {str(row[0]) for row in connection.execute("SELECT type FROM sqlite_master WHERE type != 'index'")}
    if tables and (tables != ["completion"] or kinds != {"table"} or columns != list(COLUMNS)):
        raise DataError(f"recording {path}: not a recording: a database with the tables {', '.join(tables)[:200]}")
    if tables and version != FORMAT:
        raise DataError(f"recording {path}: format {version}; this version reads {FORMAT}")
