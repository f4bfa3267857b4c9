"""Definitions: proposed by the program; written, changed, imported and confirmed by people under one set of rules.

Each is one expression that runs over its tables behind the guard before it is kept, and a term has one of them.
Nothing that the program proposes is shown to a model before a person has confirmed it.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from sqlcrystal.bank import Entry, ProposedDefinition, Verdict, question_key
from sqlcrystal.databases.layout import Layout, layout_of
from sqlcrystal.databases.masks import is_masked
from sqlcrystal.errors import SqlcrystalError, UserError
from sqlcrystal.querylog.definitions import Defined, comment_definitions, dbt_definitions
from sqlcrystal.serving.asking import without_marks
from sqlcrystal.serving.cards import kept_reason
from sqlcrystal.serving.documents import DefinitionProposal, DefinitionsImported
from sqlcrystal.serving.privacy import is_private, kept_definition
from sqlcrystal.serving.reach import known_card
from sqlcrystal.serving.refusing import COMMON
from sqlcrystal.serving.verdicts import must_run
from sqlcrystal.serving.workspace import OpenDatabase, Workspace
from sqlcrystal.solving.presentation import tables_of
from sqlcrystal.telling.definitions import Filter, expression, filters_of, spelled, statement_of, tables_in
from sqlcrystal.telling.words import line_of, words_of
from sqlcrystal.timestamps import timestamp
from sqlcrystal.types import Admission, Card, CardId, CardKind, CardStatus, Definition, Question
from sqlcrystal.writing.card import estimate_tokens, one_line

WRITER = "definition"
"""The format of its text, where other cards name the one that rendered them."""
PERSON = "person"
"""The source of a definition that somebody wrote."""
LONGEST_NAME, LONGEST_MEANING, LONGEST_SQL = 100, 1_000, 2_000
MOST_SYNONYMS, MOST_TABLES = 20, 8


def ready(opened: OpenDatabase, given: Definition) -> Definition:
    """Give a definition as it is kept: within limits, with tables that are there, without values where none are kept.

    It must run: what fails is refused with the engine's word.
    """
    dialect = opened.database.dialect
    if len(given.sql) > LONGEST_SQL:
        raise UserError(f"sql: {len(given.sql):,} characters; at most {LONGEST_SQL:,}")
    layout, sql = _layout(opened), expression(given.sql, dialect)
    tables = (
        spelled(given.tables, layout) or tables_in(sql, dialect, layout) or (tuple(layout) if len(layout) == 1 else ())
    )
    if not tables or len(tables) > MOST_TABLES:
        known = ", ".join(list(layout)[:30])
        raise UserError(f"tables: say which the expression is over, at most {MOST_TABLES}; choose from {known}")
    named = _named([given.term, *given.synonyms])
    meaning = one_line(without_marks(given.meaning))
    if len(meaning) > LONGEST_MEANING:
        raise UserError(f"meaning: {len(meaning):,} characters; at most {LONGEST_MEANING:,}")
    term, *synonyms = named
    whole = Definition(term=term, sql=sql, tables=tables, synonyms=tuple(synonyms), meaning=meaning)
    definition = kept_definition(opened, whole)
    must_run(opened, statement_of(definition, dialect))
    return definition


def _named(names: Sequence[str]) -> list[str]:
    """Check the names of a term; the same name twice is one."""
    plain = [one_line(without_marks(name)) for name in names]
    if not plain[0]:
        raise UserError("term: must not be empty")
    if len(plain) > 1 + MOST_SYNONYMS:
        raise UserError(f"synonyms: at most {MOST_SYNONYMS}")
    for name in filter(None, plain):
        if len(name) > LONGEST_NAME or not name.isprintable() or not words_of(name):
            raise UserError(f"term: {name[:40]!r} is no name of one to {LONGEST_NAME} letters")
    return list({words_of(name): name for name in reversed(plain) if name}.values())[::-1]


def _layout(opened: OpenDatabase) -> Layout:
    tables = tables_of(opened.database)
    return {table.name: tuple(column.name for column in table.columns) for table in tables if table.kind != "type"}


# ── keeping ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def define(workspace: Workspace, opened: OpenDatabase, given: Definition, *, by: str, source: str = PERSON) -> Card:
    """Keep a new definition in a person's name; a term that has one already is refused."""
    return _keep(workspace, opened, ready(opened, given), by=by, source=source)


