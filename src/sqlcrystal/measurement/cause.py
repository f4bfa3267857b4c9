"""Card-level cause: which card of a window fixed or broke an answer, from answers given without one card at a time."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Protocol

from msgspec import Struct

from sqlcrystal.types import CardId


class LeftOut(Protocol):
    """An answer given without one card of its window; its `first_right` is the verdict with the whole window."""

    @property
    def seed(self) -> int: ...
    @property
    def question(self) -> str: ...
    @property
    def right(self) -> bool: ...
    @property
    def first_right(self) -> bool: ...
    @property
    def without(self) -> CardId: ...


class FlipCause(Struct, frozen=True, kw_only=True):
    """An answer that memory fixed or broke, and those cards of its window without which it would not have."""

    seed: int
    question: str
    verdict: str
    window: tuple[CardId, ...]
    causes: tuple[CardId, ...]
    """Cards whose absence alone takes the change back; none where only several together made it."""


class CardCause(Struct, frozen=True, kw_only=True):
    """How often a card stood in the window of a change, and how often it was a cause of it."""

    in_fixes: int
    in_breaks: int
    fixed: int
    broke: int


def flip_causes(rows: Iterable[LeftOut]) -> tuple[FlipCause, ...]:
    """Gather the answers of each change: a fix that is gone without a card, or a break, is that card's."""
    grouped: defaultdict[tuple[int, str], list[LeftOut]] = defaultdict(list)
    for row in rows:
        grouped[row.seed, row.question].append(row)
    return tuple(
        FlipCause(
            seed=seed,
            question=question,
            verdict="fix" if answers[0].first_right else "break",
            window=tuple(answer.without for answer in answers),
            causes=tuple(answer.without for answer in answers if answer.right != answer.first_right),
        )
        for (seed, question), answers in grouped.items()
    )


def card_effects(causes: Iterable[FlipCause]) -> dict[CardId, CardCause]:
    """Count for every card the changes it stood beside, and those that it made."""
    beside: Counter[tuple[CardId, str]] = Counter()
    made: Counter[tuple[CardId, str]] = Counter()
    for flip in causes:
        beside.update((card, flip.verdict) for card in flip.window)
        made.update((card, flip.verdict) for card in flip.causes)
    return {
        card: CardCause(
            in_fixes=beside[card, "fix"],
            in_breaks=beside[card, "break"],
            fixed=made[card, "fix"],
            broke=made[card, "break"],
        )
        for card in dict.fromkeys(card for card, _ in beside)
    }


def harmful(rows: Iterable[LeftOut]) -> frozenset[CardId]:
    """Name the cards that broke more answers than they fixed."""
    return frozenset(card for card, effect in card_effects(flip_causes(rows)).items() if effect.broke > effect.fixed)
