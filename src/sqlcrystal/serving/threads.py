"""Conversations in service: the turns before a question, how a follow-up or a noted question reads, a whole thread."""

from sqlcrystal import pipeline
from sqlcrystal.bank import AnswerRecord, Verdict
from sqlcrystal.bank.forgetting import FORGOTTEN
from sqlcrystal.errors import BankError, SqlcrystalError, UserError
from sqlcrystal.serving.clock import ClockedModel
from sqlcrystal.serving.stories import as_it_stands, standing_verdict
from sqlcrystal.serving.workspace import Workspace
from sqlcrystal.solving.following import Reading, Rewriter, Turn, unrewritten
from sqlcrystal.types import Question

LONGEST_THREAD = 100


def read_after(workspace: Workspace, question: Question, earlier: AnswerRecord | None, *, by: str) -> Reading:
    """Read a question as it stands alone after an answer and those before it."""
    if earlier is None:
        return Reading(question=question)
    if earlier.database != question.database:
        raise UserError(
            f"follow: answer {earlier.id} is of database {earlier.database!r}, not of {question.database!r}"
        )
    turns = [turn for record in _before(workspace, earlier) if (turn := _turn(workspace, record, by=by)) is not None]
    return pipeline.read(question, turns, rewriter=Rewriter(ClockedModel(workspace.model)))


def read_noted(workspace: Workspace, question: Question, sql: str | None, note: str) -> Reading:
    """Read a question with a note on its answer; where the model fails, by the note's own words."""
    if not note.strip():
        return Reading(question=question)
    try:
        return Rewriter(ClockedModel(workspace.model)).noted(question, sql, note)
    except SqlcrystalError:  # a person's verdict stands also where no model can be asked
        return unrewritten(question, sql, note)


def thread_of(workspace: Workspace, record: AnswerRecord) -> list[AnswerRecord]:
    """List the shown answers of a conversation, each followed by those to the questions that follow it."""
    first, *_ = _before(workspace, record)
    found: list[AnswerRecord] = []
    waiting = [first]
    while waiting and len(found) < LONGEST_THREAD:
        found.append(waiting.pop(0))
        waiting = [*workspace.store.answers.after(found[-1].id), *waiting]
    return found


def _before(workspace: Workspace, record: AnswerRecord) -> list[AnswerRecord]:
    """List an answer and those that it follows, oldest first."""
    found = [record]
    while found[0].follows and len(found) < LONGEST_THREAD:
        try:
            found.insert(0, workspace.store.answers.get(found[0].follows))
        except BankError:
            break
    return found


def _turn(workspace: Workspace, given: AnswerRecord, *, by: str) -> Turn | None:
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
    return Turn(spoken or record.question, sql)
