"""Windows of cards: how far two arms differ in them, and how broadly a bank is used. Co-occurrence, not causes."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from statistics import median
from typing import Protocol

import numpy as np
from msgspec import Struct

from sqlcrystal.measurement.collecting import Share
from sqlcrystal.measurement.flips import Answered, Pair
from sqlcrystal.types import CardId


class Paired(Protocol):
    """A card: whose question it shows, and with which SQL."""

    @property
    def seed(self) -> int: ...
    @property
    def database(self) -> str: ...
    @property
    def question_id(self) -> str: ...
    @property
    def sql(self) -> str: ...


def unmoved(aligned: Iterable[Paired], permuted: Iterable[Paired]) -> Share:
    """Cards that keep their own SQL although the bank was permuted, such as the only card of a database."""
    own = {(card.seed, card.database, card.question_id): card.sql for card in aligned}
    shared = [card for card in permuted if (card.seed, card.database, card.question_id) in own]
    unchanged = sum(card.sql == own[card.seed, card.database, card.question_id] for card in shared)
    return Share(unchanged, len(shared))


def same_window(pairs: Sequence[Pair]) -> Share:
    """Pairs in which both arms show the same cards, so that nothing but their order can tell the answers apart."""
    return Share(sum(set(pair.before.cards) == set(pair.after.cards) for pair in pairs), len(pairs))


LARGELY = 0.5
"""The share of equal windows from which a comparison of retrievers finds little because it compares little."""


class Windows(Struct, frozen=True, kw_only=True):
    """The windows of two arms for the same questions."""

    same: Share
    """Pairs in which both show the same cards."""
    forced: Share
    """Pairs in which there was no choice: the bank of their database holds no more cards than either window takes."""
    available: tuple[int, float, int]
    """How many cards there were to choose from: fewest, median, most."""
    most_shown: tuple[int, int]
    """The most cards that either arm showed at once."""

    @property
    def by_construction(self) -> str:
        """Tell whether a null result was built in, in words; empty where the windows differ enough to tell."""
        if self.same.part == self.same.whole:
            return "null by construction: both arms show the same cards"
        if self.same.part >= LARGELY * self.same.whole:
            return "largely null by construction: most windows are the same"
        return ""


def windows(pairs: Sequence[Pair], available: Sequence[int], *, widths: tuple[int, int]) -> Windows | None:
    """Compare what two arms showed, given how many cards each question had to choose from; None without pairs."""
    if not pairs:
        return None
    return Windows(
        same=same_window(pairs),
        forced=Share(sum(cards <= min(widths) for cards in available), len(pairs)),
        available=(min(available), median(available), max(available)),
        most_shown=(max(len(pair.before.cards) for pair in pairs), max(len(pair.after.cards) for pair in pairs)),
    )


# ── how a bank is used ───────────────────────────────────────────────────────────────────────────────────────────────


class BankUse(Struct, frozen=True, kw_only=True):
    """How one seed's bank was used, shares in percent; None where there was nothing to share."""

    cards: int
    slots: int
    in_fix_windows: float | None
    top_decile: float | None
    """Share of appearances in fix windows that the most frequent tenth of the cards has, interpolated between cards."""
    gini: float | None
    never_retrieved: float | None


def card_use(*, bank: Collection[CardId], answers: Iterable[Answered], fixed: Iterable[Pair]) -> BankUse:
    """Count how often each card of a bank was shown, and how often to a question that memory fixed."""
    shown = Counter(card for answer in answers for card in answer.cards)
    credit = Counter(card for pair in fixed for card in pair.after.cards)
    shows, credits = [shown[card] for card in bank], sorted((credit[card] for card in bank), reverse=True)
    size = len(bank)
    return BankUse(
        cards=size,
        slots=sum(shows),
        in_fix_windows=100 * sum(count > 0 for count in credits) / size if size else None,
        top_decile=100 * _top_tenth(credits) / sum(credits) if sum(credits) else None,
        gini=gini(shows),
        never_retrieved=100 * sum(count == 0 for count in shows) / size if size else None,
    )


def _top_tenth(ordered: Sequence[int]) -> float:
    """Tell what the first tenth of the cards has; of a card that is in it by a part, that part."""
    whole, part = divmod(len(ordered), 10)
    return sum(ordered[:whole]) + (part / 10 * ordered[whole] if part else 0.0)


def gini(counts: Sequence[int]) -> float | None:
    """Gini's coefficient of inequality: 0 when all are equal, near 1 when one has everything."""
    total = sum(counts)
    if not total:
        return None
    ordered, size = np.sort(np.asarray(counts, dtype=float)), len(counts)
    return float(2 * np.sum(np.arange(1, size + 1) * ordered) / (size * total) - (size + 1) / size)
