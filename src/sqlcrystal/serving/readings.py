"""Two readings of a question: the views that it was answered from fall apart, and a person picks the one they meant."""

from math import ceil, floor
from typing import NamedTuple

from sqlcrystal.bank import AnswerRecord, Proposal
from sqlcrystal.errors import BankError
from sqlcrystal.serving.answers import Draft
from sqlcrystal.serving.banking import new_proposal_id
from sqlcrystal.serving.documents import Offer, PossibleReading
from sqlcrystal.serving.privacy import kept_proposal
from sqlcrystal.serving.workspace import OpenDatabase, Workspace
from sqlcrystal.types import Rows

LOOKED_AT = 20
"""So many latest answers of a database, the present one among them, keep within the share that may ask."""


class Beside(NamedTuple):
    """A choice beside an answer, and the proposal that keeps it: a stored query offered, or a second reading."""

    offer: Offer | None = None
    readings: tuple[PossibleReading, ...] = ()
    proposal: Proposal | None = None


def second_reading(workspace: Workspace, opened: OpenDatabase, draft: Draft, record: AnswerRecord) -> Beside | None:
    """Give both readings of a draft that has two, unless enough of the latest answers asked already.

    The record is the answer as it is kept, so that nothing is kept of the other reading that is not kept of the first.
    """
    if draft.other is None or draft.sql is None or not _may_ask(workspace, opened):
        return None
    proposal = Proposal(id=new_proposal_id(), database=opened.name, answer=record.id, at=record.at, sql=draft.other)
    proposal = kept_proposal(workspace, opened, record, proposal)
    execution = opened.database.execute(draft.other)
    # Without their values two queries may be the same, and then no pick could tell them apart.
    if not isinstance(execution, Rows) or not isinstance(draft.execution, Rows) or proposal.sql == record.sql:
        return None
    from sqlcrystal.serving.in_words import in_words  # whose parser is not needed before the model has answered

    shown = ((draft.sql, draft.execution), (draft.other, execution))
    readings = tuple(
        PossibleReading(
            number=number,
            sql=sql,
            words=in_words(workspace, opened.name, sql, draft.question.text).words,
            columns=rows.columns,
            rows=rows.rows,
            row_count=len(rows.rows),
        )
        for number, (sql, rows) in enumerate(shown, start=1)
    )
    return Beside(readings=readings, proposal=proposal)


def other_proposal(workspace: Workspace, record: AnswerRecord) -> Proposal | None:
    """Find what keeps the second reading of an answer; None where there is none, or its words were forgotten."""
    try:
        return workspace.store.decisions.proposal(record.other) if record.other else None
    except BankError:
        return None


def kept_readings(workspace: Workspace, record: AnswerRecord) -> tuple[PossibleReading, ...]:
    """Give both readings of an answer again, as they are kept: the rows of the second are not."""
    if record.sql is None:
        return ()
    proposal = other_proposal(workspace, record)
    if proposal is None:
        return ()
    from sqlcrystal.serving.in_words import in_words

    other = proposal.sql
    first, second = (in_words(workspace, record.database, sql, record.question).words for sql in (record.sql, other))
    rows = record.rows or ()
    return (
        PossibleReading(
            number=1, sql=record.sql, words=first, columns=record.columns, rows=rows, row_count=record.row_count
        ),
        PossibleReading(number=2, sql=other, words=second),
    )


def _may_ask(workspace: Workspace, opened: OpenDatabase) -> bool:
    """Tell whether this answer may be given as two: people leave tools that always ask."""
    share = opened.entry.readings
    if not share:
        return False
    window = max(LOOKED_AT, ceil(1 / share))
    latest = workspace.store.answers.recent(database=opened.name, limit=window - 1)
    return sum(bool(record.other) for record in latest) < floor(share * window + 1e-9)
