"""Retrieval by the cosine of embeddings: question to question, question to payload, and with diversity."""

from collections.abc import Callable, Sequence
from functools import cached_property
from threading import Lock
from typing import ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from sqlcrystal.consumption.retriever import (
    Excluded,
    NamedRetriever,
    Reach,
    Roster,
    Snapshots,
    checked_width,
    contenders,
)
from sqlcrystal.protocols import Bank, Embedder
from sqlcrystal.types import Card, Question, Retrieved

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
        """Give the embedder's digest."""
        return self._embedder.digest

    @classmethod
    def of(cls, embedder: Embedder) -> "Vectors":
        """Take the embedder itself if it remembers already, so that retrievers can share one memory."""
        return embedder if isinstance(embedder, cls) else cls(embedder)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed each text as one L2-normalised row."""
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
        """Close the embedder; vectors that are known stay so."""
        self._embedder.close()


Number = TypeVar("Number", np.float32, np.float64)

MOST_ADDED = 64
SMALL = 4_000_000
"""Numbers in a matrix that one core multiplies within a millisecond."""


def by_question(card: Card) -> str:
    """Give the paper's key: the question of the card."""
    return card.question.text


def by_payload(card: Card) -> str:
    """Give the payload-aware key: the question and the text of the card."""
    return f"{card.question.text}\n{card.text}"


