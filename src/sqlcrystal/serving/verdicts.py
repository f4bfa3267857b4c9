"""What people say of answers: confirm, correct, reject. Only a person's word, an assertion or a check makes a card."""

from msgspec import Struct
from msgspec.structs import replace

from sqlcrystal.admission import UserConfirmation
from sqlcrystal.bank import AnswerRecord, Proposal, Store, Verdict
from sqlcrystal.databases.symptoms import symptoms
from sqlcrystal.errors import UserError
from sqlcrystal.pipeline import admit
from sqlcrystal.serving.asking import as_question
from sqlcrystal.serving.banking import Ruling, bank_card, new_proposal_id, reject_answer
from sqlcrystal.serving.clock import ClockedModel
from sqlcrystal.serving.privacy import is_private, kept_proposal, masked_like
from sqlcrystal.serving.solving import OnceEach, mend, presented
from sqlcrystal.serving.usefulness import result_digest
from sqlcrystal.serving.workspace import OpenDatabase, Workspace
from sqlcrystal.solving import SingleShot
from sqlcrystal.timestamps import timestamp
from sqlcrystal.types import Attempt, Episode, Failure, Rows
from sqlcrystal.writing import Verbatim

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


def confirm(workspace: Workspace, answer: AnswerRecord | str, *, by: str = "", note: str = "") -> Ruling:
    """Vouch for an answer, or for what a repair proposed: it becomes a card."""
    person = workspace.person(by)
    if isinstance(answer, str) and answer.startswith("p-"):
        proposal = _store(workspace).decisions.proposal(answer)
        record = workspace.store.answers.get(proposal.answer)
        episode = proposal.episode or replace(
            _episode(workspace, record), source="adapted", sql=proposal.sql, rounds=()
        )
        return _bank(workspace, record, episode, by=person, note=note, verdict=Verdict.CORRECTED, proposal=proposal.id)
    record = _answer(workspace, answer, person) if isinstance(answer, str) else answer
    if record.sql is None or record.error:
        raise UserError(f"answer {record.id}: there is nothing to confirm, its SQL does not run; reject it with --sql")
    return _bank(workspace, record, _episode(workspace, record), by=person, note=note, verdict=Verdict.CONFIRMED)


def correct(workspace: Workspace, name: str, sql: str, *, by: str = "", note: str = "") -> Correction:
    """Take a user's own SQL for an answer's question, if the guard lets it through and it runs."""
    person = workspace.person(by)
    record = _answer(workspace, name, person)
    opened = workspace.open(record.database)
    execution = opened.database.execute(sql)
    if isinstance(execution, Failure):
        raise UserError(f"--sql: {execution.kind}: {execution.message}; nothing was changed")
    episode = replace(_episode(workspace, record), source="user", sql=sql, rounds=())
    same = record.sql is not None and record.sql.strip() == sql.strip() and not record.error
    verdict = Verdict.CONFIRMED if same else Verdict.CORRECTED
    now = opened.database.fingerprint()
    ruling = _bank(workspace, record, episode, by=person, note=note, verdict=verdict, fingerprint=now)
    return Correction(ruling=ruling, sql=sql, rows=execution)


def reject(workspace: Workspace, name: str, *, by: str = "", note: str = "", repair: bool = True) -> Rejection:
    """Say that an answer is wrong; a repair, told the note, proposes another. Nothing is kept if the model fails."""
    person = workspace.person(by)
    if name.startswith("p-"):
        proposal = _store(workspace).decisions.proposal(name)
        record = workspace.store.answers.get(proposal.answer)
        return Rejection(
            ruling=reject_answer(workspace, record, by=person, signal="user", note=note, proposal=proposal.id)
        )
    record = _answer(workspace, name, person)
    # A question that was kept without its values cannot be repaired once nobody remembers it as it was spoken.
    spoken = not workspace.keeps_no_values(record.database) or bool(workspace.heard(record.id))
    repaired = _repair(workspace, workspace.open(record.database), record, note) if repair and spoken else None
    with workspace.store.transaction():
        ruling = reject_answer(workspace, record, by=person, signal="user", note=note)
        if repaired is None:
            return Rejection(ruling=ruling)
        episode, rows = repaired
        proposal = Proposal(
            id=new_proposal_id(),
            database=record.database,
            answer=record.id,
            at=timestamp(),
            sql=episode.sql,
            note=note,
            episode=episode,
        )
        workspace.store.decisions.propose(kept_proposal(workspace, workspace.open(record.database), record, proposal))
    return Rejection(ruling=ruling, proposal=proposal, rows=rows)


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


def _repair(workspace: Workspace, opened: OpenDatabase, record: AnswerRecord, note: str) -> tuple[Episode, Rows] | None:
    """What the budget of repair makes of a rejected answer: SQL that looks sound and returns something else."""
    attempt = _episode(workspace, record).attempt
    private = is_private(opened)
    asked = as_question(workspace.heard(record.id), record.database) if private else attempt.question
    question = replace(asked, evidence=note)
    database = OnceEach(presented(opened, question))
    untried = not attempt.calls  # what was rejected came from the store, so the model has not tried yet
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


def _answer(workspace: Workspace, name: str, person: str) -> AnswerRecord:
    """The answer that is meant; `last` is the latest that this person asked for."""
    if name == LAST:
        latest = [record for record in _store(workspace).answers.recent(limit=200) if record.asked_by == person]
        if not latest:
            raise UserError(f"answer {LAST}: {person} has not asked anything here lately; give an id")
        return latest[0]
    if name.startswith("p-"):
        name = _store(workspace).decisions.proposal(name).answer
    return _store(workspace).answers.get(name)


def _episode(workspace: Workspace, record: AnswerRecord) -> Episode:
    """How an answer came about; where that was not kept, what the answer itself says."""
    kept = workspace.store.answers.trace(record.id)
    if kept is not None:
        return kept
    question = as_question(record.question, record.database)
    return Episode(attempt=Attempt(question=question, calls=(), sql=record.sql), source="success", sql=record.sql or "")


def _store(workspace: Workspace) -> Store:
    if not workspace.store_exists():
        raise UserError(f"{workspace.team.store}: there is no store here yet; ask first")
    return workspace.store
