"""Definitions that the program proposes: filters that confirmed queries share and no question says, words of columns.

Nothing here is shown to a model before a person has confirmed it.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from sqlcrystal.bank import ProposedDefinition
from sqlcrystal.databases.layout import layout_of
from sqlcrystal.databases.masks import is_masked
from sqlcrystal.errors import SqlcrystalError, UserError
from sqlcrystal.querylog.definitions import comment_definitions, dbt_definitions
from sqlcrystal.serving.definitions import proposal_of, propose
from sqlcrystal.serving.privacy import is_private
from sqlcrystal.serving.refusing import COMMON
from sqlcrystal.serving.workspace import OpenDatabase, Workspace
from sqlcrystal.solving.presentation import tables_of
from sqlcrystal.telling.definitions import Filter, filters_of
from sqlcrystal.telling.words import words_of
from sqlcrystal.types import Card, CardId, Definition

COMMENTS = "comments"
"""The word for the comments of the database's own columns, where a source is named."""
LEAST_CARDS = 3
"""So many cards with different questions share a filter before it is proposed."""
LONGEST_TERM = 3
"""Words of a suggested term."""


def found(workspace: Workspace, opened: OpenDatabase, source: Path | str | None) -> list[ProposedDefinition]:
    """Look for definitions to propose: in the team's cards, or in the words of columns."""
    if source is None:
        return shared(opened, workspace.bank.cards(opened.name))
    if is_private(opened):
        raise UserError(f"source: database {opened.name} keeps no values, and words about columns may hold some")
    if str(source) == COMMENTS:
        read, origin = comment_definitions(tables_of(opened.database)), "comment"
    else:
        read, origin = dbt_definitions(Path(source).expanduser()), "dbt"
    return [proposal_of(opened.name, each, origin=origin, place=place) for place, each in read]


def propose_what_is_shared(workspace: Workspace, card_id: str) -> None:
    """Propose the filters that a new card shares with others; a verdict stands whatever comes of it."""
    try:
        card = workspace.store.bank.get(card_id)
        opened = workspace.open(card.database)
        own = _unsaid(opened, card)
        if own:
            kept = workspace.bank.cards(card.database)
            alike = [other for other in kept if any(_may_hold(other, each) for each in own)]
            propose(workspace, opened, shared(opened, alike, about=own, others=kept))
    except SqlcrystalError:
        return


def shared(
    opened: OpenDatabase, cards: Sequence[Card], *, about: Sequence[Filter] = (), others: Sequence[Card] = ()
) -> list[ProposedDefinition]:
    """Find the filters that enough cards share and none of their questions says; those of the same cards are one."""
    holders: defaultdict[Filter, dict[str, Card]] = defaultdict(dict)
    for card in cards:
        for each in _unsaid(opened, card):
            holders[each].setdefault(" ".join(words_of(card.question.text)), card)
    wanted = {each.sql for each in about}
    together: defaultdict[tuple[str, ...], list[Filter]] = defaultdict(list)
    for each, held in holders.items():
        if len(held) >= LEAST_CARDS and (not wanted or each.sql in wanted):
            together[each.table, *sorted(card.id for card in held.values())].append(each)
    by_id = {card.id: card for card in cards}
    proposed = []
    for (table, *ids), filters in together.items():
        evidence = [by_id[CardId(name)] for name in ids]
        rest = [card.question.text for card in (others or cards) if card.id not in ids]
        term = suggested([card.question.text for card in evidence], rest, _vocabulary(opened))
        sql = " AND ".join(sorted(each.sql for each in filters))
        definition = Definition(term=term, sql=sql, tables=(table,))
        proposed.append(proposal_of(opened.name, definition, origin="filter", cards=evidence))
    return proposed


def _unsaid(opened: OpenDatabase, card: Card) -> list[Filter]:
    """List the filters of a card's query that its question does not spell out; none that lost its values."""
    dialect = opened.database.dialect
    layout = layout_of(opened.database.schema(), dialect)
    filters = filters_of(card.sql, dialect, layout)
    return [each for each in filters if not is_masked(each.sql) and not each.is_said_by(card.question.text)]


def _may_hold(card: Card, wanted: Filter) -> bool:
    """Tell, without reading its query, whether a card may have a filter."""
    sql = card.sql.casefold()
    return wanted.column.casefold() in sql and all(value.casefold() in sql for value in wanted.values)


# ── a name for it ────────────────────────────────────────────────────────────────────────────────────────────────────


def suggested(questions: Sequence[str], others: Sequence[str], schema: frozenset[str]) -> str:
    """Suggest the words that all these questions share, few others have, and the schema does not; or nothing."""
    runs = [_runs(question) for question in questions]
    common = set.intersection(*map(set, runs)) if runs else set()
    elsewhere = Counter(run for question in others for run in set(_runs(question)))
    allowed = len(others) // 4
    fitting = [run for run in common if elsewhere[run] <= allowed and not set(run) <= schema]
    longest = sorted(fitting, key=lambda run: (-len(run), run))[:1]
    return " ".join(longest[0]) if longest else ""


def _runs(question: str) -> list[tuple[str, ...]]:
    """List the runs of words of a question that may be a term: at neither end stands a common word or a number."""
    said, common = words_of(question), frozenset(words_of(COMMON))
    return [
        said[start:end]
        for start in range(len(said))
        for end in range(start + 1, min(start + LONGEST_TERM, len(said)) + 1)
        if not any(word in common or word.isdigit() for word in (said[start], said[end - 1]))
    ]


def _vocabulary(opened: OpenDatabase) -> frozenset[str]:
    """Gather the words of a schema's names."""
    tables = tables_of(opened.database)
    names = [name for table in tables for name in (table.name, *(column.name for column in table.columns))]
    return frozenset(word for name in names for word in words_of(name))
