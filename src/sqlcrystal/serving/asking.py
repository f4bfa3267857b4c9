"""From a question to an answer that is kept: replayed, or retrieved for, solved, executed and repaired."""

import hashlib
import secrets
import time
from typing import Any

import msgspec
from msgspec.structs import replace

from sqlcrystal.bank import AnswerRecord, CardUse, Proposal, question_key
from sqlcrystal.consumption.memory import NoMemory
from sqlcrystal.errors import ModelError, UserError
from sqlcrystal.serving.answers import Event, Notify, ServedAnswer, served
from sqlcrystal.serving.banking import new_proposal_id
from sqlcrystal.serving.documents import Offer
from sqlcrystal.serving.draft import Draft, Vouched
from sqlcrystal.serving.freshness import FreshMemory
from sqlcrystal.serving.hold_out import ServingArm, draw
from sqlcrystal.serving.privacy import FilledMemory, is_private, kept, kept_trace
from sqlcrystal.serving.solving import solve
from sqlcrystal.serving.usefulness import conflict, result_digest, spread
from sqlcrystal.serving.workspace import OpenDatabase, Workspace
from sqlcrystal.timestamps import timestamp
from sqlcrystal.types import Failure, Question, Rows

LONGEST_QUESTION = 10_000
KEPT_ROWS = 100
"""Rows of a result that the store keeps; the digest is of all."""
_NO_COST: dict[str, Any] = {"calls": 0, "prompt_tokens": 0, "completion_tokens": 0, "seconds": 0.0}


def ask(
    workspace: Workspace,
    text: str,
    *,
    database: str,
    by: str,
    memory: bool | None = None,
    on_event: Notify | None = None,
) -> ServedAnswer:
    """Answer a question over one database, and keep the answer; nothing is kept when the model or database fails."""
    notify = on_event or (lambda _: None)
    started = time.perf_counter()
    question = as_question(text, database)
    opened = workspace.open(question.database)
    arm = draw(workspace, opened, question, wanted=memory)
    draft = _draft(workspace, opened, question, with_memory=arm.memory, notify=notify)
    record = _record(workspace, opened, draft, by=by, arm=arm, seconds=time.perf_counter() - started)
    twin = _twin(workspace, opened, draft, record, arm) if arm.both else None
    lasting, offer = _keep(workspace, opened, draft, record, twin)
    vouched = _vouched(workspace, opened, lasting, draft)
    answer = served(
        record,
        draft.used,
        rows=draft.rows,
        row_count=len(draft.rows),
        adapted=draft.adapted,
        repaired=draft.repaired,
        offer=offer,
        verdict=vouched.verdict,
        card=vouched.card,
        checked=vouched.said,
        memory=arm.memory if vouched.verdict else None,
        trace=draft.episode,
    )
    notify(Event("done", answer.document()))
    return answer


def _keep(
    workspace: Workspace, opened: OpenDatabase, draft: Draft, record: AnswerRecord, twin: AnswerRecord | None
) -> tuple[AnswerRecord, Offer | None]:
    """The answer as the store has it from now on, with its twin, and what it offers beside; all of them or none."""
    salt = secrets.token_hex(8)
    lasting = kept(workspace, opened, record, salt)
    proposed = _offer(opened, draft, record)
    workspace.remember(opened)
    with workspace.store.appending():
        workspace.store.answers.save(lasting, kept_trace(opened, draft.episode))
        if twin is not None:
            workspace.store.answers.save(kept(workspace, opened, twin, salt))
        if proposed is not None:
            workspace.store.decisions.propose(proposed[1])
    return lasting, proposed[0] if proposed else None


def as_question(text: str, database: str) -> Question:
    """A question as the stages take it; its id is the same for every wording that counts as the same question."""
    asked = text.strip()
    if not asked:
        raise UserError("question: is empty")
    if len(asked) > LONGEST_QUESTION:
        raise UserError(f"question: {len(asked):,} characters; at most {LONGEST_QUESTION:,}")
    try:
        digest = hashlib.sha256(question_key(asked).encode()).hexdigest()
    except UnicodeEncodeError as error:
        raise UserError(f"question: not valid Unicode ({error.reason})") from None
    return Question(id=digest[:16], database=database, text=asked)


