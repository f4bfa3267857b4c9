"""From a verdict to the bank, in one transaction: the decision, its card, and the cards that it contradicts."""

import secrets

from msgspec import Struct

from sqlcrystal.bank import AnswerRecord, Decision, Entry, Verdict
from sqlcrystal.serving.desk import Desk
from sqlcrystal.serving.privacy import kept_card
from sqlcrystal.types import Card, CardId, CardStatus, Episode


class Ruling(Struct, frozen=True, kw_only=True):
    """A verdict as it stands: on which answer, the card it made, and the cards it took out of service."""

    id: str
    database: str
    verdict: Verdict
    by: str
    signal: str
    card: CardId
    replaced: tuple[CardId, ...] = ()
    memory: bool = True
    """Whether the answer was given with memory: told only now, so that it could not sway the verdict."""
    new: bool = True
    """False when the same had been said before."""


def bank_card(
    desk: Desk,
    record: AnswerRecord,
    card: Card,
    episode: Episode,
    *,
    verdict: Verdict,
    proposal: str = "",
    note: str = "",
) -> Ruling:
    """Keep a verdict with the card it makes; one question has one card, so the last word takes the others out."""
    store, given = desk.store, card.admission
    trace: Episode | None = episode
    if desk.keeps_no_values(record.database):
        card, trace, note = kept_card(desk, record, card), None, ""
    with store.transaction():
        decided = store.decisions.decide(
            record,
            verdict,
            by=given.by,
            signal=given.signal,
            sql=card.sql,
            note=note,
            proposal=proposal,
            bank=lambda: _add(desk, card, trace),
        )
        kept = CardId(decided.decision.card)
        replaced = _supersede(desk, record, decided.before, kept=kept, by=given.by) if decided.new else ()
    return _ruling(record, decided.decision, kept, replaced, new=decided.new)


def reject_answer(
    desk: Desk, record: AnswerRecord, *, by: str, signal: str, note: str = "", proposal: str = ""
) -> Ruling:
    """Keep a rejection, and stop serving the cards that say what was rejected."""
    store = desk.store
    note = "" if desk.keeps_no_values(record.database) else note
    with store.transaction():
        decided = store.decisions.decide(
            record, Verdict.REJECTED, by=by, signal=signal, sql=record.sql or "", note=note, proposal=proposal
        )
        same = store.bank.find(database=record.database, status=CardStatus.ACTIVE, question=record.question)
        wrong = [card.id for card in same if card.sql == record.sql] if decided.new else []
        store.bank.set_statuses(wrong, CardStatus.DISABLED, by=by, reason=f"answer {record.id} was rejected")
    return _ruling(record, decided.decision, CardId(""), tuple(wrong), new=decided.new)


def new_proposal_id() -> str:
    """An id that no answer has: those are hexadecimal."""
    return f"p-{secrets.token_hex(4)}"


def _add(desk: Desk, card: Card, episode: Episode | None) -> CardId:
    (added,) = desk.store.bank.add_all([Entry(card=card, episode=episode)])
    if not added.new:
        desk.store.bank.readmit(added.id, card.admission)
    return added.id


def _supersede(
    desk: Desk, record: AnswerRecord, before: Decision | None, *, kept: CardId, by: str
) -> tuple[CardId, ...]:
    bank = desk.store.bank
    others = [
        card.id
        for card in bank.find(database=record.database, status=CardStatus.ACTIVE, question=record.question)
        if card.id != kept
    ]
    if before is not None and before.card and before.card != kept and before.verdict is not Verdict.REVOKED:
        others.append(CardId(before.card))
    replaced = tuple(dict.fromkeys(others))
    bank.set_statuses(replaced, CardStatus.DISABLED, by=by, reason=f"replaced by card {kept}")
    return replaced


def _ruling(
    record: AnswerRecord, decision: Decision, card: CardId, replaced: tuple[CardId, ...], *, new: bool
) -> Ruling:
    return Ruling(
        id=record.id,
        database=record.database,
        verdict=decision.verdict,
        by=decision.by,
        signal=decision.signal,
        card=card,
        replaced=replaced,
        memory=record.memory,
        new=new,
    )
