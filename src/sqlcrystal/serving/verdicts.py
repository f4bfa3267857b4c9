"""What people say of answers: confirm, correct, reject. Only a person's word, an assertion or a check makes a card."""

from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import replace

from sqlcrystal.admission.verifiers import UserConfirmation
from sqlcrystal.bank import AnswerRecord, Proposal, Store, Verdict
from sqlcrystal.databases.symptoms import symptoms
from sqlcrystal.errors import UserError
from sqlcrystal.pipeline import admit
from sqlcrystal.serving.asking import as_question
from sqlcrystal.serving.banking import Ruling, bank_card, new_proposal_id, reject_answer
from sqlcrystal.serving.desk import Desk, Site
from sqlcrystal.serving.outside import ClockedModel
from sqlcrystal.serving.privacy import is_private, kept_proposal, masked_like
from sqlcrystal.serving.solving import OnceEach, mend, presented
from sqlcrystal.serving.usefulness import result_digest
from sqlcrystal.solving.solver import SingleShot
from sqlcrystal.types import Attempt, Episode, Failure, Rows
from sqlcrystal.writing.card import Verbatim

LAST = "last"


class Correction(Struct, frozen=True, kw_only=True):
    """A user's own SQL, banked as theirs, with what it returns."""

    ruling: Ruling
    sql: str
    rows: Rows


class Rejection(Struct, frozen=True, kw_only=True):
    """A rejection, and what a repair came to: SQL that is only proposed, with what it returns."""

    ruling: Ruling
    proposal: Proposal | None = None
    rows: Rows | None = None


def confirm(desk: Desk, answer: AnswerRecord | str, *, by: str = "", note: str = "") -> Ruling:
    """Vouch for an answer, or for what a repair proposed: it becomes a card."""
    person = desk.person(by)
    if isinstance(answer, str) and answer.startswith("p-"):
        proposal = _store(desk).decisions.proposal(answer)
        record = desk.store.answers.get(proposal.answer)
        episode = proposal.episode or replace(_episode(desk, record), source="adapted", sql=proposal.sql, rounds=())
        return _bank(desk, record, episode, by=person, note=note, verdict=Verdict.CORRECTED, proposal=proposal.id)
    record = _answer(desk, answer, person) if isinstance(answer, str) else answer
    if record.sql is None or record.error:
        raise UserError(f"answer {record.id}: there is nothing to confirm, its SQL does not run; reject it with --sql")
    return _bank(desk, record, _episode(desk, record), by=person, note=note, verdict=Verdict.CONFIRMED)


def correct(desk: Desk, name: str, sql: str, *, by: str = "", note: str = "") -> Correction:
    """Take a user's own SQL for an answer's question, if the guard lets it through and it runs."""
    person = desk.person(by)
    record = _answer(desk, name, person)
    site = desk.site(record.database)
    execution = site.database.execute(sql)
    if isinstance(execution, Failure):
        raise UserError(f"--sql: {execution.kind}: {execution.message}; nothing was changed")
    episode = replace(_episode(desk, record), source="user", sql=sql, rounds=())
    same = record.sql is not None and record.sql.strip() == sql.strip() and not record.error
    verdict = Verdict.CONFIRMED if same else Verdict.CORRECTED
    now = site.database.fingerprint()
    ruling = _bank(desk, record, episode, by=person, note=note, verdict=verdict, fingerprint=now)
    return Correction(ruling=ruling, sql=sql, rows=execution)


def reject(desk: Desk, name: str, *, by: str = "", note: str = "", repair: bool = True) -> Rejection:
    """Say that an answer is wrong; a repair, told the note, proposes another. Nothing is kept if the model fails."""
    person = desk.person(by)
    if name.startswith("p-"):
        proposal = _store(desk).decisions.proposal(name)
        record = desk.store.answers.get(proposal.answer)
        return Rejection(ruling=reject_answer(desk, record, by=person, signal="user", note=note, proposal=proposal.id))
    record = _answer(desk, name, person)
    # A question that was kept without its values cannot be repaired once nobody remembers it as it was spoken.
    spoken = not desk.keeps_no_values(record.database) or bool(desk.heard(record.id))
    repaired = _repair(desk, desk.site(record.database), record, note) if repair and spoken else None
    with desk.store.transaction():
        ruling = reject_answer(desk, record, by=person, signal="user", note=note)
        if repaired is None:
            return Rejection(ruling=ruling)
        episode, rows = repaired
        proposal = Proposal(
            id=new_proposal_id(),
            database=record.database,
            answer=record.id,
            at=datetime.now(UTC).isoformat(timespec="seconds"),
            sql=episode.sql,
            note=note,
            episode=episode,
        )
        desk.store.decisions.propose(kept_proposal(desk, desk.site(record.database), record, proposal))
    return Rejection(ruling=ruling, proposal=proposal, rows=rows)


def _bank(
    desk: Desk,
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
    return bank_card(desk, record, written.card, episode, verdict=verdict, proposal=proposal, note=note)


def _repair(desk: Desk, site: Site, record: AnswerRecord, note: str) -> tuple[Episode, Rows] | None:
    """What the budget of repair makes of a rejected answer: SQL that looks sound and returns something else."""
    attempt = _episode(desk, record).attempt
    private = is_private(site)
    asked = as_question(desk.heard(record.id), record.database) if private else attempt.question
    question = replace(asked, evidence=note)
    database = OnceEach(presented(site, question))
    untried = not attempt.calls  # what was rejected came from the store, so the model has not tried yet
    attempt = replace(attempt, question=question)
    if untried:
        attempt = SingleShot(ClockedModel(desk.model), database).solve(question)

    def accept(sql: str) -> bool:
        if private:  # what the rejected query returned is not known; that it was another query is
            return masked_like(desk, site, record, sql) != record.sql and not symptoms(sql, database)
        return result_digest(database.execute(sql)) != record.result_digest and not symptoms(sql, database)

    effort = mend(desk, site, attempt, database, accept=accept, trigger=lambda sql: untried and accept(sql))
    episode = effort.episode
    if episode is None and effort.right_at_once and attempt.sql is not None:
        episode = Episode(attempt=attempt, source="success", sql=attempt.sql)
    rows = database.execute(episode.sql) if episode is not None else None
    return (episode, rows) if episode is not None and isinstance(rows, Rows) else None


def _answer(desk: Desk, name: str, person: str) -> AnswerRecord:
    """The answer that is meant; `last` is the latest that this person asked for."""
    if name == LAST:
        latest = [record for record in _store(desk).answers.recent(limit=200) if record.asked_by == person]
        if not latest:
            raise UserError(f"answer {LAST}: {person} has not asked anything here lately; give an id")
        return latest[0]
    if name.startswith("p-"):
        name = _store(desk).decisions.proposal(name).answer
    return _store(desk).answers.get(name)


def _episode(desk: Desk, record: AnswerRecord) -> Episode:
    """How an answer came about; where that was not kept, what the answer itself says."""
    kept = desk.store.answers.trace(record.id)
    if kept is not None:
        return kept
    question = as_question(record.question, record.database)
    return Episode(attempt=Attempt(question=question, calls=(), sql=record.sql), source="success", sql=record.sql or "")


def _store(desk: Desk) -> Store:
    if not desk.store_exists():
        raise UserError(f"{desk.team.store}: there is no store here yet; ask first")
    return desk.store
