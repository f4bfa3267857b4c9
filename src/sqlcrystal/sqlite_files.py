"""SQLite files of our own: whether one that is opened is whole."""

import sqlite3
from pathlib import Path

LOOKED_THROUGH = 4 * 2**20
"""A file up to this size is looked through whenever it is opened, which takes some ten milliseconds."""


def is_whole(connection: sqlite3.Connection, path: Path) -> bool:
    """Tell whether a file's pages fit together; a large one is believed, and its damage found where it is read."""
    if not path.exists() or path.stat().st_size > LOOKED_THROUGH:
        return True
    return bool(connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))
