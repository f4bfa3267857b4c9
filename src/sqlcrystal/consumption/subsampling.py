"""Smaller banks for studies of bank size: fractions that nest, and counts matched to another bank."""

from collections.abc import Mapping
from functools import partial

from sqlcrystal.bank import FrozenBank
from sqlcrystal.consumption.chance import number
from sqlcrystal.errors import ConfigError
from sqlcrystal.protocols import Bank
from sqlcrystal.types import Card


def fraction(bank: Bank, percent: float, *, seed: int) -> FrozenBank:
    """Keep so many percent of each database's cards, rounded down; smaller fractions are part of larger ones."""
    if not 0 <= percent <= 100:
        raise ConfigError(f"bank fraction: must be from 0 to 100 percent, not {percent}")
    sizes = {name: len(bank.cards(name)) for name in bank.databases()}
    counts = {name: int(size * percent / 100) for name, size in sizes.items()}
    return _drawn(bank, counts, ("fraction", seed))


def matched(bank: Bank, counts: Mapping[str, int], *, draw: int, seed: int = 0) -> FrozenBank:
    """As many cards of each database as `counts` says, or all where there are fewer; draws 0, 1, … are independent."""
    return _drawn(bank, counts, ("matched", seed, draw))


def counts_of(bank: Bank) -> dict[str, int]:
    """How many cards each database has: what another bank is matched to."""
    return {name: len(bank.cards(name)) for name in bank.databases()}


def _drawn(bank: Bank, counts: Mapping[str, int], salt: tuple[object, ...]) -> FrozenBank:
    kept: list[Card] = []
    for database in bank.databases():
        cards = bank.cards(database)
        chosen = sorted(cards, key=partial(_lot, salt))[: max(0, counts.get(database, 0))]
        ids = {card.id for card in chosen}
        kept += [card for card in cards if card.id in ids]  # in the order they were banked
    return FrozenBank(kept)


def _lot(salt: tuple[object, ...], card: Card) -> tuple[int, str]:
    # Drawn by question before card, so that banks of different writers keep the same questions.
    return number(*salt, card.database, card.question.id, card.question.text), card.id
