"""From a question to an answer that is kept: replayed, or retrieved for, solved, executed and repaired."""

import hashlib
import re
import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec.structs import replace

from sqlcrystal.bank import AnswerRecord, CardUse, Proposal, TermUse, question_key
from sqlcrystal.consumption.memory import NoMemory
from sqlcrystal.databases.results import result_digest
from sqlcrystal.errors import ModelError, SqlcrystalError, UserError
from sqlcrystal.serving.answers import Draft, Event, Notify, ServedAnswer, Vouched, conflict, served, spread, unheard
from sqlcrystal.serving.banking import new_proposal_id
from sqlcrystal.serving.documents import Offer
from sqlcrystal.serving.privacy import FilledMemory, is_private, kept, kept_trace
from sqlcrystal.serving.reach import used_definitions
from sqlcrystal.serving.readings import Beside, second_reading
from sqlcrystal.serving.refusing import refuse_what_asks_nothing
from sqlcrystal.serving.solving import solve
from sqlcrystal.serving.workspace import OpenDatabase, Workspace
from sqlcrystal.solving.following import Reading
from sqlcrystal.timestamps import timestamp
from sqlcrystal.types import Card, Failure, Question, Retrieved, Rows

if TYPE_CHECKING:
    from sqlcrystal.telling.words import Meant

LONGEST_QUESTION = 10_000
CHAT_MARKS = re.compile(r"<\|[^|<>\s]{1,40}\|>|<(?:start|end)_of_turn>|\[/?INST\]|</?s>")
"""Marks by which models tell turns of a chat apart; in a question, and so in the prompts its card stands in, no marks.
"""
KEPT_ROWS = 100
"""Rows of a result that the store keeps; the digest is of all."""
_NO_COST: dict[str, Any] = {"calls": 0, "prompt_tokens": 0, "completion_tokens": 0, "seconds": 0.0}


class ServingArm(NamedTuple):
    """The arm that a question is given: with cards or without, by which chance, with the other arm's answer or not."""

    memory: bool
    share: float = 0.0
    both: bool = False
    audit: bool = False
    """Whether chance chose the answer to be judged."""


def ask(
    workspace: Workspace,
    text: str,
    *,
    database: str,
    by: str,
    earlier: AnswerRecord | None = None,
    memory: bool | None = None,
    on_event: Notify | None = None,
) -> ServedAnswer:
    """Answer a question over one database, and keep the answer; nothing is kept when the model or database fails.

    After an earlier answer, the question is first read as one that stands alone, and that one is answered.
    """
    notify = on_event or unheard
    started = time.perf_counter()
    opened = workspace.open(database)
    reading = _read(workspace, text, database, earlier, by=by, notify=notify)
    question = reading.question
    if not reading.follows:
        refuse_what_asks_nothing(workspace, opened, question)
    arm = draw(workspace, opened, question, wanted=memory)
    draft = _draft(workspace, opened, question, with_memory=arm.memory, notify=notify)
    draft = replace(draft, calls=(*reading.calls, *draft.calls))
    record = record_of(workspace, opened, draft, by=by, arm=arm, seconds=time.perf_counter() - started)
    if reading.follows and earlier is not None:
        record = replace(record, follows=earlier.id, asked=text.strip())
    twin = _twin(workspace, opened, draft, record, arm) if arm.both else None
    lasting, beside = _keep(workspace, opened, draft, record, twin)
    from sqlcrystal.serving.in_words import in_words  # whose parser is not needed before the model has answered

    vouched = _vouched(workspace, opened, lasting, draft)
    told = in_words(workspace, opened.name, draft.sql, question.text)
    answer = served(
        record,
        draft.used,
        rows=draft.rows,
        row_count=len(draft.rows),
        words=told.words,
        unasked=told.unasked,
        adapted=draft.adapted,
        repaired=draft.repaired,
        audit=lasting.audit,
        offer=beside.offer,
        readings=beside.readings,
        definitions=used_definitions(workspace, lasting),
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
) -> tuple[AnswerRecord, Beside]:
    """Keep the answer with its twin, and what is shown beside it; all of them or none."""
    salt = secrets.token_hex(8)
    lasting = kept(workspace, opened, record, salt)
    beside = _offer(workspace, opened, draft, record) or second_reading(workspace, opened, draft, lasting) or Beside()
    if beside.readings and beside.proposal is not None:
        lasting = replace(lasting, other=beside.proposal.id)
    workspace.remember(opened)
    answers = workspace.store.answers
    if lasting.audit and answers.audited_on(lasting.at[:10], database=opened.name, question=lasting.question):
        lasting = replace(lasting, audit=False)  # the day's first answer stands for the question: nobody chooses one
    with workspace.store.appending():
        answers.save(lasting, kept_trace(opened, draft.episode))
        if twin is not None:
            answers.save(kept(workspace, opened, twin, salt))
        if beside.proposal is not None:
            workspace.store.decisions.propose(beside.proposal)
    return lasting, beside


