"""The controls that tell why cards help: chance, no cards, smaller banks, other databases, another question's SQL."""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import ClassVar, Self

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from sqlcrystal.bank import FrozenBank
from sqlcrystal.consumption.dense import Dense, Vectors
from sqlcrystal.consumption.retriever import Excluded, NamedRetriever, Reach, Roster, Snapshots, checked_width, highest
from sqlcrystal.errors import ConfigError
from sqlcrystal.protocols import Bank, Embedder, Retriever
from sqlcrystal.types import Card, CardId, Question, Retrieved


def number(*parts: object) -> int:
    """Draw 64 bits that depend on these parts alone, in every process and version of Python."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big")


class ChanceIndex:
    """A fixed number per card, to be mixed with a question's."""

    def __init__(self, cards: Sequence[Card]) -> None:
        """Number the cards by their questions, so that banks of different writers draw the same ones."""
        self.roster = Roster(cards)
        numbers = [number(card.question.id, card.question.text) for card in self.roster.cards]
        self.numbers = np.array(numbers, dtype=np.uint64)


class Random(NamedRetriever):
    """Same database, at random: the draw depends on the seed, the question and the cards, and on nothing else."""

    name: ClassVar[str] = "random"
    summary: ClassVar[str] = "random cards, same database"
    seeded: ClassVar[bool] = True

    def __init__(self, *, seed: int) -> None:
        """Draw by this seed."""
        self._seed = seed
        self._snapshots = Snapshots(ChanceIndex)

    @classmethod
    def of(cls, reach: Reach) -> Self:
        """Make the retriever with the seed."""
        return cls(seed=reach.seed)

    def retrieve(self, question: Question, bank: Bank, *, k: int, exclude: Excluded = None) -> Sequence[Retrieved]:
        """Draw at most k cards of the question's database; the score is the lot each card drew, in [0, 1)."""
        cards = bank.cards(question.database)
        if not checked_width(k) or not cards:
            return []
        index = self._snapshots.index(cards)
        lots = _lots(index.numbers, number(self._seed, question.database, question.id, question.text))
        places = highest(index.roster.without(lots, exclude), k)
        return index.roster.ranked(places, lots[places].astype(np.float64), k)


class Nothing(NamedRetriever):
    """No memory: the arm every other one is measured against."""

    name: ClassVar[str] = "none"
    summary: ClassVar[str] = "no cards"

    @classmethod
    def of(cls, reach: Reach) -> Self:  # noqa: ARG003
        """Make the retriever, which needs nothing."""
        return cls()

    def retrieve(self, question: Question, bank: Bank, *, k: int, exclude: Excluded = None) -> Sequence[Retrieved]:  # noqa: ARG002
        """Bring no cards."""
        checked_width(k)
        return ()


def _lots(numbers: NDArray[np.uint64], salt: int) -> NDArray[np.float32]:
    # SplitMix64's finaliser: integer arithmetic modulo 2^64, hence the same on every machine and version of numpy.
    mixed = numbers ^ np.uint64(salt)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return (mixed >> np.uint64(40)).astype(np.float32) / np.float32(1 << 24)


def fraction(bank: Bank, percent: float, *, seed: int) -> FrozenBank:
    """Keep so many percent of each database's cards, rounded down; smaller fractions are part of larger ones."""
    if not 0 <= percent <= 100:
        raise ConfigError(f"bank fraction: must be from 0 to 100 percent, not {percent}")
    sizes = {name: len(bank.cards(name)) for name in bank.databases()}
    counts = {name: int(size * percent / 100) for name, size in sizes.items()}
    return _drawn(bank, counts, ("fraction", seed))


def matched(bank: Bank, counts: Mapping[str, int], *, draw: int, seed: int = 0) -> FrozenBank:
    """Keep as many cards of each database as `counts` says, or all where there are fewer; draws are independent."""
    return _drawn(bank, counts, ("matched", seed, draw))


