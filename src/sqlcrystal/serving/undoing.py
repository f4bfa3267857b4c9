"""Taking a verdict back: its card leaves service, and what it had put out of service returns."""

from sqlcrystal.bank import AnswerRecord, Verdict
from sqlcrystal.bank.records import JUDGED
from sqlcrystal.errors import UserError
from sqlcrystal.serving.documents import Ruling
from sqlcrystal.serving.workspace import Workspace
from sqlcrystal.types import CardId, CardStatus


def undo(workspace: Workspace, record: AnswerRecord, *, by: str) -> Ruling:
    """Undo the verdict that stands on an answer; what was said stays on record."""
    store = workspace.store
    with store.transaction():
        standing = store.decisions.standing(record.id)
        if standing is None or standing.verdict not in JUDGED:
            raise UserError(f"answer {record.id}: no verdict stands on it")
        decided = store.decisions.decide(record.id, Verdict.UNDONE, by=by, signal="user")
        reason = f"verdict on answer {record.id} undone"
        if standing.card:
            store.bank.set_statuses(
                [standing.card], CardStatus.DISABLED, by=by, reason=reason, cause=decided.decision.id
            )
        causes = {standing.card, record.id} - {""}
        same = store.bank.find(database=record.database, status=CardStatus.DISABLED, question=record.question)
        back = [card.id for card in same if _last_cause(workspace, card.id) in causes and card.id != standing.card]
        answered = store.bank.find(database=record.database, status=CardStatus.ACTIVE, question=record.question)
        back = [] if answered else back[-1:]
        store.bank.set_statuses(back, CardStatus.ACTIVE, by=by, reason=reason, cause=decided.decision.id)
    return Ruling(
        id=record.id,
        database=record.database,
        verdict=Verdict.UNDONE,
        by=decided.decision.by,
        signal="user",
        card=CardId(standing.card),
        replaced=tuple(back),
        memory=record.memory,
        new=decided.new,
    )


def _last_cause(workspace: Workspace, card_id: str) -> str:
    history = workspace.store.bank.history(card_id)
    return history[-1].cause if history else ""
