"""The leakage audit: does the lift rest on held-out questions that the bank has seen in another dress?"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Protocol

from msgspec import Struct
from sqlglot import exp

from sqlcrystal.databases.parsing import Unparsable, parse
from sqlcrystal.measurement.flips import Key, Pair
from sqlcrystal.measurement.windows import Paired

PARAPHRASE_JACCARD = 0.7
"""Questions that share at least this share of their words count as paraphrases."""


class Banked(Paired, Protocol):
    """A card as the audit sees it."""

    @property
    def question(self) -> str: ...


class LeakageAudit(Struct, frozen=True, kw_only=True):
    """How many held-out pairs have a twin in the bank, and the lift without them (percentage points)."""

    n: int
    shared_ids: int
    with_text: int
    """Pairs whose question text is known; without text no paraphrase can be found."""
    paraphrases: int
    with_sql: int
    """Pairs with a known right SQL; a template is taken from any right answer, so that memory's fixes are covered."""
    same_template: int
    lift_pp: float
    lift_without_paraphrases_pp: float | None
    lift_without_templates_pp: float | None
    lift_without_both_pp: float | None
    threshold: float


def audit(
    *,
    pairs: Sequence[Pair],
    cards: Iterable[Banked],
    questions: Mapping[str, str],
    right_sql: Mapping[str, Collection[str]],
    dialect: str = "sqlite",
    threshold: float = PARAPHRASE_JACCARD,
) -> LeakageAudit:
    """Compare every held-out question with the cards of its own database and seed."""
    bank: defaultdict[tuple[int, str], list[Banked]] = defaultdict(list)
    for card in cards:
        bank[card.seed, card.database].append(card)
    ids: set[Key] = set()
    alike: set[Key] = set()
    templated: set[Key] = set()
    for pair in pairs:
        near, question = bank[pair.after.seed, pair.after.database], pair.after.question
        if any(card.question_id == question for card in near):
            ids.add(pair.key)
        words = _words(questions.get(question, ""))
        if words and any(jaccard(words, _words(card.question)) >= threshold for card in near):
            alike.add(pair.key)
        shapes = {template(sql, dialect) for sql in right_sql.get(question, ())} - {None}
        if shapes and any(template(card.sql, dialect) in shapes for card in near):
            templated.add(pair.key)
    return LeakageAudit(
        n=len(pairs),
        shared_ids=len(ids),
        with_text=sum(pair.after.question in questions for pair in pairs),
        paraphrases=len(alike),
        with_sql=sum(bool(right_sql.get(pair.after.question)) for pair in pairs),
        same_template=len(templated),
        lift_pp=_lift(pairs, set()) or 0.0,
        lift_without_paraphrases_pp=_lift(pairs, alike),
        lift_without_templates_pp=_lift(pairs, templated),
        lift_without_both_pp=_lift(pairs, alike | templated),
        threshold=threshold,
    )


def _lift(pairs: Sequence[Pair], without: set[Key]) -> float | None:
    kept = [pair for pair in pairs if pair.key not in without]
    return 100 * sum(pair.after.right - pair.before.right for pair in kept) / len(kept) if kept else None


@lru_cache(maxsize=65_536)
def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.lower()))


def jaccard(left: frozenset[str], right: frozenset[str]) -> float:
    """Shared words over all words."""
    return len(left & right) / len(left | right) if left or right else 0.0


@lru_cache(maxsize=65_536)
def template(sql: str, dialect: str = "sqlite") -> str | None:
    """A query with every literal replaced by a placeholder and names in lower case; None when it cannot be parsed."""
    try:
        tree = parse(sql, dialect)
    except Unparsable:
        return None
    for literal in list(tree.find_all(exp.Literal)):
        literal.replace(exp.Placeholder())
    for name in tree.find_all(exp.Identifier):
        name.set("this", name.this.lower())
        name.set("quoted", False)
    return tree.sql(dialect=dialect)
