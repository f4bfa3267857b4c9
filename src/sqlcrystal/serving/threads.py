"""Conversations in service: a follow-up read after the turns before it, and a question read with a note on it."""

from sqlcrystal import pipeline
from sqlcrystal.bank import AnswerRecord, Verdict
from sqlcrystal.bank.records import FORGOTTEN
from sqlcrystal.errors import SqlcrystalError, UserError
from sqlcrystal.serving.clock import ClockedModel
from sqlcrystal.serving.stories import as_it_stands, standing_verdict, turns_until
from sqlcrystal.serving.workspace import Workspace
from sqlcrystal.solving.following import PastTurn, Reading, Rewriter, unrewritten
from sqlcrystal.types import Question


def read_after(workspace: Workspace, question: Question, earlier: AnswerRecord | None, *, by: str) -> Reading:
    """Read a question as it stands alone after an answer and those before it."""
    if earlier is None:
        return Reading(question=question)
    if earlier.database != question.database:
        raise UserError(
            f"follow: answer {earlier.id} is of database {earlier.database!r}, not of {question.database!r}"
        )
    told = [_turn(workspace, record, by=by) for record in turns_until(workspace, earlier)]
    turns = [turn for turn in told if turn is not None]
    return pipeline.read(question, turns, rewriter=Rewriter(ClockedModel(workspace.model)))


def read_noted(workspace: Workspace, question: Question, sql: str | None, note: str) -> Reading:
    """Read a question with a note on its answer; where the model fails, by the note's own words."""
    if not note.strip():
        return Reading(question=question)
    try:
        return Rewriter(ClockedModel(workspace.model)).noted(question, sql, note)
    except SqlcrystalError:  # a person's verdict stands also where no model can be asked
        return unrewritten(question, sql, note)


def _turn(workspace: Workspace, given: AnswerRecord, *, by: str) -> PastTurn | None:
    """Tell an answer as a turn: with the SQL that stands, and no SQL that was rejected or has lost its values.

    The words of a question whose values are not kept are known to this process, and told to nobody but their speaker.
    """
    from sqlcrystal.databases.masks import is_masked

    record = as_it_stands(workspace, given)
    if record.question == FORGOTTEN:
        return None
    spoken = workspace.heard(record.id) if record.asked_by == by else ""
    verdict = standing_verdict(workspace, record)
    wrong = record.error or (verdict is not None and verdict.verdict is Verdict.REJECTED)
    sql = None if wrong or record.sql is None or is_masked(record.sql) else record.sql
    return PastTurn(spoken or record.question, sql)
