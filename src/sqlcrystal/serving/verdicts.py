"""Verdicts on answers: confirm, correct, reject. Only a person's word, an assertion or a check makes a card."""

import re
import shlex
from collections.abc import Iterator

from msgspec.structs import replace

from sqlcrystal.admission.external import ExternalCheck
from sqlcrystal.admission.verifiers import Assertion, UserConfirmation
from sqlcrystal.bank import AnswerRecord, Proposal, Verdict, question_key
from sqlcrystal.bank.records import JUDGED
from sqlcrystal.databases.results import result_digest
from sqlcrystal.databases.symptoms import strange_values, symptoms
from sqlcrystal.errors import CheckError, Contradicted, ModelError, RecordingMiss, UserError
from sqlcrystal.pipeline import admit, explain
from sqlcrystal.protocols import Verifier
from sqlcrystal.serving.answers import LOOKED_AT, NEAR, Draft, Vouched, contradicting
from sqlcrystal.serving.asking import as_question, meant_in
from sqlcrystal.serving.banking import bank_card, keep_rejection, new_proposal_id
from sqlcrystal.serving.clock import ClockedModel
from sqlcrystal.serving.documents import Correction, Proposed, Rejection, Result, Ruling
from sqlcrystal.serving.in_words import in_words
from sqlcrystal.serving.privacy import is_private, kept_proposal, masked_like, masked_query
from sqlcrystal.serving.reach import known_card
from sqlcrystal.serving.readings import other_proposal
from sqlcrystal.serving.replay import exchange
from sqlcrystal.serving.solving import OnceEach, mend, presented
from sqlcrystal.serving.stories import read_noted, turns_until
from sqlcrystal.serving.workspace import OpenDatabase, Workspace
from sqlcrystal.solving.following import Reading
from sqlcrystal.solving.solver import SingleShot
from sqlcrystal.timestamps import timestamp
from sqlcrystal.types import Attempt, CardId, CardStatus, Episode, Failure, Question, Rejected, Retrieved, Rows, Written
from sqlcrystal.writing.card import Verbatim

NUMBER = re.compile(r"\d+")


def confirm_answer(
    workspace: Workspace, record: AnswerRecord, *, by: str, note: str = "", anyway: bool = False
) -> Ruling:
    """Vouch for an answer: it becomes a card."""
    if record.sql is None or record.error:
        raise UserError(f"answer {record.id}: there is nothing to confirm, its SQL does not run; give the right SQL")
    if not anyway:
        _ask_first(workspace, record, record.id, record.sql)
    episode, verdict = _episode(workspace, record), Verdict.CONFIRMED
    # With two readings it was chosen before the other, which is decided on with it and kept as not chosen.
    return _bank(workspace, record, episode, by=by, note=note, verdict=verdict, proposal=record.other)


def pick_reading(
    workspace: Workspace, record: AnswerRecord, number: int, *, by: str, note: str = "", anyway: bool = False
) -> Ruling:
    """Say which of two readings was meant: it becomes the card of the question, the other is kept as not chosen."""
    other = other_proposal(workspace, record)
    if other is None:
        raise UserError(f"answer {record.id}: it was given as one reading; confirm or reject it")
    if number not in (1, 2):
        raise UserError(f"reading: no {number} here; choose from 1, 2")
    if number == 1:
        return confirm_answer(workspace, record, by=by, note=note, anyway=anyway)
    return confirm_proposal(workspace, other, by=by, note=note, anyway=anyway)


def confirm_proposal(
    workspace: Workspace, proposal: Proposal, *, by: str, note: str = "", anyway: bool = False
) -> Ruling:
    """Vouch for what a repair proposed: it becomes a card in place of the answer, of the question that was meant."""
    record = workspace.store.answers.get(proposal.answer)
    source = "reading" if proposal.id == record.other else "adapted"
    episode = proposal.episode or replace(_episode(workspace, record), source=source, sql=proposal.sql, rounds=())
    record, episode = _about(record, episode, proposal.question)
    if not anyway:
        _ask_first(workspace, record, proposal.id, proposal.sql)
    ruling = _bank(workspace, record, episode, by=by, note=note, verdict=Verdict.CORRECTED, proposal=proposal.id)
    return replace(ruling, question=proposal.question)


