"""`values = "never"`: what is kept of a database holds no value; prompts get them from the question again."""

import hashlib
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sqlcrystal.bank import AnswerRecord, Entry, Proposal
from sqlcrystal.errors import UserError
from sqlcrystal.pipeline import Memory
from sqlcrystal.serving.workspace import OpenDatabase, Workspace
from sqlcrystal.types import Card, Definition, Episode, Question, Retrieved

if TYPE_CHECKING:
    from sqlcrystal.databases.masks import Masked


def is_private(opened: OpenDatabase) -> bool:
    """Tell whether nothing that is kept may hold a value of this database."""
    return opened.entry.values == "never"


def kept(workspace: Workspace, opened: OpenDatabase, record: AnswerRecord, salt: str) -> AnswerRecord:
    """Give an answer as the store may have it; the question as spoken stays in this process's memory only."""
    if not is_private(opened):
        return record
    workspace.hear(record.id, record.question)
    masked = masked_query(opened, record.question, record.sql, runs=not record.error)
    digest = hashlib.sha256(f"{salt}{record.result_digest}".encode()).hexdigest()[:32] if record.result_digest else ""
    return replace(
        record,
        question=masked.question,
        asked=masked_query(opened, record.asked, None).question,
        sql=masked.sql,
        columns=(),  # a column may be named after a literal
        rows=None,
        row_count=min(record.row_count, 1),  # a query can return as many rows as a cell says
        result_digest=digest,  # of a few rows it could be guessed, so it compares within one answer only
        error="does not run" if record.error else "",
        trouble=None,  # that a count is zero is a value
        traits=(),  # which tell that, too
    )


def runs_as_kept(record: AnswerRecord, sql: str) -> bool:
    """Tell whether SQL of an answer is kept as it ran: one whose values were taken out is another query, or none."""
    from sqlcrystal.databases.masks import UNREADABLE, is_masked

    return record.rows is not None or not (is_masked(sql) or sql == UNREADABLE)


def kept_trace(opened: OpenDatabase, episode: Episode | None) -> Episode | None:
    """Keep how an answer came about only where values may be."""
    return None if is_private(opened) else episode


def kept_card(workspace: Workspace, record: AnswerRecord, card: Card) -> Card:
    """Take the values out of a card for an answer."""
    sql = masked_like(workspace, workspace.open(record.database), record, card.sql)
    return _without_values(card, record.question, sql)


def kept_entry(workspace: Workspace, entry: Entry) -> Entry:
    """Take the values out of a card that comes from elsewhere; its episode and the words of its history go."""
    from sqlcrystal.databases.masks import is_masked

    card = entry.card
    if card.definition is not None:
        return _kept_definition_entry(workspace, entry, card.definition)
    masked = masked_query(workspace.open(card.database), card.question.text, card.sql)
    done = is_masked(card.sql)  # it comes from a store that keeps no values either
    question, sql = (card.question.text, card.sql) if done else (masked.question, masked.sql or "")
    history = tuple(replace(change, before="", after="", reason="") for change in entry.history)
    return Entry(card=_without_values(card, question, sql), history=history)


def kept_definition(opened: OpenDatabase, definition: Definition) -> Definition:
    """Give a definition as the store may have it: its words in prose go, as notes do, and a value is refused."""
    if not is_private(opened):
        return definition
    from sqlcrystal.telling.definitions import ASKS_NO_ROW, statement_of, without_remarks

    nameless = f"database {opened.name} keeps no values; "
    names = "; ".join(definition.names)
    dialect = opened.database.dialect
    asked = without_remarks(statement_of(definition, dialect).removesuffix(ASKS_NO_ROW), dialect)
    masked = masked_query(opened, names, asked)
    if masked.question != names:
        raise UserError(f"term: {nameless}name it, and its synonyms, without numbers, quotes and proper names")
    if masked.sql != asked:  # a constant, or a name that is not the schema's
        raise UserError(f"sql: {nameless}write it with columns, functions and NULL alone")
    return replace(definition, meaning="")


def _kept_definition_entry(workspace: Workspace, entry: Entry, definition: Definition) -> Entry:
    """Take the prose and the history's words out of a definition from elsewhere; one that holds a value is refused."""
    from sqlcrystal.telling.definitions import statement_of
    from sqlcrystal.telling.words import line_of

    opened = workspace.open(entry.card.database)
    kept = kept_definition(opened, definition)
    card = replace(
        entry.card,
        defined=kept,
        question=replace(entry.card.question, text=kept.term, evidence=""),
        sql=statement_of(kept, opened.database.dialect),
        text=line_of(kept.term, kept),
        admission=replace(entry.card.admission, detail=""),
    )
    return Entry(card=card, history=tuple(replace(change, before="", after="", reason="") for change in entry.history))


