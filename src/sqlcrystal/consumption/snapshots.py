"""Indexes, each built once for one snapshot of one database's cards and dropped when the bank changes."""

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Generic, TypeVar

from sqlcrystal.types import Card

Index = TypeVar("Index")

CARDS_KEPT = 250_000


class Snapshots(Generic[Index]):
    """From the cards a bank serves to their index; banks that serve the same tuple again are recognised at once."""

    def __init__(self, build: Callable[[tuple[Card, ...]], Index], *, cards_kept: int = CARDS_KEPT) -> None:
        """Keep the indexes used last, together at most so many cards."""
        self._build = build
        self._limit = cards_kept
        self._known: dict[int, tuple[tuple[Card, ...], Index]] = {}
        self._lock = Lock()

    def index(self, cards: Sequence[Card]) -> Index:
        """The index over exactly these cards."""
        with self._lock:
            snapshot = self._recognise(cards)
            # The entry holds the tuple, so its address cannot be reused while it is a key.
            known = self._known.pop(id(snapshot), None) or (snapshot, self._build(snapshot))
            self._known[id(snapshot)] = known
            self._forget()
            return known[1]

    def _recognise(self, cards: Sequence[Card]) -> tuple[Card, ...]:
        if isinstance(cards, tuple) and id(cards) in self._known:
            return cards
        snapshot = tuple(cards)
        return next((known for known, _ in self._known.values() if known == snapshot), snapshot)

    def _forget(self) -> None:
        held = sum(len(cards) for cards, _ in self._known.values())
        for address in list(self._known)[:-1]:
            if held <= self._limit:
                return
            held -= len(self._known.pop(address)[0])
