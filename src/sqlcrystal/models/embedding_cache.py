"""Embeddings kept by content, so that no text is embedded twice by one model."""

import hashlib
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sqlcrystal.errors import DataError
from sqlcrystal.protocols import Embedder


class CachedEmbedder:
    """An embedder with its inner one's name and digest; looks in memory, then in one SQLite file if there is one.

    It does not guarantee that two threads never embed the same new text at once; the results are equal.
    """

    def __init__(self, embedder: Embedder, path: Path | None = None) -> None:
        """Wrap an embedder; `path` makes the cache outlive the process."""
        self.name = embedder.name
        self.digest = embedder.digest
        self._embedder = embedder
        self._lock = threading.Lock()
        self._memory: dict[str, NDArray[np.float32]] = {}
        self._disk = _open_cache(path) if path is not None else None

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit row per text, embedding only the texts not met before."""
        keys = [hashlib.sha256(f"{self.digest}\n{text}".encode()).hexdigest() for text in texts]
        with self._lock:
            self._recall(keys)
            missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._memory}
        if missing:
            fresh = self._embedder.embed(list(missing.values()))
            with self._lock:
                self._keep(dict(zip(missing, fresh, strict=True)))
        if not keys:
            return self._embedder.embed([])
        with self._lock:
            return np.stack([self._memory[key] for key in keys])

    def close(self) -> None:
        """Release the file and the embedder behind it."""
        self._embedder.close()
        with self._lock:
            if self._disk is not None:
                self._disk.close()
                self._disk = None

    def _recall(self, keys: Sequence[str]) -> None:
        if self._disk is None:
            return
        for key in set(keys) - self._memory.keys():
            row = self._disk.execute("SELECT vector FROM embedding WHERE key = ?", (key,)).fetchone()
            if row:
                self._memory[key] = np.frombuffer(row[0], dtype="<f4").astype(np.float32)

    def _keep(self, fresh: dict[str, NDArray[np.float32]]) -> None:
        self._memory.update(fresh)
        if self._disk is not None:
            rows = [(key, vector.astype("<f4").tobytes()) for key, vector in fresh.items()]
            with self._disk:
                self._disk.executemany("INSERT OR REPLACE INTO embedding VALUES (?, ?)", rows)


def _open_cache(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, timeout=30.0, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE IF NOT EXISTS embedding (key TEXT PRIMARY KEY, vector BLOB NOT NULL)")
    except sqlite3.DatabaseError as error:
        connection.close()
        raise DataError(f"embedding cache {path}: {error}") from None
    return connection
