"""A bank that cannot change: studies retrieve from it, and their controls make others of it."""

import hashlib
from collections.abc import Iterable, Sequence

import msgspec

from sqlcrystal.protocols import Bank
from sqlcrystal.types import Card, CardStatus


class FrozenBank:
    """An immutable snapshot of active cards, kept apart by database, each in the order it was banked."""

    def __init__(self, cards: Iterable[Card] = ()) -> None:
        """Keep the active ones of these cards."""
        by_database: dict[str, list[Card]] = {}
        for card in cards:
            if card.status is CardStatus.ACTIVE:
                by_database.setdefault(card.database, []).append(card)
        self._cards = {name: tuple(by_database[name]) for name in sorted(by_database)}

    @classmethod
    def of(cls, bank: Bank) -> "FrozenBank":
        """Take a snapshot of the cards that a bank serves now."""
        return cls(card for database in bank.databases() for card in bank.cards(database))

    def databases(self) -> Sequence[str]:
        """Name every database that has a card."""
        return tuple(self._cards)

    def cards(self, database: str) -> tuple[Card, ...]:
        """Return the cards of one database, in the order they were banked; the same tuple at every call."""
        return self._cards.get(database, ())

    def __len__(self) -> int:
        """Count the cards of all databases."""
        return sum(map(len, self._cards.values()))

    def digest(self) -> str:
        """Name exactly these cards in this order."""
        hasher = hashlib.sha256()
        for cards in self._cards.values():
            for card in cards:
                hasher.update(msgspec.json.encode(card) + b"\n")
        return hasher.hexdigest()
