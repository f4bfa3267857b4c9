"""`values = "never"`: what is kept of a database holds no value; prompts get them from the question again."""

import hashlib
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sqlcrystal.bank import AnswerRecord, Proposal
from sqlcrystal.errors import UserError
from sqlcrystal.pipeline import Memory
from sqlcrystal.serving.desk import Desk, Site
from sqlcrystal.types import Card, Episode, Question, Retrieved

if TYPE_CHECKING:
    from sqlcrystal.databases.masks import Masked


def is_private(site: Site) -> bool:
    """Whether nothing that is kept may hold a value of this database."""
    return site.entry.values == "never"


def kept(desk: Desk, site: Site, record: AnswerRecord, salt: str) -> AnswerRecord:
    """An answer as the store may have it; the question as it was spoken stays in this process's memory only."""
    if not is_private(site):
        return record
    desk.hear(record.id, record.question)
    masked = masked_query(site, record.question, record.sql, runs=not record.error)
    digest = hashlib.sha256(f"{salt}{record.result_digest}".encode()).hexdigest()[:32] if record.result_digest else ""
    return replace(
        record,
        question=masked.question,
        sql=masked.sql,
        columns=(),  # a column may be named after a literal
        rows=None,
        row_count=min(record.row_count, 1),  # a query can return as many rows as a cell says
        result_digest=digest,  # of a few rows it could be guessed, so it compares within one answer only
        error="does not run" if record.error else "",
    )


def kept_trace(site: Site, episode: Episode | None) -> Episode | None:
    """How an answer came about is kept only where values may be."""
    return None if is_private(site) else episode


def kept_card(desk: Desk, record: AnswerRecord, card: Card) -> Card:
    """A card without values: its question, query and text; its id is of what is left."""
    from sqlcrystal.databases.masks import UNREADABLE

    site = desk.site(record.database)
    from sqlcrystal.writing.card import estimate_tokens, render_pair

    sql = masked_like(desk, site, record, card.sql)
    if UNREADABLE in (sql, card.sql):
        raise UserError(f"answer {record.id}: its values cannot be told from the rest of its SQL; it makes no card")
    text = render_pair(record.question, sql)
    name = hashlib.sha256("\0".join([card.database, card.writer, record.question, sql]).encode())
    question = Question(id=name.hexdigest()[16:32], database=card.database, text=record.question)
    return replace(
        card,
        id=type(card.id)(name.hexdigest()[:16]),
        question=question,
        sql=sql,
        text=text,
        tokens=estimate_tokens(text),
        admission=replace(card.admission, detail=""),
    )


def kept_edit(
    desk: Desk, card: Card, *, text: str | None, sql: str | None, reason: str
) -> tuple[str | None, str | None, str]:
    """What of an edit may be kept: a text that nobody can take the values out of is refused by leaving it out."""
    if not desk.keeps_no_values(card.database):
        return text, sql, reason
    from sqlcrystal.databases.masks import UNREADABLE
    from sqlcrystal.writing.card import render_pair

    new = card.sql if sql is None else masked_query(desk.site(card.database), "", sql).sql or card.sql
    if new == UNREADABLE:
        raise UserError(f"card {card.id}: the values of this SQL cannot be told from the rest; nothing was changed")
    return render_pair(card.question.text, new), None if sql is None else new, ""


def kept_proposal(desk: Desk, site: Site, record: AnswerRecord, proposal: Proposal) -> Proposal:
    """A proposal without values."""
    if not is_private(site):
        return proposal
    return replace(proposal, sql=masked_like(desk, site, record, proposal.sql), note="", episode=None)


def masked_like(desk: Desk, site: Site, record: AnswerRecord, sql: str) -> str:
    """Another query for an answer's question, masked as that question is."""
    from sqlcrystal.databases.masks import mask_like

    spoken = desk.heard(record.id)
    names, dialect = schema_names(site), site.database.dialect
    return mask_like(sql, masked=record.question, spoken=spoken, dialect=dialect, names=names)


def masked_query(site: Site, question: str, sql: str | None, *, runs: bool = True) -> "Masked":
    """A question and its query without values; of a query that does not run, functions may be anybody's words."""
    from sqlcrystal.databases.masks import mask

    return mask(question, sql, dialect=site.database.dialect, names=schema_names(site), runs=runs)


def schema_names(site: Site) -> frozenset[str]:
    """The names of a database's tables, columns and types; not its comments, defaults and checks, which hold values."""
    names: set[str] = set()
    for table in site.presenter.tables():
        parts = table.name.split(".")
        names.update((table.name, *parts, *(column.name for column in table.columns)))
        if not table.columns and table.kind != "type":
            names.update(re.findall(r"\w+", table.definition))
    return frozenset(names)


class FilledMemory:
    """A memory whose cards get their values from the question that is asked now, where it reads like theirs."""

    def __init__(self, memory: Memory, site: Site) -> None:
        """Fill what another memory brings up."""
        self._memory = memory
        self._site = site

    def recall(self, question: Question) -> Sequence[Retrieved]:
        """As the other memory does, filled where that is possible."""
        recalled = self._memory.recall(question)
        return [
            replace(retrieved, card=filled(retrieved.card, question, self._site.database.dialect))
            for retrieved in recalled
        ]

    def arrange(self, retrieved: Sequence[Retrieved]) -> Sequence[Card]:
        """As the other memory does."""
        return self._memory.arrange(retrieved)


def filled(card: Card, question: Question, dialect: str) -> Card:
    """A masked card with the values of a question that differs from its own in nothing else."""
    from sqlcrystal.databases.masks import is_masked
    from sqlcrystal.serving.parameters import exchange

    exchanged = exchange(card, question.text, dialect) if is_masked(card.sql) else None
    if exchanged is None:
        return card
    sql, text, asked = card.sql, card.text, card.question.text
    for mark, value in exchanged.values:
        number = mark.startswith("«n") and re.fullmatch(r"-?\d+(?:\.\d+)?", value) is not None
        quoted = value.replace("'", "''")
        for old, new in ((f"'{mark}'", value if number else f"'{quoted}'"), (mark, quoted)):
            sql, text = sql.replace(old, new), text.replace(old, new)
        asked = asked.replace(mark, value)
    return replace(card, sql=sql, text=text, question=replace(card.question, text=asked))