def _draft(
    workspace: Workspace, opened: OpenDatabase, question: Question, *, with_memory: bool, notify: Notify
) -> Draft:
    if not with_memory:
        return solve(workspace, opened, question, memory=NoMemory(), notify=notify)
    if opened.entry.replay:
        from sqlcrystal.serving.replay import replay

        replayed = replay(workspace, opened, question)
        if replayed is not None:
            notify(Event("cards", {"cards": msgspec.to_builtins(replayed.used)}))
            notify(Event("sql", {"sql": replayed.sql}))
            notify(Event("rows", {"columns": replayed.columns, "rows": replayed.rows[:KEPT_ROWS], "error": ""}))
            return replayed
    fresh = FreshMemory(workspace, opened)
    memory = FilledMemory(fresh, opened) if is_private(opened) else fresh
    return solve(workspace, opened, question, memory=memory, notify=notify)


def draft_answer(workspace: Workspace, question: Question, *, with_memory: bool) -> Draft:
    """Answer a question and keep nothing of it: for tests."""
    return _draft(
        workspace, workspace.open(question.database), question, with_memory=with_memory, notify=lambda _: None
    )


def _twin(
    workspace: Workspace, opened: OpenDatabase, draft: Draft, shown: AnswerRecord, arm: ServingArm
) -> AnswerRecord | None:
    """What the other arm answers, for the account only; None where its model failed."""
    other = ServingArm(memory=not arm.memory, share=arm.share)
    no_card = not draft.retrieved if arm.memory else not FreshMemory(workspace, opened).recall(draft.question)
    if no_card and not draft.replayed:  # without a card both arms ask the very same
        return replace(shown, id=_new_id(), twin_of=shown.id, memory=other.memory, cards=(), **_NO_COST)
    started = time.perf_counter()
    try:
        hidden = _draft(workspace, opened, draft.question, with_memory=other.memory, notify=lambda _: None)
    except ModelError:
        return None
    record = _record(workspace, opened, hidden, by=shown.asked_by, arm=other, seconds=time.perf_counter() - started)
    return replace(record, twin_of=shown.id)


def _new_id() -> str:
    return secrets.token_hex(6)


def _record(
    workspace: Workspace, opened: OpenDatabase, draft: Draft, *, by: str, arm: ServingArm, seconds: float
) -> AnswerRecord:
    execution = draft.execution
    rows = execution.rows if isinstance(execution, Rows) else ()
    digest = result_digest(execution)
    return AnswerRecord(
        id=_new_id(),
        database=opened.name,
        question=draft.question.text,
        at=timestamp(),
        asked_by=by,
        sql=draft.sql,
        fingerprint=opened.database.fingerprint(),
        columns=draft.columns,
        rows=rows[:KEPT_ROWS] if opened.entry.values == "allowed" else None,
        row_count=len(rows),
        result_digest=digest,
        cards=tuple(CardUse(retrieved.card.id, retrieved.score) for retrieved in draft.retrieved),
        memory=arm.memory,
        share=arm.share,
        replayed=draft.replayed,
        calls=len(draft.calls),
        prompt_tokens=sum(call.completion.prompt_tokens for call in draft.calls),
        completion_tokens=sum(call.completion.completion_tokens for call in draft.calls),
        seconds=round(seconds, 6),
        spread=spread(workspace, draft, digest),
        conflict=conflict(opened, draft, digest),
        error=_error(draft),
    )


def _error(draft: Draft) -> str:
    if draft.sql is None:
        return "the model's reply held no SQL"
    return draft.execution.message if isinstance(draft.execution, Failure) else ""


def _offer(opened: OpenDatabase, draft: Draft, record: AnswerRecord) -> tuple[Offer, Proposal] | None:
    """The stored query with this question's literals, where it gives another result than the model's."""
    if draft.replayed or not draft.retrieved or is_private(opened):
        return None
    from sqlcrystal.serving.replay import adaptation

    near = [retrieved.card for retrieved in draft.retrieved]
    adapted = adaptation(opened, draft.question, near, fingerprint=record.fingerprint)
    if adapted is None or result_digest(adapted.execution) == record.result_digest:
        return None
    offer = Offer(id=new_proposal_id(), card=adapted.card.id, sql=adapted.sql, exchanged=adapted.exchanged)
    told = ", ".join(f"{old} → {new}" for old, new in adapted.exchanged)
    proposal = Proposal(
        id=offer.id,
        database=opened.name,
        answer=record.id,
        at=record.at,
        sql=adapted.sql,
        note=f"card {adapted.card.id} with {told}",
    )
    return offer, proposal


def _vouched(workspace: Workspace, opened: OpenDatabase, record: AnswerRecord, draft: Draft) -> Vouched:
    """Let the team's assertions and checks speak of an answer; most teams have none."""
    if not (opened.entry.assertion or opened.entry.check):
        return Vouched()
    from sqlcrystal.serving.checks import vouch

    return vouch(workspace, opened, record, draft.episode)
