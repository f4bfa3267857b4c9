"""Gold results kept between runs, by the database's content and the SQL.

The cache only saves time: whatever is wrong with it (corrupt, read-only, locked), scoring goes on without it. It is not
used for databases that are not files, nor for SQL that reads the clock or chance, and it never keeps a failure.
"""

import hashlib
import os
import sqlite3
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

import msgspec

from sqlcrystal.scoring.verdicts import may_change_between_runs
from sqlcrystal.types import Rows

_FORMAT = f"1/{sqlite3.sqlite_version}"
_LARGEST_RESULT = 8 * 2**20
_LARGEST_CACHE = 2**30
_SECONDS_BETWEEN_WRITES = 2.0
_SECONDS_UNTIL_SETTLED = 2.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS gold (key BLOB PRIMARY KEY, checksum INTEGER NOT NULL, rows BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS digests (path TEXT PRIMARY KEY, stamp TEXT NOT NULL, digest TEXT NOT NULL) WITHOUT ROWID;
"""
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Rows).decode


def cache_directory() -> Path:
    """SQLCRYSTAL_CACHE, else the user's cache folder."""
    if folder := os.environ.get("SQLCRYSTAL_CACHE"):
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sqlcrystal"


class GoldCache:
    """A SQLite file of gold results; one object serves one process, and survives a fork by opening anew."""

    def __init__(self, directory: Path | None = None) -> None:
        """Name the file; it is opened on first use."""
        self.path = (directory or cache_directory()) / "gold.sqlite3"
        self._lock = Lock()
        self._connection: sqlite3.Connection | None = None
        self._owner = 0
        self._broken = False
        self._waiting: dict[bytes, tuple[int, bytes]] = {}
        self._written = time.monotonic()

    def get(self, digest: str, sql: str) -> Rows | None:
        """The rows kept for this SQL on a database of this content."""
        rows = self._query("SELECT checksum, rows FROM gold WHERE key = ?", (_key(digest, sql),))
        if not rows or zlib.crc32(rows[0][1]) != rows[0][0]:
            return None
        try:
            return _decode(rows[0][1])
        except msgspec.MsgspecError:
            return None

    def put(self, digest: str, sql: str, rows: Rows) -> None:
        """Keep the rows, unless another run could get others."""
        if may_change_between_runs(sql):
            return
        encoded = _encode(rows)
        if len(encoded) <= _LARGEST_RESULT:
            self._waiting[_key(digest, sql)] = (zlib.crc32(encoded), encoded)
            if time.monotonic() - self._written > _SECONDS_BETWEEN_WRITES:
                self.flush()

    def flush(self) -> None:
        """Write what waits."""
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        rows = [(key, checksum, encoded) for key, (checksum, encoded) in waiting.items()]
        if rows:
            self._write("INSERT OR REPLACE INTO gold VALUES (?, ?, ?)", rows)
        self._written = time.monotonic()

    def close(self) -> None:
        """Write what waits and let go of the file."""
        self.flush()
        with self._lock:
            if self._connection is not None and self._owner == os.getpid():
                self._connection.close()
            self._connection = None

    def digest_of(self, path: Path) -> str:
        """A digest of the file's content, read again only when its size, time or inode changed."""
        stamp, settled = _stamp(path)
        location = str(path.resolve())
        rows = self._query("SELECT digest FROM digests WHERE path = ? AND stamp = ?", (location, stamp))
        if rows:
            return str(rows[0][0])
        digest = _content_digest(path)
        if settled:
            self._write("INSERT OR REPLACE INTO digests VALUES (?, ?, ?)", [(location, stamp, digest)])
        return digest

    def _query(self, sql: str, parameters: tuple[object, ...]) -> list[tuple[int, bytes]]:
        with self._lock:
            connection = self._open()
            if connection is None:
                return []
            try:
                return connection.execute(sql, parameters).fetchall()
            except sqlite3.Error as error:
                self._give_up(error)
                return []

    def _write(self, sql: str, rows: Sequence[tuple[object, ...]]) -> None:
        with self._lock:
            connection = self._open()
            if connection is None:
                return
            try:
                with connection:
                    connection.executemany(sql, rows)
            except sqlite3.Error as error:
                self._give_up(error)

    def _open(self) -> sqlite3.Connection | None:
        """The connection of this process; a parent's must not be used, nor closed, after a fork."""
        if self._broken or (self._connection is not None and self._owner == os.getpid()):
            return None if self._broken else self._connection
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self.path.exists() and self.path.stat().st_size > _LARGEST_CACHE:
                self._remove()
            connection = sqlite3.connect(self.path, timeout=5, check_same_thread=False)
        except (OSError, sqlite3.Error):
            self._broken = True
            return None
        self._connection, self._owner = connection, os.getpid()
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = OFF")
            connection.executescript(_SCHEMA)
        except sqlite3.Error as error:
            self._give_up(error)
            return None
        return connection

    def _give_up(self, error: sqlite3.Error) -> None:
        """Go on without the cache; a corrupt file is removed, so that the next run starts a new one."""
        self._broken = True
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if "malformed" in str(error) or "not a database" in str(error) or "no such column" in str(error):
            self._remove()

    def _remove(self) -> None:
        for suffix in ("", "-wal", "-shm"):
            try:
                self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
            except OSError:
                return


def _key(digest: str, sql: str) -> bytes:
    return hashlib.blake2b(f"{_FORMAT}\0{digest}\0{sql}".encode(errors="surrogatepass"), digest_size=16).digest()


def _files(path: Path) -> list[Path]:
    """The database file and, while it is not empty, its write-ahead log."""
    log = path.with_name(path.name + "-wal")
    return [path, log] if log.is_file() and log.stat().st_size else [path]


def _stamp(path: Path) -> tuple[str, bool]:
    """Tell what changes when the file is written, and whether the last write is old enough for that to be sure."""
    states = [file.stat() for file in _files(path)]
    newest = max(state.st_mtime for state in states)
    stamp = " ".join(f"{state.st_size}:{state.st_mtime_ns}:{state.st_ino}" for state in states)
    return stamp, time.time() - newest > _SECONDS_UNTIL_SETTLED


def _content_digest(path: Path) -> str:
    whole = hashlib.blake2b(digest_size=16)
    for file in _files(path):
        with file.open("rb") as stream:
            while block := stream.read(2**20):
                whole.update(block)
    return whole.hexdigest()
