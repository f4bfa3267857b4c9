"""Card-level use: is transfer carried by many cards or by a few? Windows show co-occurrence, not causes."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

import numpy as np
from msgspec import Struct

from sqlcrystal.measurement.flips import Answered, Pair
from sqlcrystal.types import CardId


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
    """What the first tenth of the cards has; of a card that is in it by a part, that part."""
    whole, part = divmod(len(ordered), 10)
    return sum(ordered[:whole]) + (part / 10 * ordered[whole] if part else 0.0)


def gini(counts: Sequence[int]) -> float | None:
    """Gini's coefficient of inequality: 0 when all are equal, near 1 when one has everything."""
    total = sum(counts)
    if not total:
        return None
    ordered, size = np.sort(np.asarray(counts, dtype=float)), len(counts)
    return float(2 * np.sum(np.arange(1, size + 1) * ordered) / (size * total) - (size + 1) / size)
