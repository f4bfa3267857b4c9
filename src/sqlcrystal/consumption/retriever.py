"""The parts that retrievers share: their facts, one index for each snapshot of cards, and from scores to the k best."""

from abc import ABC, abstractmethod
from bisect import bisect
from collections import deque
from collections.abc import Callable, Sequence
from functools import cached_property
from threading import Lock
from typing import ClassVar, Generic, NamedTuple, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from sqlcrystal.errors import ConfigError
from sqlcrystal.protocols import Bank, Embedder
from sqlcrystal.types import Card, CardId, Question, Retrieved

Excluded: TypeAlias = CardId | frozenset[CardId] | None


class Reach(NamedTuple):
    """The embedder, the schemas and the seed of a study or a service; the embedder is opened only when it is asked."""

    embedder: Callable[[], Embedder]
    schema_of: Callable[[str], str]
    seed: int = 0


class NamedRetriever(ABC):
    """A retriever that a study or a team's settings choose by name."""

    name: ClassVar[str]
    summary: ClassVar[str]
    """The cards it brings in a few words, for reports."""
    seeded: ClassVar[bool] = False
    """True if it draws by the seed of its reach, so that each seed needs one of its own."""
    crosses_databases: ClassVar[bool] = False
    """True if it brings cards of other databases: a control for studies, which no service may use."""

    @classmethod
    @abstractmethod
    def of(cls, reach: Reach) -> Self:
        """Make the retriever with what it needs of the reach."""

    @abstractmethod
    def retrieve(self, question: Question, bank: Bank, *, k: int, exclude: Excluded = None) -> Sequence[Retrieved]:
        """Bring at most k cards, best first; ties break by card id; excluded cards never come."""


DECIMALS = 6
"""Scores are rounded to this many places, below what threads and BLAS kernels change, so that equal cards tie."""
MARGIN = 1e-5


def excluded_ids(exclude: Excluded) -> frozenset[CardId]:
    """Make a set of one id, several or none."""
    if exclude is None:
        return frozenset()
    return exclude if isinstance(exclude, frozenset) else frozenset([exclude])


def checked_width(k: int) -> int:
    """Check the retrieval width, refused where it makes no sense."""
    if k < 0:
        raise ConfigError(f"k: must be 0 or more, not {k}")
    return k


class Roster:
    """Cards in the order of their ids: a card's position is its rank among ties."""

    def __init__(self, cards: Sequence[Card]) -> None:
        """Sort the cards once."""
        self.cards = tuple(sorted(cards, key=_id))

    @cached_property
    def position(self) -> dict[CardId, int]:
        """Map each card to its place; most searches never ask."""
        return {card.id: place for place, card in enumerate(self.cards)}

    def with_card(self, card: Card) -> tuple["Roster", int]:
        """Add one card, and tell its place."""
        place = bisect(self.cards, card.id, key=_id)
        longer = Roster(())
        longer.cards = (*self.cards[:place], card, *self.cards[place:])
        return longer, place

    def without(self, scores: NDArray[np.float32], exclude: Excluded) -> NDArray[np.float32]:
        """Sink the scores of excluded cards below all others, in place."""
        for card_id in excluded_ids(exclude):
            if card_id in self.position:
                scores[self.position[card_id]] = -np.inf
        return scores

    def ranked(self, places: NDArray[np.intp], scores: NDArray[np.float64], k: int) -> list[Retrieved]:
        """Rank the k best of these places, ties by card id."""
        rounded = np.round(scores, DECIMALS) + 0.0  # so that -0.0 is 0.0
        best = np.lexsort((places, -rounded))[:k]
        return [Retrieved(self.cards[places[rank]], float(rounded[rank])) for rank in best]


def _id(card: Card) -> CardId:
    return card.id


def contenders(scores: NDArray[np.float32], k: int) -> NDArray[np.intp]:
    """Find the places whose score is, within rounding, among the k highest; excluded ones are never among them."""
    floor = np.float32(-np.inf)
    if 0 < k < len(scores):
        floor = np.partition(scores, len(scores) - k)[len(scores) - k] - np.float32(MARGIN)
    places = np.flatnonzero(scores >= floor)
    return places[scores[places] > -np.inf]


