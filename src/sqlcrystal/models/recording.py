"""Recordings: every completion a run used, addressed by what was asked, so that the run can be repeated exactly.

The working file is SQLite, so a process killed at any moment loses at most the call in flight; a file that holds
anything else is refused and never changed. The shipped file (`*.jsonl.xz`) holds the same entries sorted and
compressed; it is read whole and never changed in place.
"""

import hashlib
import lzma
import os
import sqlite3
import threading
import zlib
from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Self

import msgspec
from msgspec import Struct

from sqlcrystal.damaged_files import MAX_LINE, Allowance, bounded_lines, inflated, is_whole, unpacked
from sqlcrystal.errors import DataError
from sqlcrystal.protocols import LanguageModel
from sqlcrystal.types import Completion, Message, Sampling

# ── the working file ─────────────────────────────────────────────────────────────────────────────────────────────────

FORMAT = 1
COLUMNS = ("key", "model", "digest", "messages", "sampling", "completion")


def open_to_read(path: Path) -> sqlite3.Connection:
    """Open a connection that cannot write, and that leaves nothing beside a file at rest."""
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
    """Open an old recording, or begin one where there is no file or an empty one."""
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
        whole = is_whole(connection, path)
    except sqlite3.Error as error:
        raise DataError(f"recording {path}: not a recording: {error}") from None
    kinds = {str(row[0]) for row in connection.execute("SELECT type FROM sqlite_master WHERE type != 'index'")}
    if tables and (tables != ["completion"] or kinds != {"table"} or columns != list(COLUMNS)):
        raise DataError(f"recording {path}: not a recording: a database with the tables {', '.join(tables)[:200]}")
    if tables and version != FORMAT:
        raise DataError(f"recording {path}: format {version}; this version reads {FORMAT}")
    if not whole:
        raise DataError(f"recording {path}: is damaged")


# ── the recording ────────────────────────────────────────────────────────────────────────────────────────────────────

SHIPPED_SUFFIX = ".jsonl.xz"
SMALL = 2**28
"""The memory that any recording may take."""
WORKING_RATIO, SHIPPED_RATIO = 20, 200
"""Times its own size that a larger one may take: its prompts repeat each other."""


class RecordedCall(Struct, frozen=True, kw_only=True):
    """One recorded completion with the whole request that led to it."""

    key: str
    model: str
    digest: str
    messages: tuple[Message, ...]
    sampling: Sampling
    completion: Completion

    @classmethod
    def of(
        cls, model: LanguageModel, messages: Sequence[Message], sampling: Sampling, completion: Completion
    ) -> "RecordedCall":
        """Record a request and its reply under its address."""
        return cls(
            key=request_key(model.digest, messages, sampling),
            model=model.name,
            digest=model.digest,
            messages=tuple(messages),
            sampling=sampling,
            completion=completion,
        )


class Stats(Struct, frozen=True, kw_only=True):
    """The share of one model in a recording."""

    model: str
    digest: str
    completions: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float


def request_key(digest: str, messages: Sequence[Message], sampling: Sampling) -> str:
    """Address a completion: sha256 over the model's digest, the messages and the sampling, index included."""
    request = [
        FORMAT,
        digest,
        [[message.role, message.content] for message in messages],
        [float(sampling.temperature), sampling.max_tokens, sampling.index],
    ]
    return hashlib.sha256(msgspec.json.encode(request)).hexdigest()


