"""How far two arms differ in what they show: cards a permutation could not move, and windows that are the same."""

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Protocol

from msgspec import Struct

from sqlcrystal.measurement.collecting import Share
from sqlcrystal.measurement.flips import Pair


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
    """What two arms showed for the same questions."""

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
