"""From scores to cards: the k best, ties by card id, the same on every machine."""

from bisect import bisect
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sqlcrystal.consumption.retriever import Excluded
from sqlcrystal.errors import ConfigError
from sqlcrystal.types import Card, CardId, Retrieved

DECIMALS = 6
"""Scores are rounded to this many places, below what threads and BLAS kernels change, so that equal cards tie."""
MARGIN = 1e-5


def excluded_ids(exclude: Excluded) -> frozenset[CardId]:
    """Make a set of one id, several or none."""
    if exclude is None:
        return frozenset()
    return exclude if isinstance(exclude, frozenset) else frozenset([exclude])


def checked_width(k: int) -> int:
    """Check the retrieval width, refused where it makes no sense."""
    if k < 0:
        raise ConfigError(f"k: must be 0 or more, not {k}")
    return k


class Roster:
    """Cards in the order of their ids: a card's position is its rank among ties."""

    def __init__(self, cards: Sequence[Card]) -> None:
        """Sort the cards once."""
        self.cards = tuple(sorted(cards, key=_id))

    @cached_property
    def position(self) -> dict[CardId, int]:
        """Map each card to its place; most searches never ask."""
        return {card.id: place for place, card in enumerate(self.cards)}

    def with_card(self, card: Card) -> tuple["Roster", int]:
        """Add one card, and tell its place."""
        place = bisect(self.cards, card.id, key=_id)
        longer = Roster(())
        longer.cards = (*self.cards[:place], card, *self.cards[place:])
        return longer, place

    def without(self, scores: NDArray[np.float32], exclude: Excluded) -> NDArray[np.float32]:
        """Sink the scores of excluded cards below all others, in place."""
        for card_id in excluded_ids(exclude):
            if card_id in self.position:
                scores[self.position[card_id]] = -np.inf
        return scores

    def ranked(self, places: NDArray[np.intp], scores: NDArray[np.float64], k: int) -> list[Retrieved]:
        """Rank the k best of these places, ties by card id."""
        rounded = np.round(scores, DECIMALS) + 0.0  # so that -0.0 is 0.0
        best = np.lexsort((places, -rounded))[:k]
        return [Retrieved(self.cards[places[rank]], float(rounded[rank])) for rank in best]


def _id(card: Card) -> CardId:
    return card.id


def contenders(scores: NDArray[np.float32], k: int) -> NDArray[np.intp]:
    """Find the places whose score is, within rounding, among the k highest; excluded ones are never among them."""
    floor = np.float32(-np.inf)
    if 0 < k < len(scores):
        floor = np.partition(scores, len(scores) - k)[len(scores) - k] - np.float32(MARGIN)
    places = np.flatnonzero(scores >= floor)
    return places[scores[places] > -np.inf]


def highest(scores: NDArray[np.float32], k: int) -> NDArray[np.intp]:
    """Find the places of the k highest scores, ties by place, in no order; excluded ones are never among them."""
    if k >= len(scores):
        return np.flatnonzero(scores > -np.inf)
    last = np.partition(scores, len(scores) - k)[len(scores) - k]
    places = np.flatnonzero(scores >= last)
    if len(places) > k:
        above = np.flatnonzero(scores > last)
        places = np.concatenate([above, np.flatnonzero(scores == last)[: k - len(above)]])
    return places[scores[places] > -np.inf]
