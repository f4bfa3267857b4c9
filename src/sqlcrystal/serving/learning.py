"""From a team's query log to proposals: each query gets a question, and waits for a person with its evidence.

Every query is tried once, and what came of it is kept with it: learning that was ended goes on where it stood.
"""

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePath
from typing import NamedTuple, Self, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from sqlcrystal import assembly, pipeline
from sqlcrystal.acquisition.from_log import FromLog
from sqlcrystal.admission.verifiers import RoundTrip
from sqlcrystal.bank import AnswerRecord, Scope, Verdict
from sqlcrystal.bank.records import LearnedFrom, LearnedShape
from sqlcrystal.databases.masks import UNREADABLE, filled_sql, masked_with_values
from sqlcrystal.databases.symptoms import symptoms
from sqlcrystal.errors import DataError, UserError
from sqlcrystal.protocols import Database
from sqlcrystal.querylog.readers import PG_STATEMENTS, Found, Reason, Refused, read_log, read_server, read_text, text_in
from sqlcrystal.querylog.shapes import QueryShape, shapes_of, with_values
from sqlcrystal.serving.answers import Draft
from sqlcrystal.serving.asking import ServingArm, as_question, record_of
from sqlcrystal.serving.banking import bank_card
from sqlcrystal.serving.callers import Caller
from sqlcrystal.serving.clock import ClockedModel
from sqlcrystal.serving.privacy import is_private, kept, kept_trace, schema_names
from sqlcrystal.serving.reach import database_for
from sqlcrystal.serving.solving import OnceEach, presented
from sqlcrystal.serving.workspace import OpenDatabase, Workspace
from sqlcrystal.timestamps import timestamp
from sqlcrystal.types import Admitted, Attempt, Episode, Execution, Failure, FailureKind, Question
from sqlcrystal.writing.card import Verbatim

PROPOSED, BANKED = "proposed", "banked"
LOST = "its question, asked again, gave other rows"
TAKEN = "another query has the same question"
PLACES_TOLD = 3


class Upload(Struct, frozen=True):
    """The text of a file that came over the wire, with the name that tells how it is read."""

    name: str
    text: str

    @classmethod
    def of(cls, name: str, raw: bytes) -> Self:
        """Take the bytes of a file, whole or not at all."""
        try:
            return cls(PurePath(name).name, text_in(raw, errors="strict"))
        except UnicodeDecodeError:
            raise DataError("file: not a text in UTF-8 or UTF-16") from None


LogSource: TypeAlias = Path | str | Upload
"""A file or folder, the word pg_stat_statements, or an upload."""


class RefusedQueries(Struct, frozen=True, kw_only=True):
    """The count of statements that are refused for one reason, with the first places of them."""

    reason: str
    count: int
    places: tuple[str, ...]


class LearnReport(Struct, frozen=True, kw_only=True):
    """The sum of a log: its statements, their shapes, and the outcomes."""

    database: str
    read: int
    """Statements in the log."""
    shapes: int
    """Queries among them that differ in more than literals and layout."""
    proposed: int
    """Wait for a verdict in the queue."""
    banked: int
    """Became cards at once, where the team's settings let a round trip admit."""
    lost: int
    """Gave no question that led back to their rows."""
    known: int
    """Were tried in an earlier run."""
    left: int
    """Were not reached."""
    refused: tuple[RefusedQueries, ...]


class Tried(NamedTuple):
    """One shape that was tried: the number done of all, and its outcome."""

    done: int
    whole: int
    outcome: str


Watch: TypeAlias = Callable[[Tried], None]