def counts_of(bank: Bank) -> dict[str, int]:
    """Count the cards of each database, for another bank to be matched to."""
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


Render = Callable[[str, str], str]
"""The bank's writer: from a question's text and a SQL to a card's text."""


class KeptPair(Struct, frozen=True, kw_only=True):
    """A card that had to keep its own SQL, and why no arrangement could spare it."""

    card: CardId
    database: str
    reason: str


class Mispairing(Struct, frozen=True, kw_only=True):
    """The mispaired bank, the card whose SQL each one was given, and those that could not be mispaired."""

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
    """Place for each card the one whose SQL it gets, with as few cards as possible keeping their own.

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
        """Bring what the aligned bank gives, with the other SQL; `bank` is the aligned one."""
        neighbours = self._retriever.retrieve(question, bank, k=k, exclude=exclude)
        return [Retrieved(self._twins[retrieved.card.id], retrieved.score) for retrieved in neighbours]


def _reason(card: Card, cards: Sequence[Card]) -> str:
    if len(cards) == 1:
        return "it is the only card of its database"
    same = sum(other.sql == card.sql for other in cards)
    return f"{same} of the database's {len(cards)} cards have this SQL, more than half"


class Foreign(NamedRetriever):
    """Every database but the question's own, pooled and ranked by the cosine of question to question."""

    name: ClassVar[str] = "foreign"
    summary: ClassVar[str] = "cards of other databases"
    crosses_databases: ClassVar[bool] = True

    def __init__(self, embedder: Embedder) -> None:
        """Search each database by its own index, and merge."""
        self._dense = Dense(embedder)

    @classmethod
    def of(cls, reach: Reach) -> Self:
        """Make the retriever over the embedder."""
        return cls(reach.embedder())

    def retrieve(self, question: Question, bank: Bank, *, k: int, exclude: Excluded = None) -> Sequence[Retrieved]:
        """Bring at most k cards of the other databases, nearest first."""
        neighbours: list[Retrieved] = []
        for database in bank.databases():
            if database != question.database:
                neighbours += self._dense.retrieve_from(database, question, bank, k=k, exclude=exclude)
        neighbours.sort(key=lambda retrieved: (-retrieved.score, retrieved.card.id))
        return neighbours[: checked_width(k)]


class SchemaSimilar(NamedRetriever):
    """The one other database whose schema is nearest by the cosine of its DDL, ranked by question to question."""

    name: ClassVar[str] = "schema-similar"
    summary: ClassVar[str] = "cards of the database with the most similar schema"
    crosses_databases: ClassVar[bool] = True

    def __init__(self, embedder: Embedder, schema_of: Callable[[str], str]) -> None:
        """Compare schemas by their DDL, which `schema_of` gives for the name of a database."""
        self._vectors = Vectors.of(embedder)
        self._dense = Dense(self._vectors)
        self._schema_of = schema_of

    @classmethod
    def of(cls, reach: Reach) -> Self:
        """Make the retriever over the embedder and the schemas."""
        return cls(reach.embedder(), reach.schema_of)

    def neighbour(self, database: str, bank: Bank) -> tuple[str, float] | None:
        """Find the nearest other database that has cards, and the cosine; ties go to the first name."""
        others = sorted(name for name in bank.databases() if name != database)
        if not others:
            return None
        own, *rest = self._vectors.embed([self._schema_of(name) for name in (database, *others)]).astype(float)
        cosines = [round(float(row @ own), 6) for row in rest]
        best = max(range(len(others)), key=lambda place: (cosines[place], -place))
        return others[best], cosines[best]

    def retrieve(self, question: Question, bank: Bank, *, k: int, exclude: Excluded = None) -> Sequence[Retrieved]:
        """Bring at most k cards of the nearest other database, nearest question first."""
        nearest = self.neighbour(question.database, bank)
        if not checked_width(k) or nearest is None:
            return []
        return self._dense.retrieve_from(nearest[0], question, bank, k=k, exclude=exclude)