class Recording:
    """Entries by key; many threads and several processes may use one working file.

    `also` names other recordings that are looked into after this one; entries found there are copied, so the working
    file ends up holding exactly the entries of its run. It does not guarantee the last entry against a power cut, only
    against a crash of the process.
    """

    def __init__(self, path: Path | str, *, also: Sequence["Recording"] = (), read_only: bool = False) -> None:
        """Open or create a working file, or read a shipped one; a file that is something else is left untouched."""
        self.path = Path(path)
        self.shipped = self.path.name.endswith(SHIPPED_SUFFIX)
        self.read_only = read_only or self.shipped
        self._also = tuple(also)
        self._lock = threading.Lock()
        self._entries: dict[str, RecordedCall] = {}
        self._connection: sqlite3.Connection | None = None
        if self.shipped:
            self._entries = {entry.key: entry for entry in _read_shipped(self.path)}
        else:
            self._connection = open_to_read(self.path) if read_only else open_to_write(self.path)

    def get(self, key: str) -> Completion | None:
        """Look up a completion by its key, here or in the recordings looked into also."""
        entry = self.entry(key)
        return entry.completion if entry else None

    def entry(self, key: str) -> RecordedCall | None:
        """Look up the whole entry under a key."""
        entry = self._own(key)
        if entry is not None:
            return entry
        for other in self._also:
            entry = other.entry(key)
            if entry is not None:
                if not self.read_only:
                    self.add([entry])
                return entry
        return None

    def add(self, entries: Iterable[RecordedCall]) -> int:
        """Record entries, a newer one replacing an older of the same key; how many were written."""
        if self._connection is None:
            raise DataError(
                f"recording {self.path}: a shipped recording is never changed; merge it into a working file"
            )
        if self.read_only:
            raise DataError(f"recording {self.path}: opened to be read only")
        rows = [_as_row(entry) for entry in entries]
        try:
            with self._lock, self._connection:
                self._connection.executemany("INSERT OR REPLACE INTO completion VALUES (?, ?, ?, ?, ?, ?)", rows)
        except sqlite3.Error as error:
            raise DataError(f"recording {self.path}: cannot be written: {error}") from None
        return len(rows)

    def entries(self) -> Iterator[RecordedCall]:
        """Read every entry of this file, sorted by model and prompt so that like prompts lie together."""
        entries = list(self._entries.values()) if self._connection is None else self._all(self._connection)
        yield from sorted(entries, key=_shipping_order)

    def keys(self) -> frozenset[str]:
        """List the keys of every entry of this file."""
        if self._connection is None:
            return frozenset(self._entries)
        with self._lock:
            return frozenset(row[0] for row in self._connection.execute("SELECT key FROM completion"))

    def __len__(self) -> int:
        """Count the completions of this file."""
        return len(self.keys())

    def close(self) -> None:
        """Fold the write-ahead log into the one file and release it."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()

    def __enter__(self) -> Self:
        """Use as a context manager."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close at the end of the block."""
        self.close()

    def _all(self, connection: sqlite3.Connection) -> list[RecordedCall]:
        """Unpack every row, one at a time: a small file may be made to hold gigabytes."""
        allowance = _allowance(self.path, WORKING_RATIO)
        entries = []
        try:
            with self._lock:
                for row in connection.execute("SELECT * FROM completion"):
                    entries.append(self._unpacked(row))
                    allowance.take(_weight(entries[-1]))
        except sqlite3.Error as error:
            raise DataError(f"recording {self.path}: cannot be read: {error}") from None
        return entries

    def _own(self, key: str) -> RecordedCall | None:
        if self._connection is None:
            return self._entries.get(key)
        try:
            with self._lock:
                row = self._connection.execute("SELECT * FROM completion WHERE key = ?", (key,)).fetchone()
        except sqlite3.Error as error:
            raise DataError(f"recording {self.path}: cannot be read: {error}") from None
        return self._unpacked(row) if row else None

    def _unpacked(self, row: "_Row") -> RecordedCall:
        """Read a row whose request is the one that its key says."""
        try:
            entry = _from_row(row, name=f"recording {self.path}")
        except (msgspec.MsgspecError, zlib.error, UnicodeDecodeError, RecursionError, TypeError) as error:
            raise DataError(f"recording {self.path}: entry {str(row[0])[:12]} is damaged: {error}") from None
        if entry.key != request_key(entry.digest, entry.messages, entry.sampling):
            raise DataError(f"recording {self.path}: entry {entry.key[:12]} is damaged: its key is of another request")
        return entry