class Keys:
    """The vectors of distinct keys, a row each, with room for more; indexes that grew from each other share one."""

    def __init__(self, keys: Sequence[str], vectors: Vectors) -> None:
        """Embed every key."""
        self._vectors = vectors
        self._row_of: dict[str, int] = {key: row for row, key in enumerate(keys)}
        # Column-major: BLAS then adds up whole columns, which takes half the time of a dot product per row.
        self._rows = np.asfortranarray(vectors.embed(keys))

    def __len__(self) -> int:
        """Count the rows in use."""
        return len(self._row_of)

    def matrix(self) -> NDArray[np.float32]:
        """Give the rows in use; rows added later are not among them."""
        return self._rows[: len(self._row_of)]

    def row(self, key: str) -> int:
        """Find the row of a key, which is added if it is new; rows that are there already never change."""
        if key not in self._row_of:
            (vector,) = self._vectors.embed([key])
            used, room = len(self._row_of), len(self._rows)
            if used == room:
                grown = np.zeros((room + room // 2 + 64, self._rows.shape[1]), dtype=np.float32, order="F")
                grown[:used] = self._rows
                self._rows = grown
            self._rows[used] = vector
            self._row_of[key] = used
        return self._row_of[key]


class DenseIndex:
    """Exact cosine search over one snapshot; cards with the same key share one row, so they score the same."""

    def __init__(self, cards: Sequence[Card], key: Callable[[Card], str], vectors: Vectors) -> None:
        """Embed every distinct key."""
        self._key = key
        self.roster = Roster(cards)
        texts = [key(card) for card in self.roster.cards]
        rows = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        self.row_of = np.array([rows[text] for text in texts], dtype=np.intp)
        self._keys = Keys(list(rows), vectors)
        self.matrix = self._keys.matrix()

    def extended(self, cards: Sequence[Card]) -> "DenseIndex | None":
        """Add a few cards, which takes no longer for a large bank; None where the index has to be rebuilt."""
        added = cards[len(self.roster.cards) :]
        # Another index has grown from this one already: its rows are not ours.
        if len(added) > MOST_ADDED or len(self._keys) != len(self.matrix):
            return None
        longer = DenseIndex.__new__(DenseIndex)
        longer._key, longer._keys, longer.roster, longer.row_of = self._key, self._keys, self.roster, self.row_of
        for card in added:
            longer.roster, place = longer.roster.with_card(card)
            longer.row_of = np.insert(longer.row_of, place, self._keys.row(self._key(card)))
        longer.matrix = self._keys.matrix()
        return longer

    def search(self, query: NDArray[np.float32], k: int, exclude: Excluded) -> list[Retrieved]:
        """Find the k nearest cards."""
        places = self.nearest(query, k, exclude)
        return self.roster.ranked(places, self.cosines(places, query), k)

    def nearest(self, query: NDArray[np.float32], k: int, exclude: Excluded) -> NDArray[np.intp]:
        """Find the places of the k nearest cards and of those that tie with the last of them, in no order."""
        if not self.roster.cards or k == 0:
            return np.zeros(0, dtype=np.intp)
        scores = _dots(self.matrix, query)
        scores = scores[self.row_of]
        return contenders(self.roster.without(scores, exclude), k)

    def cosines(self, places: NDArray[np.intp], query: NDArray[np.float32]) -> NDArray[np.float64]:
        """Compute cosines of a few places in double precision, which settles what float32 kernels leave uncertain."""
        rows, back = np.unique(self.row_of[places], return_inverse=True)
        return _dots(self.matrix[rows].astype(np.float64), query.astype(np.float64))[back]


def _dots(matrix: NDArray[Number], vector: NDArray[Number]) -> NDArray[Number]:
    # BLAS would share even a small product among its threads, and wait tens of milliseconds for one to be scheduled
    # while a local model keeps every core busy.
    if matrix.size <= SMALL:
        products: NDArray[Number] = np.einsum("ij,j->i", matrix, vector)
        return products
    return matrix @ vector


class Dense(NamedRetriever):
    """Same database, nearest questions first: cosine of question to question."""

    name: ClassVar[str] = "dense"
    summary: ClassVar[str] = "cards nearest in meaning, same database"
    key = staticmethod(by_question)

    def __init__(self, embedder: Embedder) -> None:
        """Share vectors with every retriever that was given the same `Vectors`."""
        self._vectors = Vectors.of(embedder)
        self._snapshots = Snapshots(
            lambda cards: DenseIndex(cards, self.key, self._vectors), extend=lambda index, cards: index.extended(cards)
        )

    @classmethod
    def of(cls, reach: Reach) -> Self:
        """Make the retriever over the embedder."""
        return cls(reach.embedder())

    def retrieve(self, question: Question, bank: Bank, *, k: int, exclude: Excluded = None) -> Sequence[Retrieved]:
        """Bring at most k cards of the question's database, nearest first."""
        return self.retrieve_from(question.database, question, bank, k=k, exclude=exclude)

    def retrieve_from(
        self, database: str, question: Question, bank: Bank, *, k: int, exclude: Excluded = None
    ) -> list[Retrieved]:
        """Bring at most k cards of a named database, for the controls that cross databases."""
        cards = bank.cards(database)
        if not checked_width(k) or not cards:
            return []
        return self._search(self._snapshots.index(cards), self._vectors.embed([question.text])[0], k, exclude)

    def _search(self, index: DenseIndex, query: NDArray[np.float32], k: int, exclude: Excluded) -> list[Retrieved]:
        return index.search(query, k, exclude)


class Payload(Dense):
    """Same database, by a key that holds the card's content beside its question."""

    name: ClassVar[str] = "payload"
    summary: ClassVar[str] = "cards whose payload matches, too"
    key = staticmethod(by_payload)


class Mmr(Dense):
    """Same database, maximal marginal relevance: near the question and far from what is already chosen.

    Each step takes the card with the highest balance · cos(question, card) - (1 - balance) · max(0, the highest cosine
    to a chosen card), which is the card's score; cards beyond the `pool` nearest are not considered.
    """

    name: ClassVar[str] = "mmr"
    summary: ClassVar[str] = "near cards that differ from each other"

    def __init__(self, embedder: Embedder, *, balance: float = 0.5, pool: int = 50) -> None:
        """Weigh relevance by `balance` in [0, 1], and choose among the `pool` nearest (at least 4 k)."""
        super().__init__(embedder)
        self._balance = balance
        self._pool = pool

    def _search(self, index: DenseIndex, query: NDArray[np.float32], k: int, exclude: Excluded) -> list[Retrieved]:
        width = max(self._pool, 4 * k)
        near = index.search(query, width, exclude)
        places = np.array([index.roster.position[neighbour.card.id] for neighbour in near], dtype=np.intp)
        rows = index.matrix[index.row_of[places]].astype(np.float64)
        relevance = self._balance * np.array([neighbour.score for neighbour in near])
        redundancy = np.zeros(len(near))
        left = np.ones(len(near), dtype=bool)
        chosen: list[Retrieved] = []
        while len(chosen) < k and left.any():
            marginal = np.where(left, relevance - (1 - self._balance) * redundancy, -np.inf)
            (best,) = index.roster.ranked(places[left], marginal[left], 1)
            at = int(np.flatnonzero(places == index.roster.position[best.card.id])[0])
            left[at] = False
            chosen.append(best)
            redundancy = np.maximum(redundancy, _dots(rows, rows[at]))
        return chosen
