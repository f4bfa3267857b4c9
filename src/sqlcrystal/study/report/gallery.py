"""The gallery: fixes and breaks with the SQL before and after, and the cards the answer was shown."""

import html
from collections.abc import Sequence

from msgspec import Struct

from sqlcrystal.measurement.adoption import new_elements, stands_in
from sqlcrystal.measurement.flips import Pair, breaks, fixes, stability
from sqlcrystal.study.ledger import BankedCard
from sqlcrystal.study.report.facts import Facts

FIXES, BREAKS, CARDS = 4, 3, 2


class Shown(Struct, frozen=True, kw_only=True):
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
    cards: tuple[Shown, ...]


def gallery(facts: Facts) -> tuple[Exhibit, ...]:
    """Stable flips first, then those with a traceable card; one per question and, where possible, per database."""
    known = stability(facts.headline)
    stable = {*known.stable_fixes, *known.stable_breaks}
    chosen = [
        *_choose(facts, fixes(facts.headline), stable, FIXES),
        *_choose(facts, breaks(facts.headline), stable, BREAKS),
    ]
    return tuple(chosen)


def _choose(facts: Facts, pairs: Sequence[Pair], stable: set[str], limit: int) -> list[Exhibit]:
    made = [_exhibit(facts, pair, pair.after.question in stable) for pair in pairs]
    ranked = sorted(
        made, key=lambda e: (not e.stable, not any(c.traced for c in e.cards), e.database, e.question, e.seed)
    )
    picked: list[Exhibit] = []
    for fresh_database in (True, False):
        for one in ranked:
            seen = {(e.database if fresh_database else e.question) for e in picked}
            if len(picked) < limit and (one.database if fresh_database else one.question) not in seen:
                picked.append(one)
    return picked


def _exhibit(facts: Facts, pair: Pair, stable: bool) -> Exhibit:
    row = next(row for row in facts.rows(facts.default) if (row.seed, row.question) == pair.key)
    fresh = sorted(new_elements(pair), key=lambda element: (-len(element), element))
    window = [_shown(card, fresh) for card in facts.window(facts.default, row)]
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


def _shown(card: BankedCard, fresh: Sequence[str]) -> Shown:
    return Shown(question=card.question, sql=card.sql, traced=tuple(e for e in fresh if stands_in(e, card.text)))


def _heading(exhibit: Exhibit) -> str:
    kind = {"fix": "Fixed", "break": "Broken"}[exhibit.verdict]
    return f"{kind}{', stable across seeds' if exhibit.stable else ''} · {exhibit.database} · seed {exhibit.seed}"


def gallery_html(exhibits: Sequence[Exhibit]) -> str:
    """The gallery as cards that open without script."""
    made = []
    for index, exhibit in enumerate(exhibits):
        cards = "".join(
            f"<li><p>{html.escape(card.question)}</p><pre>{html.escape(card.sql)}</pre>{_traced_html(card)}</li>"
            for card in exhibit.cards
        )
        shown = f"<h5>Cards it was shown</h5><ol>{cards}</ol>" if cards else ""
        made.append(
            f'<details class="exhibit {exhibit.verdict}"{" open" if index == 0 else ""}>'
            f"<summary>{html.escape(_heading(exhibit))}<br><q>{html.escape(exhibit.question)}</q></summary>"
            f"<h5>Without memory ({'wrong' if exhibit.verdict == 'fix' else 'right'})</h5>"
            f"<pre>{html.escape(exhibit.before)}</pre>"
            f"<h5>With memory ({'right' if exhibit.verdict == 'fix' else 'wrong'})</h5>"
            f"<pre>{html.escape(exhibit.after)}</pre>{shown}</details>"
        )
    return "".join(made)


def _traced_html(card: Shown) -> str:
    if not card.traced:
        return '<p class="note">No new element of the answer stands in this card.</p>'
    marked = ", ".join(f"<code>{html.escape(element)}</code>" for element in card.traced)
    return f'<p class="note">New in the answer and found in this card: {marked}</p>'


def gallery_markdown(exhibits: Sequence[Exhibit]) -> str:
    """The gallery as Markdown."""
    parts = []
    for exhibit in exhibits:
        cards = [
            f"Card: {card.question}\n\n```sql\n{card.sql}\n```\n\nTraced: {', '.join(card.traced) or 'nothing'}"
            for card in exhibit.cards
        ]
        lines = [f"### {_heading(exhibit)}", exhibit.question, f"Without memory:\n\n```sql\n{exhibit.before}\n```"]
        parts.append("\n\n".join([*lines, f"With memory:\n\n```sql\n{exhibit.after}\n```", *cards]))
    return "\n\n".join(parts) + "\n"
