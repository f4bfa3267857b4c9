"""How far two arms differ in what they show: cards a permutation could not move, and windows that are the same."""

from collections.abc import Iterable, Sequence
from typing import Protocol

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