def _without_values(card: Card, question: str, sql: str) -> Card:
    """Write a card anew from its masked question and query; its id is of what is left."""
    from sqlcrystal.databases.masks import UNREADABLE
    from sqlcrystal.writing.card import estimate_tokens, render_pair

    if UNREADABLE in (sql, card.sql):
        raise UserError(f"card {card.id}: its values cannot be told from the rest of its SQL; it is not kept")
    text = render_pair(question, sql)
    name = hashlib.sha256("\0".join([card.database, card.writer, question, sql]).encode())
    return replace(
        card,
        id=type(card.id)(name.hexdigest()[:16]),
        question=Question(id=name.hexdigest()[16:32], database=card.database, text=question),
        sql=sql,
        text=text,
        tokens=estimate_tokens(text),
        admission=replace(card.admission, detail=""),
    )


def kept_edit(
    workspace: Workspace, card: Card, *, text: str | None, sql: str | None, reason: str
) -> tuple[str | None, str | None, str]:
    """Tell what of an edit may be kept: a text that nobody can take the values out of is refused by leaving it out."""
    if not workspace.keeps_no_values(card.database):
        return text, sql, reason
    from sqlcrystal.databases.masks import UNREADABLE
    from sqlcrystal.writing.card import render_pair

    new = card.sql if sql is None else masked_query(workspace.open(card.database), "", sql).sql or card.sql
    if new == UNREADABLE:
        raise UserError(f"card {card.id}: the values of this SQL cannot be told from the rest; nothing was changed")
    return render_pair(card.question.text, new), None if sql is None else new, ""


def kept_proposal(workspace: Workspace, opened: OpenDatabase, record: AnswerRecord, proposal: Proposal) -> Proposal:
    """Take the values out of a proposal."""
    if not is_private(opened):
        return proposal
    if proposal.question:
        masked = masked_query(opened, proposal.question, proposal.sql)
        return replace(proposal, question=masked.question, sql=masked.sql or "", note="", episode=None)
    return replace(proposal, sql=masked_like(workspace, opened, record, proposal.sql), note="", episode=None)


def masked_like(workspace: Workspace, opened: OpenDatabase, record: AnswerRecord, sql: str) -> str:
    """Another query for an answer's question, masked as that question is."""
    from sqlcrystal.databases.masks import mask_like

    spoken = workspace.heard(record.id)
    names, dialect = schema_names(opened), opened.database.dialect
    return mask_like(sql, masked=record.question, spoken=spoken, dialect=dialect, names=names)


def masked_query(opened: OpenDatabase, question: str, sql: str | None, *, runs: bool = True) -> "Masked":
    """Take the values out of a question and its query; if that does not run, functions may be anybody's words."""
    from sqlcrystal.databases.masks import mask

    return mask(question, sql, dialect=opened.database.dialect, names=schema_names(opened), runs=runs)


def schema_names(opened: OpenDatabase) -> frozenset[str]:
    """Name a database's tables, columns and types; not its comments, defaults and checks, which hold values."""
    names: set[str] = set()
    for table in opened.presenter.tables():
        parts = table.name.split(".")
        names.update((table.name, *parts, *(column.name for column in table.columns)))
        if not table.columns and table.kind != "type":
            names.update(re.findall(r"\w+", table.definition))
    return frozenset(names)


class FilledMemory:
    """A memory whose cards get their values from the question that is asked now, where it reads like theirs."""

    def __init__(self, memory: Memory, opened: OpenDatabase) -> None:
        """Fill what another memory brings up."""
        self._memory = memory
        self._site = opened

    def recall(self, question: Question) -> Sequence[Retrieved]:
        """Recall as the other memory does, filled where that is possible."""
        recalled = self._memory.recall(question)
        return [
            replace(retrieved, card=filled(retrieved.card, question, self._site.database.dialect))
            for retrieved in recalled
        ]

    def arrange(self, retrieved: Sequence[Retrieved]) -> Sequence[Card]:
        """Arrange as the other memory does."""
        return self._memory.arrange(retrieved)


def filled(card: Card, question: Question, dialect: str) -> Card:
    """Fill a masked card with the values of a question that differs from its own in nothing else."""
    from sqlcrystal.databases.masks import filled_sql, is_masked
    from sqlcrystal.serving.replay import exchange

    exchanged = exchange(card, question.text, dialect) if is_masked(card.sql) else None
    if exchanged is None:
        return card
    asked, values = card.question.text, dict(exchanged.values)
    for mark, value in values.items():
        asked = asked.replace(mark, value)
    sql, text = filled_sql(card.sql, values), filled_sql(card.text, values)
    return replace(card, sql=sql, text=text, question=replace(card.question, text=asked))
