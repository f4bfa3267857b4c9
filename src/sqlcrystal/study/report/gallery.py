"""The gallery: fixes and breaks with the SQL before and after, and the cards the answer was shown."""

from collections.abc import Sequence

from msgspec import Struct

from sqlcrystal.ledger.records import BankedCard
from sqlcrystal.measurement.adoption import new_elements, stands_in
from sqlcrystal.measurement.flips import Pair, breaks, fixes, stability
from sqlcrystal.study.report.facts import Facts

FIXES, BREAKS, CARDS = 4, 3, 2


class ShownCard(Struct, frozen=True, kw_only=True):
    """A card of the window and which new elements of the answer stand in it."""

    question: str
    sql: str
    traced: tuple[str, ...]


class Exhibit(Struct, frozen=True, kw_only=True):
    """One question that memory fixed or broke."""

    verdict: str
    stable: bool
    database: str
    question: str
    seed: int
    before: str
    after: str
    cards: tuple[ShownCard, ...]

    @property
    def heading(self) -> str:
        """What happened, where, and whether it does so under every seed."""
        kind = {"fix": "Fixed", "break": "Broken"}[self.verdict]
        return f"{kind}{', stable across seeds' if self.stable else ''} · {self.database} · seed {self.seed}"


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
    window = [_shown_card(card, fresh) for card in facts.window(facts.default, row)]
    ranked = sorted(window, key=lambda card: -len(card.traced))[:CARDS]
    return Exhibit(
        verdict=pair.verdict,
        stable=stable,
        database=row.database,
        question=facts.ledger.questions.get(row.question, row.question),
        seed=row.seed,
        before=pair.before.sql or "(no SQL)",
        after=pair.after.sql or "(no SQL)",
        cards=tuple(ranked),
    )


def _shown_card(card: BankedCard, fresh: Sequence[str]) -> ShownCard:
    return ShownCard(
        question=card.question,
        sql=card.sql,
        traced=tuple(element for element in fresh if stands_in(element, card.text)),
    )