def _about(record: AnswerRecord, episode: Episode, question: str) -> tuple[AnswerRecord, Episode]:
    """Turn an answer and how it came about to the question that a note made of its own, if it made one."""
    if not question:
        return record, episode
    asked = as_question(question, record.database)
    return replace(record, question=question), replace(episode, attempt=replace(episode.attempt, question=asked))


def _ask_first(workspace: Workspace, record: AnswerRecord, name: str, sql: str) -> None:
    """Refuse, until it is said again, a confirmation that a near card of another question speaks against.

    The questions that this one goes on from were changed on purpose: their cards may well give other rows.
    """
    if workspace.keeps_no_values(record.database) or not workspace.bank.cards(record.database):
        return
    opened, question = workspace.open(record.database), as_question(record.question, record.database)
    recalled = workspace.retriever_of(opened.name).retrieve(question, workspace.bank, k=LOOKED_AT)
    before = [turn.question for turn in turns_until(workspace, workspace.store.answers.get(record.id))]
    known = {question_key(text) for text in (question.text, *before)}
    others = (each for each in recalled if question_key(each.card.question.text) not in known and each.score >= NEAR)
    near = {each.card.id: _as_if_asked(opened, each, question) for each in others}
    said = tuple(each for each in near.values() if each is not None)
    if not said:
        return
    execution = opened.database.execute(sql)
    draft = Draft(question=question, sql=sql, execution=execution, retrieved=said)
    other = contradicting(opened, draft, result_digest(execution)) if isinstance(execution, Rows) else None
    if other is not None:
        about = next(each.card for each in recalled if each.card.id == other.card.id)
        put = "" if about.sql == other.card.sql else ", with the values of this question,"
        raise Contradicted(
            f"{name}: card {about.id} is near ({other.score:.2f}) and gives other rows{put} for "
            f"“{about.question.text}”; confirm anyway if both are right"
        )


def _as_if_asked(opened: OpenDatabase, near: Retrieved, question: Question) -> Retrieved | None:
    """Give a near card as it would answer this question: with its values where it differs in nothing else.

    None where its question names other numbers, or values that no column holds: then it says nothing of this one.
    """
    exchanged = exchange(near.card, question.text, opened.database.dialect)
    if exchanged is None:
        same = NUMBER.findall(near.card.question.text) == NUMBER.findall(question.text)
        return near if same else None
    if any(strange_values(exchanged.sql, opened.database)):
        return None
    return replace(near, card=replace(near.card, sql=exchanged.sql, question=question))


def correct_answer(
    workspace: Workspace, record: AnswerRecord, sql: str, *, by: str, note: str = "", proposal: Proposal | None = None
) -> Correction:
    """Take a person's own SQL for the question of an answer, or of a proposal, if it passes the guard and runs."""
    opened = workspace.open(record.database)
    execution = must_run(opened, sql)
    episode = replace(_episode(workspace, record), source="user", sql=sql, rounds=())
    meant = _meant(workspace, record, note, proposal)
    question = meant.question.text if meant.follows else ""
    same = not question and record.sql is not None and record.sql.strip() == sql.strip() and not record.error
    verdict = Verdict.CONFIRMED if same else Verdict.CORRECTED
    now = opened.database.fingerprint()
    if question and is_private(opened):  # both are masked together, so that a value has one mask in both
        masked = masked_query(opened, question, sql)
        workspace.hear(record.id, question, about=masked.question)
        question, episode = masked.question, replace(episode, sql=masked.sql or sql)
    about, episode = _about(record, episode, question)
    ruling = _bank(
        workspace,
        about,
        episode,
        by=by,
        note=note,
        verdict=verdict,
        proposal=proposal.id if proposal is not None else "",
        fingerprint=now,
    )
    told = in_words(workspace, record.database, sql, meant.question.text)
    return Correction.of(replace(ruling, question=question), sql, execution, told)


