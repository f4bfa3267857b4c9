"""The correspondence control: the same cards, each with the SQL of another question of its database."""

from collections import Counter
from collections.abc import Callable, Sequence

import msgspec
from msgspec import Struct

from sqlcrystal.bank import FrozenBank
from sqlcrystal.consumption.chance import number
from sqlcrystal.consumption.selection import Excluded
from sqlcrystal.protocols import Bank, Retriever
from sqlcrystal.types import Card, CardId, Question, Retrieved

Render = Callable[[str, str], str]
"""How the bank's writer renders a question's text and a SQL."""


class KeptPair(Struct, frozen=True, kw_only=True):
    """A card that had to keep its own SQL, and why no arrangement could spare it."""

    card: CardId
    database: str
    reason: str


class Mispairing(Struct, frozen=True, kw_only=True):
    """The mispaired bank, whose SQL each card was given, and what could not be mispaired."""

    bank: FrozenBank
    donors: dict[CardId, CardId]
    kept: tuple[KeptPair, ...]


def mispair(bank: Bank, *, seed: int, render: Render, count_tokens: Callable[[str], int] | None = None) -> Mispairing:
    """Derange the SQL within each database, and render each card again with its question and the other's SQL.

    Ids, questions, order, provenance, count and the multiset of SQL stay as they are, so a retriever that looks at
    questions returns the same cards with the same scores; for one that looks at content, use `Mispaired`. A card keeps
    its own SQL only if duplicates make that unavoidable, and then as few cards as possible. Without `count_tokens` a
    card keeps the token count it had.
    """
    cards: list[Card] = []
    kept: list[KeptPair] = []
    donors: dict[CardId, CardId] = {}
    for database in bank.databases():
        own = bank.cards(database)
        for card, donor in zip(own, (own[place] for place in derangement(own, seed=seed)), strict=True):
            text = render(card.question.text, donor.sql)
            tokens = count_tokens(text) if count_tokens else card.tokens
            cards.append(msgspec.structs.replace(card, sql=donor.sql, text=text, tokens=tokens))
            donors[card.id] = donor.id
            if donor.sql == card.sql:
                kept.append(KeptPair(card=card.id, database=database, reason=_reason(card, own)))
    return Mispairing(bank=FrozenBank(cards), donors=donors, kept=tuple(kept))


def derangement(cards: Sequence[Card], *, seed: int) -> list[int]:
    """For each card the place of the card whose SQL it gets, with as few cards as possible keeping their own.

    Cards with the same SQL are laid side by side, groups and members in a seeded order, and every card takes the SQL
    that lies as far ahead as the largest group is long: it leaves its own group unless that group holds more than half
    of all cards, and then only max(0, 2 · largest - n) cards keep theirs, which no arrangement can better.
    """
    if not cards:
        return []
    shared = Counter(card.sql for card in cards)
    step = max(shared.values())

    def lot(place: int) -> tuple[int, str, int, CardId]:
        card = cards[place]
        group = number("group", seed, card.database, card.sql)
        return group, card.sql, number("member", seed, card.database, card.question.id, card.id), card.id

    laid = sorted(range(len(cards)), key=lot)
    donor = [0] * len(cards)
    for at, place in enumerate(laid):
        donor[place] = laid[(at + step) % len(laid)]
    return donor


class Mispaired:
    """Retrieves from the aligned bank and hands out the mispaired twins: equal order and scores for any retriever."""

    def __init__(self, retriever: Retriever, mispairing: Mispairing) -> None:
        """Swap each card that the retriever finds for its twin."""
        self._retriever = retriever
        bank = mispairing.bank
        self._twins = {card.id: card for database in bank.databases() for card in bank.cards(database)}

    def retrieve(self, question: Question, bank: Bank, *, k: int, exclude: Excluded = None) -> Sequence[Retrieved]:
        """What the aligned bank gives, with the other SQL; `bank` is the aligned one."""
        neighbours = self._retriever.retrieve(question, bank, k=k, exclude=exclude)
        return [Retrieved(self._twins[retrieved.card.id], retrieved.score) for retrieved in neighbours]


def _reason(card: Card, cards: Sequence[Card]) -> str:
    if len(cards) == 1:
        return "it is the only card of its database"
    same = sum(other.sql == card.sql for other in cards)
    return f"{same} of the database's {len(cards)} cards have this SQL, more than half"
