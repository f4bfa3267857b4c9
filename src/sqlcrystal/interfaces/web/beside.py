"""What stands beside an answer's SQL: a repair that was proposed, or a near card that says something else."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from sqlcrystal.bank import AnswerRecord
from sqlcrystal.errors import BankError
from sqlcrystal.interfaces.server.reach import known_card
from sqlcrystal.interfaces.web.differences import DiffLine, changed_lines
from sqlcrystal.interfaces.web.tables import PAGE_ROWS, TableView
from sqlcrystal.interfaces.web.text import pretty_sql
from sqlcrystal.types import Failure, Row

if TYPE_CHECKING:
    from sqlcrystal.serving import Crystal


class ProposalView(Struct, frozen=True, kw_only=True):
    """What a repair came to, beside what was rejected."""

    id: str
    sql: str
    lines: Sequence[DiffLine]
    note: str = ""
    columns: Sequence[str] = ()
    rows: Sequence[Row] = ()
    row_count: int = 0
    error: str = ""

    @property
    def table(self) -> TableView:
        """Its rows."""
        return TableView(columns=self.columns, rows=self.rows, row_count=self.row_count)

    numeric = property(lambda self: self.table.numeric)
    tiles = property(lambda self: self.table.tiles)
    measures = property(lambda self: self.table.measures)
    row_words = property(lambda self: self.table.row_words)
    pages, first = 1, 1


class ConflictView(Struct, frozen=True, kw_only=True):
    """A near card whose rows are others, and the clauses in which its SQL differs."""

    card: str
    question: str
    clauses: Sequence[str]
    lines: Sequence[DiffLine]


def proposal_of(crystal: "Crystal", record: AnswerRecord, dialect: str) -> ProposalView | None:
    """The latest proposal for an answer that nobody decided on, run behind the guard."""
    try:
        found = crystal.store.decisions.proposals(answer=record.id)
    except BankError:
        return None
    if not found:
        return None
    proposal = found[-1]
    lines = changed_lines(pretty_sql(record.sql or "", dialect), pretty_sql(proposal.sql, dialect))
    execution = crystal.run(proposal.sql, record.database)
    if isinstance(execution, Failure):
        return ProposalView(id=proposal.id, sql=proposal.sql, lines=lines, note=proposal.note, error=execution.message)
    return ProposalView(
        id=proposal.id,
        sql=proposal.sql,
        lines=lines,
        note=proposal.note,
        columns=execution.columns,
        rows=execution.rows[:PAGE_ROWS],
        row_count=len(execution.rows),
    )


def conflict_of(crystal: "Crystal", record: AnswerRecord, dialect: str) -> ConflictView | None:
    """The near card that disagrees, where the answer was kept with one."""
    from sqlcrystal.writing.diff import diff

    if not record.conflict or record.sql is None:
        return None
    used = next((use for use in record.cards if use.score == record.conflict), None)
    card = known_card(crystal, used.card) if used is not None else None
    if card is None:
        return None
    return ConflictView(
        card=card.id,
        question=card.question.text,
        clauses=[each.clause for each in diff(card.sql, record.sql, dialect)],
        lines=changed_lines(pretty_sql(card.sql, dialect), pretty_sql(record.sql, dialect)),
    )