def redefine(workspace: Workspace, card: Card, changes: Mapping[str, Any], *, by: str, reason: str = "") -> Card:
    """Change parts of a definition under the same id; what was there before stays in its history."""
    before = card.definition
    if before is None:
        raise UserError(f"card {card.id}: it is no definition")
    opened = workspace.open(card.database)
    given = {part: value for part, value in changes.items() if value is not None}
    if "sql" in given and "tables" not in given:
        given["tables"] = ()  # of the new expression
    return _change(workspace, opened, card, ready(opened, replace(before, **given)), by=by, reason=reason)


def _change(
    workspace: Workspace, opened: OpenDatabase, card: Card, definition: Definition, *, by: str, reason: str = ""
) -> Card:
    other = standing(workspace, card.database, definition.term)
    if other is not None and other.id != card.id:
        raise UserError(f"term: card {other.id} defines {definition.term!r} already; change that one")
    text, bank = line_of(definition.term, definition), workspace.store.bank
    with workspace.store.transaction():
        kept = bank.edit(
            card.id,
            by=by,
            text=text,
            sql=statement_of(definition, opened.database.dialect),
            tokens=estimate_tokens(text),
            definition=definition,
            reason=kept_reason(workspace, [card.database], reason),
        )
        bank.mark_valid([card.id], opened.database.fingerprint())
    return kept


def standing(workspace: Workspace, database: str, term: str) -> Card | None:
    """Find the definition of a term that is served."""
    if not workspace.store_exists():
        return None
    kept = workspace.store.bank.find(
        database=database, status=CardStatus.ACTIVE, question=term, kind=CardKind.DEFINITION
    )
    return kept[0] if kept else None


def _keep(workspace: Workspace, opened: OpenDatabase, definition: Definition, *, by: str, source: str) -> Card:
    known = standing(workspace, opened.name, definition.term)
    if known is not None and known.definition != definition:
        raise UserError(f"term: card {known.id} defines {definition.term!r} already; change that one")
    if known is not None:
        return known
    card, bank = _card(opened, definition, by=by, source=source), workspace.store.bank
    workspace.remember(opened)
    with workspace.store.transaction():
        (added,) = bank.add_all([Entry(card=card)])
        if added.new:
            return card
        bank.readmit(added.id, card.admission)  # it was there and is not served: it comes back as it is meant now
        return _change(workspace, opened, bank.get(added.id), definition, by=by)


def _card(opened: OpenDatabase, definition: Definition, *, by: str, source: str) -> Card:
    text = line_of(definition.term, definition)
    name = hashlib.sha256("\0".join([opened.name, WRITER, definition.term, definition.sql]).encode()).hexdigest()
    return Card(
        id=CardId(name[:16]),
        database=opened.name,
        question=Question(id=name[16:32], database=opened.name, text=definition.term),
        sql=statement_of(definition, opened.database.dialect),
        text=text,
        writer=WRITER,
        source=source,
        admission=Admission(signal="user", by=by, at=timestamp()),
        fingerprint=opened.database.fingerprint(),
        tokens=estimate_tokens(text),
        defined=definition,
    )


def import_all(
    workspace: Workspace, database: str, given: Iterable[Defined], *, by: str, name: str
) -> DefinitionsImported:
    """Keep every definition of a file in a person's name, all or none; a term that is known gets the file's version."""
    opened, counts = workspace.open(database), {"added": 0, "changed": 0, "unchanged": 0, "elsewhere": 0}
    checked: dict[str, Definition] = {}
    for each in given:
        if each.database not in ("", database):
            counts["elsewhere"] += 1
            continue
        try:
            definition = ready(opened, each.definition)
            if checked.setdefault(question_key(definition.term), definition) is not definition:
                raise UserError(f"term: {definition.term!r} stands twice")
        except UserError as error:
            raise UserError(f"{name}:{each.line}: {error}; nothing was imported") from None
    with workspace.store.transaction():
        for definition in checked.values():
            counts[_import_one(workspace, opened, definition, by=by)] += 1
    return DefinitionsImported(**counts)


