"""An answer or a card with everything that belongs to it, for a page that shows all of it."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from sqlcrystal import pipeline
from sqlcrystal.bank import AnswerRecord, CardEffect, Decision, Entry, Proposal, Scope, Verdict, Waiting, question_key
from sqlcrystal.bank.records import FORGOTTEN, JUDGED
from sqlcrystal.config import DatabaseEntry
from sqlcrystal.errors import BankError, SqlcrystalError, UserError
from sqlcrystal.serving.answers import ServedAnswer, served
from sqlcrystal.serving.callers import Caller
from sqlcrystal.serving.clock import ClockedModel
from sqlcrystal.serving.documents import DatabaseState, PastAnswer, UsedCard, UsedDefinition, WaitingAnswer
from sqlcrystal.serving.in_words import in_words, silent, teller
from sqlcrystal.serving.privacy import runs_as_kept
from sqlcrystal.serving.reach import known_card, used_definitions
from sqlcrystal.serving.readings import kept_readings
from sqlcrystal.serving.workspace import Workspace, without_password
from sqlcrystal.solving.following import PastTurn, Reading, Rewriter, unrewritten
from sqlcrystal.solving.presentation import tables_of
from sqlcrystal.telling.query import Told
from sqlcrystal.types import Card, Episode, Question, Table

if TYPE_CHECKING:
    from sqlcrystal.databases.spelling import NotHeld

LONGEST_THREAD = 100


class CardInUse(Struct, frozen=True, kw_only=True):
    """A card that an answer used, its score, and how the answers fared that it stood in."""

    card: Card
    score: float
    effect: CardEffect | None


class AnswerStory(Struct, frozen=True, kw_only=True):
    """An answer with its trace, its verdict, its cards, and the repair that was proposed for it."""

    record: AnswerRecord
    dialect: str
    may_judge: bool
    trace: Episode | None
    verdict: Decision | None
    cards: tuple[CardInUse, ...]
    proposal: Proposal | None
    tables: Sequence[Table]
    given_sql: str
    """The SQL as it was given, where a correction stands in its place."""
    exchanged: tuple[tuple[str, str], ...]
    """Which values of the replayed card's question stand for which in this one."""
    told: Told = Told()
    """Its SQL in words, as it stands."""
    runnable: bool = True
    """Whether its SQL can be run again: not where it was kept without its values."""
    proposal_runnable: bool = True
    definitions: tuple[UsedDefinition, ...] = ()
    thread: tuple[PastAnswer, ...] = ()
    """The turns of its conversation, itself among them."""


class CardStory(Struct, frozen=True, kw_only=True):
    """A card with its history, how its answers fared, and whether the schema is still the one it ran under."""

    entry: Entry
    dialect: str
    may_manage: bool
    same_schema: bool
    effect: CardEffect | None
    leaned: tuple[PastAnswer, ...]
    """The answers that it stood in, oldest first."""
    tables: Sequence[Table] = ()


def standing_verdict(workspace: Workspace, record: AnswerRecord) -> Decision | None:
    """Find the verdict that says whether an answer is right; one that was taken back is none."""
    standing = workspace.store.decisions.standing(record.id)
    return standing if standing is not None and standing.verdict in JUDGED else None


def as_it_stands(workspace: Workspace, record: AnswerRecord) -> AnswerRecord:
    """Give an answer as it stands now: corrected, it has the SQL of the correction, and rows that are read anew.

    Its question is the one that its card answers: a note may have made it another.
    """
    standing = standing_verdict(workspace, record)
    if standing is None or standing.verdict is not Verdict.CORRECTED:
        return record
    card = known_card(workspace, standing.card)
    if card is None:
        return record
    same = question_key(card.question.text) == question_key(record.question)
    question = record.question if same else card.question.text
    return replace(record, question=question, sql=card.sql, rows=None, error="")


def turns_until(workspace: Workspace, record: AnswerRecord) -> list[AnswerRecord]:
    """List an answer and those that it follows, oldest first."""
    found = [record]
    while found[0].follows and len(found) < LONGEST_THREAD:
        try:
            found.insert(0, workspace.store.answers.get(found[0].follows))
        except BankError:
            break
    return found


def thread_of(workspace: Workspace, record: AnswerRecord) -> list[AnswerRecord]:
    """List the shown answers of a conversation, each before those to the questions that follow it."""
    found: list[AnswerRecord] = []
    waiting = turns_until(workspace, record)[:1]
    while waiting and len(found) < LONGEST_THREAD:
        found.append(waiting.pop(0))
        waiting = [*workspace.store.answers.after(found[-1].id), *waiting]
    return found