def _meant(workspace: Workspace, record: AnswerRecord, note: str, proposal: Proposal | None = None) -> Reading:
    """Tell which question a person wants answered who left a note on its answer, or on what was proposed for it."""
    if proposal is not None and proposal.question:  # an earlier note had made it another than the answer's
        text = workspace.heard(record.id, about=proposal.question) or proposal.question
        return replace(read_noted(workspace, as_question(text, record.database), proposal.sql, note), follows=True)
    asked = as_question(workspace.heard(record.id) or record.question, record.database)
    return read_noted(workspace, asked, record.sql, note)


def must_run(opened: OpenDatabase, sql: str) -> Rows:
    """Run SQL that is to be stored behind the guard; refuse it where it fails."""
    execution = opened.database.execute(sql)
    if isinstance(execution, Failure):
        raise UserError(f"sql: {execution.kind}: {execution.message}; nothing was changed")
    return execution


def reject_answer(
    workspace: Workspace, record: AnswerRecord, *, by: str, note: str = "", repair: bool = True
) -> Rejection:
    """Say that an answer is wrong; a repair, told the note, proposes another.

    The verdict is a person's word, so it is kept also where the model fails; `trouble` then says why nothing is
    proposed.
    """
    opened = workspace.open(record.database)
    # A question that was kept without its values cannot be repaired once this process has forgotten its words.
    spoken = not workspace.keeps_no_values(record.database) or bool(workspace.heard(record.id))
    repaired, trouble = None, ""
    meant = Reading(question=as_question(record.question, record.database))
    try:
        if repair and spoken:
            meant = _meant(workspace, record, note)
            repaired = _repair(workspace, opened, record, note, meant)
    except (ModelError, RecordingMiss) as error:
        trouble = str(error)
    with workspace.store.transaction():
        ruling = keep_rejection(workspace, record, by=by, signal="user", note=note, another=meant.follows)
        if repaired is None:
            return Rejection.of(ruling, trouble=trouble)
        episode, rows = repaired
        proposal = Proposal(
            id=new_proposal_id(),
            database=record.database,
            answer=record.id,
            at=timestamp(),
            sql=episode.sql,
            note=note,
            question=meant.question.text if meant.follows else "",
            episode=episode,
        )
        lasting = kept_proposal(workspace, opened, record, proposal)
        workspace.store.decisions.propose(lasting)
    if lasting.question != proposal.question:
        workspace.hear(record.id, proposal.question, about=lasting.question)
    result = Result.of(rows, in_words(workspace, record.database, proposal.sql).words)
    proposed = Proposed.returning(result, id=proposal.id, sql=proposal.sql, question=proposal.question)
    return Rejection.of(ruling, proposed)


def reject_proposal(workspace: Workspace, proposal: Proposal, *, by: str, note: str = "") -> Rejection:
    """Say that a proposal is no better than the answer it was made for."""
    record = workspace.store.answers.get(proposal.answer)
    return Rejection.of(keep_rejection(workspace, record, by=by, signal="user", note=note, proposal=proposal.id))


def _bank(
    workspace: Workspace,
    record: AnswerRecord,
    episode: Episode,
    *,
    by: str,
    note: str,
    verdict: Verdict,
    proposal: str = "",
    fingerprint: str = "",
) -> Ruling:
    """Make the card; unless said otherwise, its SQL was seen to run under the schema that the answer was given over."""
    verifier = UserConfirmation(lambda _: True, by=by, note=note)
    _, written = admit(episode, verifier=verifier, writer=Verbatim(lambda: fingerprint or record.fingerprint))
    if written is None:
        raise UserError(f"answer {record.id}: {by} did not confirm it")
    return bank_card(workspace, record, written.card, episode, verdict=verdict, proposal=proposal, note=note)