def _weight(entry: RecordedCall) -> int:
    """Estimate the memory that an entry takes: JSON of many empty messages takes a quarter of it."""
    texts = sum(len(message.role) + len(message.content) + 256 for message in entry.messages)
    return 1024 + texts + len(entry.completion.text)


def _allowance(path: Path, ratio: int) -> Allowance:
    """Tell how much a recording may unpack to: a small one so much, a larger one in proportion to its size."""
    return Allowance(name=f"recording {path}", total=max(SMALL, ratio * path.stat().st_size))


def export(recording: Recording, path: Path, *, keep: Container[str] | None = None) -> int:
    """Write the shipped form: the same entries give the same bytes; `keep` prunes to the keys a study used."""
    encoder = msgspec.json.Encoder()
    entries = [entry for entry in recording.entries() if keep is None or entry.key in keep]
    temporary = path.with_name(path.name + ".tmp")
    with lzma.open(temporary, "wb", format=lzma.FORMAT_XZ, check=lzma.CHECK_CRC64, preset=6) as file:
        for entry in entries:
            file.write(encoder.encode(entry) + b"\n")
    os.replace(temporary, path)
    return len(entries)


def merge(sources: Iterable[Recording], target: Recording) -> int:
    """Add the entries of every source to a working file; on a shared key the later source wins."""
    return sum(target.add(source.entries()) for source in sources)


def prune(recording: Recording, keep: Container[str], path: Path) -> int:
    """Write the entries under the kept keys to a new file, shipped or working by its suffix; how many."""
    if path.exists():
        raise DataError(f"recording {path}: exists already")
    if path.name.endswith(SHIPPED_SUFFIX):
        return export(recording, path, keep=keep)
    with Recording(path) as target:
        return target.add(entry for entry in recording.entries() if entry.key in keep)


def stats(recording: Recording) -> list[Stats]:
    """Counts by model, in the order of their names."""
    groups: dict[tuple[str, str], list[Completion]] = {}
    for entry in recording.entries():
        groups.setdefault((entry.model, entry.digest), []).append(entry.completion)
    return [
        Stats(
            model=model,
            digest=digest,
            completions=len(completions),
            prompt_tokens=sum(completion.prompt_tokens for completion in completions),
            completion_tokens=sum(completion.completion_tokens for completion in completions),
            seconds=sum(completion.seconds for completion in completions),
        )
        for (model, digest), completions in sorted(groups.items())
    ]


def _shipping_order(entry: RecordedCall) -> tuple[object, ...]:
    messages = tuple((message.role, message.content) for message in entry.messages)
    sampling = entry.sampling
    return (entry.model, entry.digest, messages, sampling.index, sampling.temperature, sampling.max_tokens)


def _read_shipped(path: Path) -> Iterator[RecordedCall]:
    decoder = msgspec.json.Decoder(RecordedCall)
    try:
        allowance = _allowance(path, SHIPPED_RATIO)
        with path.open("rb") as stream:
            for line in bounded_lines(unpacked(stream), name=f"recording {path}"):
                entry = decoder.decode(line)
                allowance.take(_weight(entry))
                yield entry
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise DataError(f"recording {path}: cannot be read: {error}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"recording {path}: not a recording: {error}") from None


_Row = tuple[str, str, str, bytes, bytes, bytes]


def _as_row(entry: RecordedCall) -> _Row:
    encode = msgspec.json.encode
    return (
        entry.key,
        entry.model,
        entry.digest,
        zlib.compress(encode(entry.messages)),
        encode(entry.sampling),
        encode(entry.completion),
    )


def _from_row(row: _Row, *, name: str) -> RecordedCall:
    decode = msgspec.json.decode
    return RecordedCall(
        key=row[0],
        model=row[1],
        digest=row[2],
        messages=decode(inflated(row[3], name=name), type=tuple[Message, ...]),
        sampling=decode(row[4], type=Sampling),
        completion=decode(row[5], type=Completion),
    )