def answer_story(workspace: Workspace, caller: Caller, given: AnswerRecord) -> AnswerStory:
    """Gather what belongs to an answer."""
    store = workspace.store
    record = as_it_stands(workspace, given)
    dialect = workspace.open(record.database).database.dialect
    effects = {effect.card: effect for effect in store.answers.effects(record.database)} if record.cards else {}
    used = [(known_card(workspace, use.card), use.score) for use in record.cards]
    cards = tuple(
        CardInUse(card=card, score=score, effect=effects.get(card.id)) for card, score in used if card is not None
    )
    proposal = next(reversed(store.decisions.proposals(answer=record.id)), None)
    return AnswerStory(
        record=record,
        dialect=dialect,
        may_judge=caller.allows(record.database, Scope.JUDGE),
        trace=store.answers.trace(record.id),
        verdict=standing_verdict(workspace, record),
        cards=cards,
        proposal=proposal,
        tables=tables_of(workspace.open(record.database).database),
        given_sql=(given.sql or "") if given is not record else "",
        exchanged=_exchanged(record, cards, dialect),
        told=in_words(workspace, record.database, record.sql, record.question),
        runnable=runs_as_kept(record, record.sql or ""),
        proposal_runnable=proposal is not None and runs_as_kept(record, proposal.sql),
        definitions=used_definitions(workspace, record),
        thread=tuple(PastAnswer.of(turn, store.answers.verdict(turn.id)) for turn in thread_of(workspace, given)),
    )


def near_values(workspace: Workspace, given: AnswerRecord) -> "tuple[NotHeld, ...]":
    """Look up the values that an answer's SQL asks for and its columns never hold, with those that read like them."""
    from sqlcrystal.databases import spelling

    record = as_it_stands(workspace, given)
    if record.sql is None or not runs_as_kept(record, record.sql):
        return ()
    return spelling.near_values(record.sql, workspace.open(record.database).database)


def card_story(workspace: Workspace, caller: Caller, entry: Entry) -> CardStory:
    """Gather what belongs to a card."""
    store, card = workspace.store, entry.card
    database = workspace.open(card.database).database
    leaning = [record for record in store.answers.leaning_on([card.id]) if not record.twin_of]
    return CardStory(
        entry=entry,
        dialect=database.dialect,
        may_manage=caller.allows(card.database, Scope.MANAGE),
        same_schema=card.fingerprint == database.fingerprint(),
        effect=next((each for each in store.answers.effects(card.database) if each.card == card.id), None),
        leaned=tuple(PastAnswer.of(record, store.answers.verdict(record.id)) for record in leaning),
        tables=tables_of(database),
    )


def _exchanged(record: AnswerRecord, cards: tuple[CardInUse, ...], dialect: str) -> tuple[tuple[str, str], ...]:
    if not record.replayed or not cards:
        return ()
    from sqlcrystal.serving.replay import other_values

    return other_values(cards[0].card, record.question, dialect)


def answer_as_given(workspace: Workspace, record: AnswerRecord) -> ServedAnswer:
    """Give an answer again as it was given, with the verdict that stands on it."""
    standing = standing_verdict(workspace, record)
    trace = workspace.store.answers.trace(record.id)
    used = [(known_card(workspace, use.card), use.score) for use in record.cards]
    told = in_words(workspace, record.database, record.sql, record.question)
    return served(
        record,
        tuple(UsedCard.of(card, score) for card, score in used if card is not None),
        repaired=trace is not None and bool(trace.rounds) and trace.attempt.sql != record.sql,
        memory=record.memory if standing is not None else None,
        verdict=str(standing.verdict) if standing is not None else "",
        card=standing.card if standing is not None and standing.made_card else "",
        trace=trace,
        words=told.words,
        unasked=told.unasked,
        definitions=used_definitions(workspace, record),
        readings=kept_readings(workspace, record) if standing is None else (),
    )


def waiting_answers(
    workspace: Workspace, waiting: Sequence[Waiting], proposed: Mapping[str, Sequence[str]], *, told: bool
) -> list[WaitingAnswer]:
    """Describe what waits for a verdict, each with its SQL in words if they are wanted."""
    names = {entry.answer.database for entry in waiting}
    tellers = {name: teller(workspace, name) if told else silent for name in names}
    return [
        WaitingAnswer.of(
            entry,
            tuple(proposed.get(entry.answer.id, ())),
            tellers[entry.answer.database](entry.answer.sql, entry.answer.question),
        )
        for entry in waiting
    ]


def database_state(workspace: Workspace, caller: Caller, name: str) -> DatabaseState:
    """Describe one database as a caller may know it, and whether it can be reached."""
    entry = workspace.entry(name) or DatabaseEntry(url="")
    state = DatabaseState(
        name=name,
        scopes=tuple(scope for scope in Scope if caller.allows(name, scope)),
        values=entry.values,
        replay=entry.replay,
        hold_out=workspace.experiment(name).hold_out,
        place=without_password(entry.url) if caller.allows(name, Scope.MANAGE) else "",
    )
    try:
        dialect = workspace.open(name).database.dialect
    except SqlcrystalError as error:
        return replace(state, error=str(error))
    return replace(state, dialect=dialect, cards=len(workspace.bank.cards(name)))


# ── conversations ─────────────────────────────────────────────────────────────────────────────────────────────────────


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
    own = workspace.store.answers.get(record.id).question
    about = "" if record.question == own else record.question  # of a note, which made it another question
    spoken = workspace.heard(record.id, about=about) if record.asked_by == by else ""
    verdict = standing_verdict(workspace, record)
    rejected = verdict is not None and verdict.verdict is Verdict.REJECTED and verdict.sql == (record.sql or "")
    wrong = record.error or rejected
    sql = None if wrong or record.sql is None or is_masked(record.sql) else record.sql
    return PastTurn(spoken or record.question, sql)