def _repair(
    workspace: Workspace, opened: OpenDatabase, record: AnswerRecord, note: str, meant: Reading
) -> tuple[Episode, Rows] | None:
    """Tell what the budget of repair makes of a rejected answer: SQL that looks sound and returns something else."""
    attempt = _episode(workspace, record).attempt
    private = is_private(opened)
    asked = as_question(workspace.heard(record.id), record.database) if private else attempt.question
    question = meant.question if meant.follows else replace(asked, evidence=note)
    question = explain(question, meant_in(workspace, opened, question))
    database = OnceEach(presented(opened, question))
    # What was rejected came from the store, or answered another question: the model has not tried yet.
    untried = not attempt.calls or meant.follows
    attempt = replace(attempt, question=question)
    if untried:
        attempt = SingleShot(ClockedModel(workspace.model), database).solve(question)

    def accept(sql: str) -> bool:
        if private:  # what the rejected query returned is not known; that it was another query is
            return masked_like(workspace, opened, record, sql) != record.sql and not symptoms(sql, database)
        return result_digest(database.execute(sql)) != record.result_digest and not symptoms(sql, database)

    effort = mend(workspace, opened, attempt, database, accept=accept, trigger=lambda sql: untried and accept(sql))
    episode = effort.episode
    if episode is None and effort.right_at_once and attempt.sql is not None:
        episode = Episode(attempt=attempt, source="success", sql=attempt.sql)
    rows = database.execute(episode.sql) if episode is not None else None
    return (episode, rows) if episode is not None and isinstance(rows, Rows) else None


def _episode(workspace: Workspace, record: AnswerRecord) -> Episode:
    """Tell how an answer came about; where that was not kept, what the answer itself says."""
    kept = workspace.store.answers.trace(record.id)
    if kept is not None:
        return kept
    question = as_question(record.question, record.database)
    return Episode(attempt=Attempt(question=question, calls=(), sql=record.sql), source="success", sql=record.sql or "")


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
        card = known_card(workspace, standing.card) if standing.made_card else None
        question = card.question.text if card is not None else record.question
        same = store.bank.find(database=record.database, status=CardStatus.DISABLED, question=question)
        back = [card.id for card in same if _last_cause(workspace, card.id) in causes and card.id != standing.card]
        answered = store.bank.find(database=record.database, status=CardStatus.ACTIVE, question=question)
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


# ── a team's own assertions and checks ────────────────────────────────────────────────────────────────────────────────


def vouch(workspace: Workspace, opened: OpenDatabase, record: AnswerRecord, episode: Episode | None) -> Vouched:
    """Let every assertion and then the external check look; one that is against it, or gives no verdict, ends it."""
    verifiers = list(_verifiers(opened))
    if episode is None or record.error or not verifiers:
        return Vouched()
    written: Written | None = None
    for verifier in verifiers:
        try:
            verdict, written = admit(episode, verifier=verifier, writer=Verbatim(opened.database.fingerprint))
        except CheckError as error:
            return Vouched(said=f"no verdict: {error}")
        if isinstance(verdict, Rejected):
            if verdict.signal == ExternalCheck.signal:
                note = "" if workspace.keeps_no_values(opened.name) else verdict.reason
                _decide(workspace, record, Verdict.REJECTED, by=_name(verifier), signal=verdict.signal, note=note)
            outcome = Verdict.REJECTED if verdict.signal == ExternalCheck.signal else ""
            return Vouched(said=f"{verdict.signal}: {verdict.reason}", verdict=outcome)
    if written is None:
        return Vouched()
    given = written.card.admission
    try:
        ruling = bank_card(workspace, record, written.card, episode, verdict=Verdict.CONFIRMED)
    except UserError as error:  # an answer without a card is an answer still
        return Vouched(said=f"no card: {error}")
    said = f"{given.signal}: confirmed by {given.by}"
    return Vouched(card=ruling.card, said=said, verdict=Verdict.CONFIRMED)


def _verifiers(opened: OpenDatabase) -> Iterator[Verifier]:
    for number, entry in enumerate(opened.entry.assertion, start=1):
        name = entry.name or f"assertion {number}"
        yield Assertion(opened.database, entry.sql, expect=entry.expect, by=name)
    check = opened.entry.check
    if check.startswith(("http://", "https://")):
        yield ExternalCheck.callback(check)
    elif check:
        yield ExternalCheck.command(shlex.split(check))


def _name(verifier: Verifier) -> str:
    return str(getattr(verifier, "by", "check"))


def _decide(workspace: Workspace, record: AnswerRecord, verdict: Verdict, *, by: str, signal: str, note: str) -> None:
    workspace.store.decisions.decide(record, verdict, by=by, signal=signal, sql=record.sql or "", note=note)