def learn(
    workspace: Workspace,
    caller: Caller,
    wanted: str | None,
    source: LogSource,
    *,
    again: bool = False,
    most: int | None = None,
    watch: Watch | None = None,
) -> LearnReport:
    """Propose what a log's queries teach, the most used first; `again` tries once more what did not lead back."""
    database = database_for(workspace, caller, wanted, Scope.MANAGE)
    if not isinstance(source, Upload) and not caller.local:
        raise UserError("learn: only the owner of the machine may name a file; send its text")
    opened = workspace.open(database)
    log = shapes_of(found_in(source, opened.database), opened.database.dialect)
    workspace.remember(opened)
    known = workspace.store.learned.known(database)
    tried = {shape for shape, past in known.items() if not again or past.outcome in (PROPOSED, BANKED)}
    fresh = [shape for shape in log.shapes if shape.digest not in tried]
    chosen = fresh if most is None else fresh[:most]
    outcomes: list[tuple[str, QueryShape]] = []
    for number, shape in enumerate(chosen, start=1):
        outcome = _learn_one(workspace, opened, shape, by=caller.person)
        outcomes.append((outcome, shape))
        if watch is not None:
            watch(Tried(number, len(chosen), outcome))
    reasons = set(map(str, Reason))
    refused = [*log.refused, *(Refused(Reason(said), at(shape)) for said, shape in outcomes if said in reasons)]
    counts = Counter(outcome for outcome, _ in outcomes)
    return LearnReport(
        database=database,
        read=log.read,
        shapes=len(log.shapes),
        proposed=counts[PROPOSED],
        banked=counts[BANKED],
        lost=counts[LOST] + counts[TAKEN],
        known=len(log.shapes) - len(fresh),
        left=len(fresh) - len(chosen),
        refused=_counted(refused, told=not is_private(opened)),
    )


def found_in(source: LogSource, database: Database) -> Iterator[Found]:
    """Read a log from where it is."""
    if isinstance(source, Upload):
        return read_text(source.text, source.name, database.dialect)
    if str(source) == PG_STATEMENTS:
        return read_server(database)
    return read_log(Path(source).expanduser(), database.dialect)


def at(shape: QueryShape) -> str:
    """Name the first place where a shape stood."""
    return shape.places[0] if shape.places else ""


