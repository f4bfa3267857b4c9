"""From a verdict to the bank, in one transaction: the decision, its card, and the cards that it contradicts."""

import secrets

from sqlcrystal.bank import AnswerRecord, Decision, Entry, Verdict
from sqlcrystal.bank.records import JUDGED
from sqlcrystal.errors import BankError, UserError
from sqlcrystal.serving.documents import Ruling
from sqlcrystal.serving.privacy import kept_card
from sqlcrystal.serving.workspace import Workspace
from sqlcrystal.types import Card, CardId, CardStatus, Episode, is_personal

_LOOKED_AT = 200
"""Earlier answers to a question whose verdicts are looked at before a rule makes a card."""


def bank_card(
    workspace: Workspace,
    record: AnswerRecord,
    card: Card,
    episode: Episode,
    *,
    verdict: Verdict,
    proposal: str = "",
    note: str = "",
) -> Ruling:
    """Keep a verdict with the card it makes; one question has one card, so the last word takes the others out.

    The last word of a person, that is: where one stands, a rule or a check makes no card of another answer.
    """
    store, given = workspace.store, card.admission
    trace: Episode | None = episode
    if workspace.keeps_no_values(record.database):
        card, trace, note = kept_card(workspace, record, card), None, ""
    with store.transaction():
        objection = "" if is_personal(given.signal) else word_of_a_person(workspace, record, card)
        if objection:
            raise UserError(objection)
        decided = store.decisions.decide(
            record,
            verdict,
            by=given.by,
            signal=given.signal,
            sql=card.sql,
            note=note,
            proposal=proposal,
            bank=lambda: _add(workspace, card, trace),
        )
        kept = CardId(decided.decision.card)
        replaced = _supersede(workspace, record, decided.before, kept=kept, by=given.by) if decided.new else ()
    return _ruling(record, decided.decision, kept, replaced, new=decided.new)


def keep_rejection(
    workspace: Workspace,
    record: AnswerRecord,
    *,
    by: str,
    signal: str,
    note: str = "",
    proposal: str = "",
    another: bool = False,
) -> Ruling:
    """Keep a rejection, and stop serving the cards that say what was rejected, unless another question was meant."""
    store = workspace.store
    note = "" if workspace.keeps_no_values(record.database) else note
    with store.transaction():
        decided = store.decisions.decide(
            record, Verdict.REJECTED, by=by, signal=signal, sql=record.sql or "", note=note, proposal=proposal
        )
        same = store.bank.find(database=record.database, status=CardStatus.ACTIVE, question=record.question)
        wrong = [card.id for card in same if card.sql == record.sql] if decided.new and not another else []
        reason = f"answer {record.id} was rejected"
        store.bank.set_statuses(wrong, CardStatus.DISABLED, by=by, reason=reason, cause=record.id)
    return _ruling(record, decided.decision, CardId(""), tuple(wrong), new=decided.new)


def word_of_a_person(workspace: Workspace, record: AnswerRecord, card: Card) -> str:
    """Tell what a person said that speaks against this card, if so: rules and checks do not overrule people."""
    store = workspace.store
    known = store.bank.find(database=record.database, question=record.question)
    served = [other for other in known if other.status is CardStatus.ACTIVE and is_personal(other.admission.signal)]
    if served:
        others = [other for other in served if other.sql != card.sql]
        return f"card {others[0].id} of {others[0].admission.by} stands" if others else ""
    for other in known:
        if other.sql == card.sql and other.status is CardStatus.DISABLED and not _gave_way_to_a_rule(workspace, other):
            return f"card {other.id} was taken out of service"
    for earlier in store.answers.recent(database=record.database, question=record.question, limit=_LOOKED_AT):
        standing = store.decisions.standing(earlier.id) if earlier.sql == record.sql else None
        if standing is not None and is_personal(standing.signal) and JUDGED.get(standing.verdict) is False:
            return f"{standing.by} said of answer {earlier.id}, which has the same SQL, that it is wrong"
    return ""


def _gave_way_to_a_rule(workspace: Workspace, card: Card) -> bool:
    """Tell whether a card that no person vouched for took this one's place."""
    changes = workspace.store.bank.history(card.id)
    cause = changes[-1].cause if changes else ""
    try:
        successor = workspace.store.bank.get(cause)
    except BankError:
        return False
    return successor.id == cause and not is_personal(successor.admission.signal)


def new_proposal_id() -> str:
    """Make an id that no answer has: those are hexadecimal."""
    return f"p-{secrets.token_hex(4)}"


def _add(workspace: Workspace, card: Card, episode: Episode | None) -> CardId:
    (added,) = workspace.store.bank.add_all([Entry(card=card, episode=episode)])
    if not added.new:
        workspace.store.bank.readmit(added.id, card.admission)
    return added.id


def _supersede(
    workspace: Workspace, record: AnswerRecord, before: Decision | None, *, kept: CardId, by: str
) -> tuple[CardId, ...]:
    bank = workspace.store.bank
    others = [
        card.id
        for card in bank.find(database=record.database, status=CardStatus.ACTIVE, question=record.question)
        if card.id != kept
    ]
    if before is not None and before.card and before.card != kept and before.verdict is not Verdict.REVOKED:
        others.append(CardId(before.card))
    replaced = tuple(dict.fromkeys(others))
    bank.set_statuses(replaced, CardStatus.DISABLED, by=by, reason=f"replaced by card {kept}", cause=kept)
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
