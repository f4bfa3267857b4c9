"""Things beside an answer's SQL: a repair that was proposed, or a near card that says something else."""

from collections.abc import Sequence

from msgspec import Struct

from sqlcrystal.bank import Scope
from sqlcrystal.interfaces.server.access import Door
from sqlcrystal.interfaces.web.differences import DiffLine, changed_lines
from sqlcrystal.interfaces.web.tables import TableView, first_rows
from sqlcrystal.interfaces.web.text import pretty_sql
from sqlcrystal.serving.documents import Result
from sqlcrystal.serving.stories import AnswerStory


class ProposalView(Struct, frozen=True, kw_only=True):
    """A repair's SQL beside the one that was rejected."""

    id: str
    sql: str
    lines: Sequence[DiffLine]
    table: TableView
    note: str = ""
    question: str = ""
    """The question that it answers, where a note made it another."""
    error: str = ""
    words: str = ""
    reads_otherwise: bool = False
    """True for the second reading of the question, which is no repair."""

    columns = property(lambda self: self.table.columns)
    rows = property(lambda self: self.table.rows)
    row_count = property(lambda self: self.table.row_count)
    numeric = property(lambda self: self.table.numeric)
    tiles = property(lambda self: self.table.tiles)
    measures = property(lambda self: self.table.measures)
    row_words = property(lambda self: self.table.row_words)
    in_short = property(lambda self: self.table.in_short)
    pages, first = 1, 1


class ConflictView(Struct, frozen=True, kw_only=True):
    """A near card whose rows are others, and the clauses in which its SQL differs."""

    card: str
    question: str
    clauses: Sequence[str]
    lines: Sequence[DiffLine]


def proposal_of(door: Door, story: AnswerStory, scope: Scope) -> ProposalView | None:
    """Show the latest proposal for an answer that is not decided on, run behind the guard."""
    proposal, record = story.proposal, story.record
    if proposal is None:
        return None
    result = Result()
    if story.proposal_runnable:
        result = door.run(proposal.sql, record.database, scope=scope)
    return ProposalView(
        id=proposal.id,
        sql=proposal.sql,
        lines=changed_lines(pretty_sql(record.sql or "", story.dialect), pretty_sql(proposal.sql, story.dialect)),
        table=first_rows(result),
        note=proposal.note,
        question=proposal.question,
        error=result.error,
        words=result.words,
        reads_otherwise=proposal.id == record.other,
    )


def conflict_of(story: AnswerStory) -> ConflictView | None:
    """Show the near card that disagrees, where the answer was kept with one."""
    from sqlcrystal.writing.diff import diff

    record, dialect = story.record, story.dialect
    used = next((use for use in story.cards if record.conflict and use.score == record.conflict), None)
    if used is None or record.sql is None:
        return None
    card = used.card
    return ConflictView(
        card=card.id,
        question=card.question.text,
        clauses=[each.clause for each in diff(card.sql, record.sql, dialect)],
        lines=changed_lines(pretty_sql(card.sql, dialect), pretty_sql(record.sql, dialect)),
    )
