"""Retrieval that does not look at the question's words: a seeded draw, and nothing at all."""

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sqlcrystal.consumption.selection import Excluded, Roster, checked_width, highest
from sqlcrystal.consumption.snapshots import Snapshots
from sqlcrystal.protocols import Bank
from sqlcrystal.types import Card, Question, Retrieved


def number(*parts: object) -> int:
    """64 bits that depend on these parts alone, in every process and version of Python."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big")


class ChanceIndex:
    """A fixed number per card, to be mixed with a question's."""

    def __init__(self, cards: Sequence[Card]) -> None:
        """Number the cards by their questions, so that banks of different writers draw the same ones."""
        self.roster = Roster(cards)
        numbers = [number(card.question.id, card.question.text) for card in self.roster.cards]
        self.numbers = np.array(numbers, dtype=np.uint64)


class Random:
    """Same database, at random: the draw depends on the seed, the question and the cards, and on nothing else."""

    def __init__(self, *, seed: int) -> None:
        """Draw by this seed."""
        self._seed = seed
        self._snapshots = Snapshots(ChanceIndex)

    def retrieve(self, question: Question, bank: Bank, *, k: int, exclude: Excluded = None) -> Sequence[Retrieved]:
        """At most k cards of the question's database; the score is the lot each card drew, in [0, 1)."""
        cards = bank.cards(question.database)
        if not checked_width(k) or not cards:
            return []
        index = self._snapshots.index(cards)
        lots = _lots(index.numbers, number(self._seed, question.database, question.id, question.text))
        places = highest(index.roster.without(lots, exclude), k)
        return index.roster.ranked(places, lots[places].astype(np.float64), k)


class Nothing:
    """No memory: the arm every other one is measured against."""

    def retrieve(self, question: Question, bank: Bank, *, k: int, exclude: Excluded = None) -> Sequence[Retrieved]:  # noqa: ARG002
        """No cards, whatever is asked."""
        checked_width(k)
        return ()


def _lots(numbers: NDArray[np.uint64], salt: int) -> NDArray[np.float32]:
    # SplitMix64's finaliser: integer arithmetic modulo 2^64, hence the same on every machine and version of numpy.
    mixed = numbers ^ np.uint64(salt)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return (mixed >> np.uint64(40)).astype(np.float32) / np.float32(1 << 24)