def _import_one(workspace: Workspace, opened: OpenDatabase, definition: Definition, *, by: str) -> str:
    known = standing(workspace, opened.name, definition.term)
    if known is None:
        _keep(workspace, opened, definition, by=by, source="csv")
        return "added"
    if known.definition == definition:
        return "unchanged"
    _change(workspace, opened, known, definition, by=by)
    return "changed"


# ── proposals ────────────────────────────────────────────────────────────────────────────────────────────────────────


def proposal_of(
    database: str, definition: Definition, *, origin: str, place: str = "", cards: Sequence[Card] = ()
) -> ProposedDefinition:
    """Describe a definition that nobody vouched for; its id follows from what it says, however its term is guessed."""
    from sqlcrystal.bank.records import CardUse

    term = "" if origin == "filter" else question_key(definition.term)
    said = "\0".join([database, origin, term, definition.sql, *definition.tables])
    return ProposedDefinition(
        id=f"d-{hashlib.sha256(said.encode()).hexdigest()[:12]}",
        database=database,
        at=timestamp(),
        definition=definition,
        origin=origin,
        place=place,
        cards=tuple(CardUse(card.id, 1.0) for card in cards),
    )


def propose(
    workspace: Workspace, opened: OpenDatabase, proposed: Iterable[ProposedDefinition]
) -> list[DefinitionProposal]:
    """Keep for a person those that would be kept, that nobody decided on, and whose term and expression are new."""
    served = workspace.store.bank.find(database=opened.name, status=CardStatus.ACTIVE, kind=CardKind.DEFINITION)
    defined = [card.definition for card in served if card.definition is not None]
    terms = {words_of(name) for definition in defined for name in definition.names}
    said = {question_key(definition.sql) for definition in defined}
    fresh = []
    for each in proposed:
        given = each.definition
        if question_key(given.sql) in said or (given.term and words_of(given.term) in terms):
            continue
        try:
            checked = ready(opened, given if given.term else replace(given, term="term"))
        except UserError:  # a piece of a file or a query that is no definition here
            continue
        fresh.append(replace(each, definition=replace(checked, term=given.term)))
    return [told(workspace, each) for each in workspace.store.proposed_definitions.propose(fresh)]


def told(workspace: Workspace, proposed: ProposedDefinition) -> DefinitionProposal:
    """Describe a proposal with the questions of its cards."""
    cards = (known_card(workspace, use.card) for use in proposed.cards)
    return DefinitionProposal.of(proposed, tuple(card.question.text for card in cards if card is not None))


def confirm(workspace: Workspace, proposed: ProposedDefinition, changes: Mapping[str, Any], *, by: str) -> Card:
    """Vouch for a proposal, under the name and words that a person gives it: it becomes a definition."""
    given = replace(proposed.definition, **{part: value for part, value in changes.items() if value is not None})
    if not given.term.strip():
        raise UserError(f"proposal {proposed.id}: give its term; nothing suggests one")
    with workspace.store.transaction():
        card = define(workspace, workspace.open(proposed.database), given, by=by, source=proposed.origin)
        _decide(workspace, proposed, Verdict.CONFIRMED, by=by)
    return card


def reject(workspace: Workspace, proposed: ProposedDefinition, *, by: str) -> None:
    """Say that a proposal defines nothing; it is not proposed again."""
    _decide(workspace, proposed, Verdict.REJECTED, by=by)


def _decide(workspace: Workspace, proposed: ProposedDefinition, verdict: Verdict, *, by: str) -> None:
    if not workspace.store.proposed_definitions.decide(proposed.id, verdict, by=by):
        raise UserError(f"proposal {proposed.id}: it was decided on already")


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