def _read(
    workspace: Workspace, text: str, database: str, earlier: AnswerRecord | None, *, by: str, notify: Notify
) -> Reading:
    """Read a question as it stands alone."""
    question = as_question(text, database)
    if earlier is None:
        return Reading(question=question)
    from sqlcrystal.serving.stories import read_after

    reading = read_after(workspace, question, earlier, by=by)
    alone = replace(as_question(reading.question.text, database), evidence=reading.question.evidence)
    notify(Event("read", {"question": alone.text, "follows": reading.follows}))
    return replace(reading, question=alone)


def without_marks(text: str) -> str:
    """Keep the marks by which models tell turns apart from being marks in a prompt."""
    return CHAT_MARKS.sub(lambda mark: f"{mark[0][0]} {mark[0][1:]}", text)


def as_question(text: str, database: str) -> Question:
    """Make a question as the stages take it; its id is the same for every wording that counts as the same question."""
    asked = without_marks(text.strip())
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
        meant = meant_in(workspace, opened, question)
        return solve(workspace, opened, question, memory=NoMemory(), notify=notify, meant=meant)
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
    meant = meant_in(workspace, opened, question)
    return solve(workspace, opened, question, memory=memory, notify=notify, meant=meant)


def draft_answer(workspace: Workspace, question: Question, *, with_memory: bool) -> Draft:
    """Answer a question and keep nothing of it: for tests."""
    return _draft(workspace, workspace.open(question.database), question, with_memory=with_memory, notify=unheard)


def _twin(
    workspace: Workspace, opened: OpenDatabase, draft: Draft, shown: AnswerRecord, arm: ServingArm
) -> AnswerRecord | None:
    """Tell what the other arm answers, for the account only; None where its model failed."""
    other = ServingArm(memory=not arm.memory, share=arm.share)
    no_card = not draft.retrieved if arm.memory else not FreshMemory(workspace, opened).recall(draft.question)
    if no_card and not draft.replayed:  # without a card both arms ask the very same
        return replace(shown, id=_new_id(), twin_of=shown.id, memory=other.memory, cards=(), audit=False, **_NO_COST)
    started = time.perf_counter()
    try:
        hidden = _draft(workspace, opened, draft.question, with_memory=other.memory, notify=unheard)
    except ModelError:
        return None
    record = record_of(workspace, opened, hidden, by=shown.asked_by, arm=other, seconds=time.perf_counter() - started)
    return replace(record, twin_of=shown.id)


def _new_id() -> str:
    return secrets.token_hex(6)


def record_of(
    workspace: Workspace, opened: OpenDatabase, draft: Draft, *, by: str, arm: ServingArm, seconds: float
) -> AnswerRecord:
    """Write an answer down as it was given, before anything is taken out of it."""
    execution = draft.execution
    rows = execution.rows if isinstance(execution, Rows) else ()
    digest = result_digest(execution)
    disagreed, contradicted = spread(workspace, draft, digest), conflict(opened, draft, digest)
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
        definitions=tuple(TermUse(meant.card, meant.name) for meant in draft.meant),
        memory=arm.memory,
        share=arm.share,
        audit=arm.audit,
        trouble=bool(disagreed or contradicted) or _shows_trouble(draft),
        replayed=draft.replayed,
        calls=len(draft.calls),
        prompt_tokens=sum(call.completion.prompt_tokens for call in draft.calls),
        completion_tokens=sum(call.completion.completion_tokens for call in draft.calls),
        seconds=round(seconds, 6),
        spread=disagreed,
        conflict=contradicted,
        confidence=draft.confidence,
        traits=draft.traits,
        error=_error(draft),
    )


def _shows_trouble(draft: Draft) -> bool:
    """Tell whether the result alone warns who looks at it: it failed, or holds nothing."""
    from sqlcrystal.databases.symptoms import shown_by_the_result  # whose parser is loaded with the answer

    return draft.execution is None or bool(shown_by_the_result(draft.execution))


def _error(draft: Draft) -> str:
    if draft.sql is None:
        return "the model's reply held no SQL"
    return draft.execution.message if isinstance(draft.execution, Failure) else ""


def _offer(workspace: Workspace, opened: OpenDatabase, draft: Draft, record: AnswerRecord) -> Beside | None:
    """Offer the stored query with this question's literals, where it gives another result than the model's."""
    if draft.replayed or not draft.retrieved or is_private(opened):
        return None
    from sqlcrystal.serving.in_words import in_words
    from sqlcrystal.serving.replay import adaptation

    near = [retrieved.card for retrieved in draft.retrieved]
    adapted = adaptation(opened, draft.question, near, fingerprint=record.fingerprint)
    if adapted is None or result_digest(adapted.execution) == record.result_digest:
        return None
    words = in_words(workspace, opened.name, adapted.sql).words
    offer = Offer(id=new_proposal_id(), card=adapted.card.id, sql=adapted.sql, exchanged=adapted.exchanged, words=words)
    told = ", ".join(f"{old} → {new}" for old, new in adapted.exchanged)
    proposal = Proposal(
        id=offer.id,
        database=opened.name,
        answer=record.id,
        at=record.at,
        sql=adapted.sql,
        note=f"card {adapted.card.id} with {told}",
    )
    return Beside(offer=offer, proposal=proposal)


