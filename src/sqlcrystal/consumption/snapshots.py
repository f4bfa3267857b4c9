"""Indexes, each built once for one snapshot of one database's cards and dropped when the bank changes."""

from collections import deque
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Generic, NamedTuple, TypeVar

from sqlcrystal.types import Card

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