def _counted(refused: Iterable[Refused], *, told: bool) -> tuple[RefusedQueries, ...]:
    """Count by reason, the commonest first; the name of a place may be a value, and is not told where those are not."""
    places: dict[str, list[str]] = {}
    for entry in refused:
        places.setdefault(str(entry.reason), []).append(entry.place)
    ranked = sorted(places.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    return tuple(
        RefusedQueries(
            reason=reason,
            count=len(where),
            places=tuple(filter(None, dict.fromkeys(where)))[:PLACES_TOLD] if told else (),
        )
        for reason, where in ranked
    )


# ── one query ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _learn_one(workspace: Workspace, opened: OpenDatabase, shape: QueryShape, *, by: str) -> str:
    """Try one query and keep what came of it, in one transaction with its answer and card."""
    started = time.perf_counter()
    ready = _ready(opened, shape)
    if isinstance(ready, Reason):
        return _kept_outcome(workspace, opened, shape, str(ready))
    sql, database = ready
    episode = _round_trip(workspace, opened, sql, database)
    if episode is None:
        return _kept_outcome(workspace, opened, shape, LOST)
    record = _record(workspace, opened, shape, episode, database, by=by, seconds=time.perf_counter() - started)
    salt = hashlib.sha256(f"{opened.name}\0{shape.digest}".encode()).hexdigest()[:16]
    lasting = kept(workspace, opened, record, salt)
    with workspace.store.transaction():
        past = workspace.store.learned.known(opened.name).get(shape.digest)
        if past is not None and past.outcome in (PROPOSED, BANKED):  # by another process, in the meantime
            return past.outcome
        if _is_taken(workspace, lasting):
            return _kept_outcome(workspace, opened, shape, TAKEN)
        workspace.store.answers.save(lasting, kept_trace(opened, episode))
        banked = opened.entry.learn == RoundTrip.signal and _banked(workspace, lasting, episode, database)
        return _kept_outcome(workspace, opened, shape, BANKED if banked else PROPOSED, answer=lasting.id)


def _ready(opened: OpenDatabase, shape: QueryShape) -> tuple[str, Database] | Reason:
    """Give the query as the model may see it and the database that runs it; or say why it is not worth a call."""
    sql = with_values(shape.sql, opened.database) if shape.bound else shape.sql
    if sql is None:
        return Reason.PARAMETER
    values: dict[str, str] = {}
    if is_private(opened):
        sql, values = masked_with_values(sql, dialect=opened.database.dialect, names=schema_names(opened))
        if sql == UNREADABLE:
            return Reason.UNREADABLE
    question = Question(id="", database=opened.name, text=sql)
    database: Database = presented(opened, question)
    database = OnceEach(Filled(database, values) if values else database)
    execution = database.execute(sql)
    if isinstance(execution, Failure):
        return _FAILED.get(execution.kind, Reason.FAILS)
    return Reason.EMPTY if symptoms(sql, database) else (sql, database)


_FAILED = {
    FailureKind.REFUSED: Reason.GUARDED,
    FailureKind.TIMEOUT: Reason.LATE,
    FailureKind.TOO_LARGE: Reason.LATE,
}


def _round_trip(workspace: Workspace, opened: OpenDatabase, sql: str, database: Database) -> Episode | None:
    """Let the model write the question and answer it again, within the team's budget."""
    model, budget = ClockedModel(workspace.model), workspace.team.budget
    source = assembly.source(FromLog.name, model=model, database=database, budget=budget)
    check = RoundTrip(database)
    logged = Attempt(question=Question(id="", database=opened.name, text=""), calls=(), sql=sql)
    effort = pipeline.repair(
        logged, trigger=lambda _: False, source=source, accept=lambda back: check.leads_back(back, sql)
    )
    if effort.episode is None:
        return None
    attempt = effort.episode.attempt
    asked = as_question(attempt.question.text, opened.name)
    return replace(effort.episode, attempt=replace(attempt, question=asked))


def _is_taken(workspace: Workspace, record: AnswerRecord) -> bool:
    """Tell whether a question, as it is kept, has a card or an answer already: one question has one."""
    store, database, question = workspace.store, record.database, record.question
    if store.bank.find(database=database, question=question):
        return True
    return bool(store.answers.recent(database=database, question=question, limit=1))


def _record(
    workspace: Workspace,
    opened: OpenDatabase,
    shape: QueryShape,
    episode: Episode,
    database: Database,
    *,
    by: str,
    seconds: float,
) -> AnswerRecord:
    calls = tuple(call for spent in episode.rounds for call in spent.calls)
    draft = Draft(
        question=episode.question,
        sql=episode.sql,
        execution=database.execute(episode.sql),
        calls=calls,
        episode=episode,
    )
    record = record_of(workspace, opened, draft, by=by, arm=ServingArm(memory=True), seconds=seconds)
    learned = LearnedFrom(
        uses=shape.uses,
        places=() if is_private(opened) else shape.places,
        tries=len(episode.rounds),
        model=workspace.model.name,
    )
    return replace(record, spread=0.0, learned=learned)


def _banked(workspace: Workspace, record: AnswerRecord, episode: Episode, database: Database) -> bool:
    """Let the round trip admit, as the team allows; a query against which a person spoke only waits."""
    verifier = RoundTrip(database, by=workspace.model.name)
    verdict, written = pipeline.admit(episode, verifier=verifier, writer=Verbatim(database.fingerprint))
    if not isinstance(verdict, Admitted) or written is None:
        return False
    try:
        bank_card(workspace, record, written.card, episode, verdict=Verdict.CONFIRMED)
    except UserError:
        return False
    return True


def _kept_outcome(
    workspace: Workspace, opened: OpenDatabase, shape: QueryShape, outcome: str, *, answer: str = ""
) -> str:
    kept_shape = LearnedShape(database=opened.name, shape=shape.digest, at=timestamp(), outcome=outcome, answer=answer)
    workspace.store.learned.keep(kept_shape)
    return outcome


class Filled:
    """A database for queries without their values: the model never sees those, and the engine gets them back."""

    def __init__(self, database: Database, values: dict[str, str]) -> None:
        """Remember the values for as long as one query is tried."""
        self.name, self.dialect = database.name, database.dialect
        self._database, self._values = database, values

    def schema(self) -> str:
        """Show what prompts show."""
        return self._database.schema()

    def fingerprint(self) -> str:
        """Fingerprint the whole schema."""
        return self._database.fingerprint()

    def execute(self, sql: str, *, timeout: float = 30.0, max_rows: int = 100_000) -> Execution:
        """Run the statement with its values."""
        return self._database.execute(filled_sql(sql, self._values), timeout=timeout, max_rows=max_rows)

    def close(self) -> None:
        """Leave the database open: it is others' too."""
