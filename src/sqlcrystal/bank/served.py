"""The cards in memory: one tuple per database, the longest unused ones let go when they outgrow the budget."""

from threading import Lock

from sqlcrystal.types import Card

MEMORY = 512 * 2**20
"""Bytes of card documents kept decoded; a decoded card takes about as much again."""


class Served:
    """The last snapshot of each database by its revision, together within a budget of document bytes."""

    def __init__(self, *, budget: int = MEMORY) -> None:
        """Keep at most so many bytes, and always the snapshot used last."""
        self._budget = budget
        self._held = 0
        self._known: dict[str, tuple[int, int, tuple[Card, ...]]] = {}
        self._lock = Lock()

    def recall(self, database: str, revision: int) -> tuple[Card, ...] | None:
        """The cards of that revision, if they are still here."""
        with self._lock:
            known = self._known.get(database)
            if known is None or known[0] != revision:
                return None
            self._known[database] = self._known.pop(database)  # used last
            return known[2]

    def keep(self, database: str, revision: int, size: int, cards: tuple[Card, ...]) -> tuple[Card, ...]:
        """Remember a snapshot; of two threads that loaded the same revision, the first one's tuple is everybody's."""
        with self._lock:
            known = self._known.pop(database, None)
            if known is not None:
                self._held -= known[1]
                if known[0] == revision:
                    revision, size, cards = known
            self._known[database] = (revision, size, cards)
            self._held += size
            for longest_unused in list(self._known)[:-1]:
                if self._held <= self._budget:
                    break
                self._held -= self._known.pop(longest_unused)[1]
            return cards
