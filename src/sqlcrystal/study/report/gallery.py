"""The gallery: fixes and breaks with the SQL before and after, and the cards the answer was shown."""

from collections.abc import Sequence

from msgspec import Struct

from sqlcrystal.ledger.records import BankedCard
from sqlcrystal.measurement.adoption import new_elements, stands_in
from sqlcrystal.measurement.flips import Pair, breaks, fixes, stability
from sqlcrystal.study.report.cause_tables import caused_by
from sqlcrystal.study.report.facts import Facts
from sqlcrystal.types import CardId

FIXES, BREAKS, CARDS = 4, 3, 2


class ShownCard(Struct, frozen=True, kw_only=True):
    """A card of the window and which new elements of the answer stand in it."""

    question: str
    sql: str
    traced: tuple[str, ...]
    caused: bool | None = None
    """Whether the change is gone without this card alone; None where nothing was asked without it."""

    @property
    def cause(self) -> str:
        """Tell in words whether the card made the change; empty where that is not known."""
        if self.caused is None:
            return ""
        return "Without this card the change is gone." if self.caused else "The change stays without this card."


class Exhibit(Struct, frozen=True, kw_only=True):
    """One question that memory fixed or broke."""

    verdict: str
    stable: bool
    database: str
    question: str
    split: str
    """The word for a split: seed or fold."""
    seed: int
    before: str
    after: str
    cards: tuple[ShownCard, ...]

    @property
    def heading(self) -> str:
        """Tell what happened, where, and whether it does so under every seed."""
        kind = {"fix": "Fixed", "break": "Broken"}[self.verdict]
        stable = f", stable across {self.split}s" if self.stable else ""
        return f"{kind}{stable} · {self.database} · {self.split} {self.seed}"


def gallery(facts: Facts) -> tuple[Exhibit, ...]:
    """Stable flips first, then those with a traceable card; one per question and, where possible, per database."""
    flips = stability(facts.headline)
    stable = {*flips.stable_fixes, *flips.stable_breaks}
    chosen = [
        *_choose(facts, fixes(facts.headline), stable, FIXES),
        *_choose(facts, breaks(facts.headline), stable, BREAKS),
    ]
    return tuple(chosen)


def _choose(facts: Facts, pairs: Sequence[Pair], stable: set[str], limit: int) -> list[Exhibit]:
    exhibits = [_exhibit(facts, pair, pair.after.question in stable) for pair in pairs]
    ranked = sorted(
        exhibits,
        key=lambda exhibit: (
            not exhibit.stable,
            not any(card.traced for card in exhibit.cards),
            exhibit.database,
            exhibit.question,
            exhibit.seed,
        ),
    )
    picked: list[Exhibit] = []
    for fresh_database in (True, False):
        for exhibit in ranked:
            seen = {(taken.database if fresh_database else taken.question) for taken in picked}
            if len(picked) < limit and (exhibit.database if fresh_database else exhibit.question) not in seen:
                picked.append(exhibit)
    return picked


def _exhibit(facts: Facts, pair: Pair, stable: bool) -> Exhibit:
    row = next(row for row in facts.rows(facts.default) if (row.seed, row.question) == pair.key)
    fresh = sorted(new_elements(pair), key=lambda element: (-len(element), element))
    caused = caused_by(facts, row.seed, row.question)
    window = [_shown_card(card, fresh, caused) for card in facts.window(facts.default, row)]
    ranked = sorted(window, key=lambda card: (not card.caused, -len(card.traced)))[:CARDS]
    return Exhibit(
        verdict=pair.verdict,
        stable=stable,
        database=row.database,
        question=facts.ledger.questions.get(row.question, row.question),
        split=facts.split,
        seed=row.seed,
        before=pair.before.sql or "(no SQL)",
        after=pair.after.sql or "(no SQL)",
        cards=tuple(ranked),
    )


def _shown_card(card: BankedCard, fresh: Sequence[str], caused: frozenset[CardId] | None) -> ShownCard:
    return ShownCard(
        question=card.question,
        sql=card.sql,
        traced=tuple(element for element in fresh if stands_in(element, card.text)),
        caused=None if caused is None else card.id in caused,
    )