def highest(scores: NDArray[np.float32], k: int) -> NDArray[np.intp]:
    """Find the places of the k highest scores, ties by place, in no order; excluded ones are never among them."""
    if k >= len(scores):
        return np.flatnonzero(scores > -np.inf)
    last = np.partition(scores, len(scores) - k)[len(scores) - k]
    places = np.flatnonzero(scores >= last)
    if len(places) > k:
        above = np.flatnonzero(scores > last)
        places = np.concatenate([above, np.flatnonzero(scores == last)[: k - len(above)]])
    return places[scores[places] > -np.inf]


Index = TypeVar("Index")
Extend = Callable[[Index, tuple[Card, ...]], Index | None]
"""An index with a few cards more; None where it had better be built anew."""

CARDS_KEPT = 250_000
INDEXES_KEPT = 1_000
GENERATIONS = 16
"""Indexes kept of those that grew from each other: a few, for threads that looked at the bank a moment before."""


class _Known(NamedTuple, Generic[Index]):
    """The index of a snapshot, and the addresses of those it grew from and of those that grew from it, oldest first."""

    cards: tuple[Card, ...]
    made: Index
    line: deque[int]


class Snapshots(Generic[Index]):
    """From the cards a bank serves to their index; banks that serve the same tuple again are recognised at once."""

    def __init__(
        self,
        build: Callable[[tuple[Card, ...]], Index],
        *,
        extend: Extend[Index] | None = None,
        cards_kept: int = CARDS_KEPT,
    ) -> None:
        """Keep the indexes used last, together at most so many cards."""
        self._build = build
        self._extend = extend
        self._limit = cards_kept
        self._held = 0
        self._known: dict[int, _Known[Index]] = {}
        self._lock = Lock()

    def index(self, cards: Sequence[Card]) -> Index:
        """Give the index over exactly these cards."""
        with self._lock:
            snapshot = self._recognise(cards)
            # The entry holds the tuple, so its address cannot be reused while it is a key.
            known = self._known.pop(id(snapshot), None)
            if known is None:
                known = self._grow_or_build(snapshot)
                self._held += len(snapshot)
            self._known[id(snapshot)] = known
            self._forget(known.line)
            return known.made

    def _grow_or_build(self, snapshot: tuple[Card, ...]) -> "_Known[Index]":
        """Grown from the index of all but the last cards, which a bank in use has had a moment ago; else built."""
        if self._extend is not None:
            for known, index, line in reversed(self._known.values()):
                if known and len(known) < len(snapshot) and known[-1] is snapshot[len(known) - 1]:
                    # Tuples of the very same cards compare by address, however many they are.
                    extended = self._extend(index, snapshot) if snapshot[: len(known)] == known else None
                    if extended is not None:
                        line.append(id(snapshot))
                        return _Known(snapshot, extended, line)
        return _Known(snapshot, self._build(snapshot), deque([id(snapshot)]))

    def _recognise(self, cards: Sequence[Card]) -> tuple[Card, ...]:
        if isinstance(cards, tuple) and id(cards) in self._known:
            return cards
        snapshot = tuple(cards)
        # Comparing tuples of two sizes card by card would take as long as reading all of them.
        alike = (known for known, _, _ in self._known.values() if len(known) == len(snapshot))
        return next((known for known in alike if known[:1] == snapshot[:1] and known == snapshot), snapshot)

    def _forget(self, line: deque[int]) -> None:
        while len(line) > GENERATIONS:
            self._drop(line.popleft())
        while len(self._known) > 1 and (self._held > self._limit or len(self._known) > INDEXES_KEPT):
            self._drop(next(iter(self._known)))

    def _drop(self, address: int) -> None:
        known = self._known.pop(address, None)
        self._held -= 0 if known is None else len(known.cards)