def _vouched(workspace: Workspace, opened: OpenDatabase, record: AnswerRecord, draft: Draft) -> Vouched:
    """Let the team's assertions and checks speak of an answer; most teams have none."""
    if not (opened.entry.assertion or opened.entry.check):
        return Vouched()
    from sqlcrystal.serving.verdicts import vouch

    return vouch(workspace, opened, record, draft.episode)


def draw(workspace: Workspace, opened: OpenDatabase, question: Question, *, wanted: bool | None) -> ServingArm:
    """Draw the arm of a question today; who says what they want is not drawn, and not measured."""
    if wanted is not None:
        return ServingArm(memory=wanted)
    divided = workspace.experiment(opened.name)
    if not divided.hold_out:
        return ServingArm(memory=True)
    day = datetime.now(UTC).date().isoformat()
    asked = {"database": opened.name, "question": question.text}
    drawn: dict[str, Any] = {"seed": workspace.team.seed, "day": day, **asked}
    return ServingArm(
        memory=not held_out(**drawn, share=divided.hold_out),
        share=divided.hold_out,
        both=divided.both_arms,
        audit=audited(**drawn, share=opened.entry.audit),
    )


def held_out(*, seed: int, database: str, question: str, day: str, share: float) -> bool:
    """Decide by a hash: the same for every process all day, drawn anew tomorrow; a larger share only adds questions."""
    return _drawn(str(seed), database, question_key(question), day, share=share)


def audited(*, seed: int, database: str, question: str, day: str, share: float) -> bool:
    """Tell whether chance chose a question to be judged that day, whichever arm answers it."""
    return _drawn(str(seed), database, question_key(question), day, "audit", share=share)


def _drawn(*parts: str, share: float) -> bool:
    digest = hashlib.sha256("\x1f".join(parts).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") < share * 2**64


CHECK_SECONDS = 5.0
"""The time that a card of an older schema may take when it is run again."""


class FreshMemory:
    """The team's memory, in which only cards stand that run under the present schema."""

    def __init__(self, workspace: Workspace, opened: OpenDatabase) -> None:
        """Look at nothing yet."""
        self._workspace = workspace
        self._opened = opened
        self._memory = workspace.memory(opened)

    def recall(self, question: Question) -> Sequence[Retrieved]:
        """Bring at most k cards, best first; each quarantined card makes room for the next."""
        while True:
            retrieved = self._memory.recall(question)
            if all(still_runs(self._workspace, self._opened, [neighbour.card for neighbour in retrieved]).values()):
                return retrieved
            self._memory = self._workspace.memory(self._opened)

    def arrange(self, retrieved: Sequence[Retrieved]) -> Sequence[Card]:
        """Arrange as the team's memory does."""
        return self._memory.arrange(retrieved)


def meant_in(workspace: Workspace, opened: OpenDatabase, question: Question) -> "tuple[Meant, ...]":
    """Give the definitions of a question's terms that run under the present schema."""
    while True:
        found = workspace.glossary(opened.name).found(question.text)
        cards = [workspace.store.bank.get(meant.card) for meant in found]
        if all(still_runs(workspace, opened, cards).values()):
            return found


def still_runs(workspace: Workspace, opened: OpenDatabase, cards: Sequence[Card]) -> dict[str, bool]:
    """Tell whether each card runs under the present schema; only those never seen to are run, and judged at once."""
    fingerprint = opened.database.fingerprint()
    older = [card for card in cards if card.fingerprint != fingerprint]
    if not older:
        return {card.id: True for card in cards}
    from sqlcrystal.bank.revalidation import CheckOutcome, run_again

    bank = workspace.store.bank
    stale = bank.stale(opened.name, fingerprint, among=[card.id for card in older])
    quote = not workspace.keeps_no_values(opened.name)
    outcomes = {
        card.id: run_again(bank, card, opened.database, timeout=CHECK_SECONDS, quote=quote)[0]
        for card in older
        if card.id in stale
    }
    bank.mark_valid([name for name, outcome in outcomes.items() if outcome is CheckOutcome.RAN], fingerprint)
    return {card.id: outcomes.get(card.id) is not CheckOutcome.QUARANTINED for card in cards}


WARM_UP_SECONDS = 5.0
"""A bank that takes longer to embed is left to its first question: a service that does not start helps nobody."""


def warm_up(workspace: Workspace, *, seconds: float = WARM_UP_SECONDS) -> None:
    """Search the cards of each database once; what cannot be reached now is told to whoever asks."""
    import sqlcrystal.databases.symptoms
    import sqlcrystal.serving.replay  # noqa: F401  (loading the parser takes longer than a question)

    until = monotonic() + seconds
    with suppress(SqlcrystalError):
        for name in workspace.names():
            if monotonic() > until:
                return
            if workspace.store_exists() and workspace.store.bank.serves(name):
                workspace.retriever_of(name).retrieve(
                    as_question("How many are there?", name), workspace.store.bank, k=1
                )
