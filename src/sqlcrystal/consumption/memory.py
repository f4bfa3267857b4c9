"""Memory as a question meets it: a bank, how it is searched, how many cards come, and in which order they stand."""

from collections.abc import Sequence
from typing import Literal

from sqlcrystal.protocols import Bank, Retriever
from sqlcrystal.types import Card, CardId, Question, Retrieved

CardOrder = Literal["rank", "stable"]


def own_cards(question: Question, bank: Bank) -> frozenset[CardId]:
    """Find every card that came from this very question, which retention must not show it again."""
    return frozenset(card.id for card in bank.cards(question.database) if card.question.id == question.id)


class BankMemory:
    """The k best cards of a bank; a question sees cards that came from itself only if `own` allows it."""

    def __init__(
        self, bank: Bank, retriever: Retriever, *, k: int, order: CardOrder = "rank", own: bool = False
    ) -> None:
        self.bank = bank
        self.retriever = retriever
        self.k = k
        self.order = order
        self.own = own

    def recall(self, question: Question) -> tuple[Retrieved, ...]:
        """Bring at most k cards, best first."""
        exclude = None if self.own else own_cards(question, self.bank)
        return tuple(self.retriever.retrieve(question, self.bank, k=self.k, exclude=exclude))

    def arrange(self, retrieved: Sequence[Retrieved]) -> list[Card]:
        """Order by rank; or by question id, so that the prompts of a database share a prefix for a cache."""
        cards = [neighbour.card for neighbour in retrieved]
        if self.order == "rank":
            return cards
        return sorted(cards, key=lambda card: (card.question.database, card.question.id))


class NoMemory:
    """The memory of a question that is asked without any."""

    def recall(self, question: Question) -> tuple[Retrieved, ...]:  # noqa: ARG002
        """Bring no card."""
        return ()

    def arrange(self, retrieved: Sequence[Retrieved]) -> list[Card]:  # noqa: ARG002
        """Show no card."""
        return []
