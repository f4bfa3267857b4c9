"""Vectors by content: a text is embedded once, whoever asks again."""

from collections.abc import Sequence
from functools import cached_property
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from sqlcrystal.protocols import Embedder

BATCH = 1024
REMEMBERED = 400_000


class Vectors:
    """An embedder that remembers what it embedded; for this process only, nothing is written to disk."""

    def __init__(self, embedder: Embedder, *, remembered: int = REMEMBERED) -> None:
        """Remember at most so many texts, the newest ones."""
        self.name = embedder.name
        self._embedder = embedder
        self._limit = remembered
        self._rows: dict[str, NDArray[np.float32]] = {}
        self._lock = Lock()

    @cached_property
    def digest(self) -> str:
        """The embedder's digest."""
        return self._embedder.digest

    @classmethod
    def of(cls, embedder: Embedder) -> "Vectors":
        """The embedder itself if it remembers already, so that retrievers can share one memory."""
        return embedder if isinstance(embedder, cls) else cls(embedder)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One L2-normalised row per text."""
        with self._lock:
            known = {text: self._rows.get(text) for text in texts}
        # Embedding happens outside the lock: threads that ask different questions of a remote model must not queue.
        missing = [text for text, row in known.items() if row is None]
        for start in range(0, len(missing), BATCH):
            batch = missing[start : start + BATCH]
            known.update(zip(batch, np.asarray(self._embedder.embed(batch), dtype=np.float32), strict=True))
        with self._lock:
            self._rows.update((text, row) for text in missing if (row := known[text]) is not None)
            while len(self._rows) > self._limit:
                del self._rows[next(iter(self._rows))]
        return np.array([known[text] for text in texts], dtype=np.float32)

    def close(self) -> None:
        """Close the embedder; what was embedded stays known."""
        self._embedder.close()
