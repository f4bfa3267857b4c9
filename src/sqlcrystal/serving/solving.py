"""The model's answer through the pipeline, watched as it goes, and repaired where the engine shows that it is wrong."""

from collections.abc import Callable, Sequence
from functools import cached_property
from time import monotonic
from typing import TYPE_CHECKING

import msgspec

from sqlcrystal import pipeline
from sqlcrystal.errors import ModelError
from sqlcrystal.pipeline import Memory
from sqlcrystal.protocols import Check, Database, LanguageModel, Solver, Source
from sqlcrystal.serving.answers import Draft, Event, Notify, unheard
from sqlcrystal.serving.clock import ClockedModel
from sqlcrystal.serving.documents import UsedCard
from sqlcrystal.serving.workspace import OpenDatabase, Workspace
from sqlcrystal.solving.presentation import Excerpt
from sqlcrystal.solving.solver import SingleShot, extract_sql
from sqlcrystal.types import (
    Attempt,
    Card,
    Completion,
    Effort,
    Episode,
    Execution,
    Failure,
    Message,
    Question,
    Retrieved,
    Rows,
    Sampling,
)
from sqlcrystal.waiting import overheard

if TYPE_CHECKING:
    from sqlcrystal.telling.words import Meant

SHOWN_ROWS = 100
TOLD_EVERY = 0.05
"""Seconds between two looks at SQL that is being written."""


def solve(
    workspace: Workspace,
    opened: OpenDatabase,
    asked: Question,
    *,
    memory: Memory,
    notify: Notify,
    meant: "tuple[Meant, ...]" = (),
) -> Draft:
    """Answer, and repair within the budget what the engine complains of; studies measure the same as `served`."""
    question = pipeline.explain(asked, meant)
    database = OnceEach(presented(opened, question))
    served = pipeline.serve(
        question,
        memory=_WatchedMemory(memory, notify),
        solver=_WatchedSolver(_solver(workspace, opened, question, database, notify), notify),
        source=_LenientSource(lambda: _source(workspace, opened, database)),
        database=database,
        sound=lambda sql: _looks_sound(sql, database),
        on_draft=lambda draft: notify(_result("rows", draft.attempt.sql, draft.execution)),
    )
    attempt, effort, sql = served.answer.attempt, served.effort, served.sql
    known = _traits(served, database) if opened.entry.choice == "agreement" else ()
    draft = Draft(
        question=asked,
        meant=meant,
        sql=sql,
        execution=None if sql is None else database.execute(sql),
        retrieved=served.answer.retrieved,
        calls=(*attempt.calls, *(call for spent in effort.rounds for call in spent.calls)),
        episode=effort.episode or _as_given(attempt, effort, sql),
        repaired=sql != attempt.sql,
        confidence=_confidence(workspace, opened, known) if known else None,
        traits=known,
        other=served.other,
    )
    if draft.repaired:
        notify(_result("repaired", sql, draft.execution))
    return draft


def _solver(
    workspace: Workspace, opened: OpenDatabase, question: Question, database: Database, notify: Notify
) -> Solver:
    """Make the solver as the settings of the database say: which answers it chooses between, and how."""
    model: LanguageModel = ClockedModel(workspace.model)
    if notify is not unheard:
        model = _FirstAloud(model, notify)
    full = SingleShot(model, database, header_of=_header)
    if opened.entry.choice == "none":
        return full
    if opened.entry.choice == "signs":
        from sqlcrystal.solving.fallback import Fallback

        return Fallback(full, database)
    from sqlcrystal.solving.consensus import Consensus

    plain = opened.presenter.present(question, profiled=False)
    bare = SingleShot(model, Excerpt(database, plain.schema()), header_of=_header)
    return Consensus(full, bare, database, lenient=True)


def _traits(served: pipeline.Served, database: Database) -> tuple[float, ...]:
    """Tell what bears on an answer's being right, where it was chosen among several views or is the query of a card."""
    if served.sql is None or not (served.answer.attempt.views or served.answer.retrieved):
        return ()
    from sqlcrystal.measurement.confidence import traits

    return traits(served, database)


def _confidence(workspace: Workspace, opened: OpenDatabase, known: tuple[float, ...]) -> float:
    """Work out how sure an answer with these traits is, by the team's own verdicts where they refitted the model."""
    if workspace.store_exists():
        from sqlcrystal.serving.refit import model_of

        return round(model_of(workspace.store, opened.name).probability(known), 4)
    from sqlcrystal.measurement.confidence import shipped

    return round(shipped().probability(known), 4)


def _looks_sound(sql: str, database: Database) -> bool:
    from sqlcrystal.databases.symptoms import symptoms  # whose parser is not needed before the model has answered

    return not symptoms(sql, database)


def _header(writer: str) -> str:
    from sqlcrystal.assembly import header  # whose stages a question without cards need not load before the model

    return header(writer)


def presented(opened: OpenDatabase, question: Question) -> Database:
    """Show the database as prompts do: with its columns' values only where values may leave it."""
    return opened.presenter.present(question, profiled=opened.entry.profile and opened.entry.values == "allowed")


def _source(workspace: Workspace, opened: OpenDatabase, database: Database) -> Source:
    """Make the source of repairs; where values may not leave the database, no probe shows them to the model."""
    from sqlcrystal import assembly

    name = assembly.SERVED_SOURCES[opened.entry.values]
    return assembly.source(name, model=ClockedModel(workspace.model), database=database, budget=workspace.team.budget)


def mend(
    workspace: Workspace, opened: OpenDatabase, attempt: Attempt, database: Database, *, accept: Check, trigger: Check
) -> Effort:
    """Repair an answer that a person calls wrong; they want to know of a model that fails meanwhile."""
    return pipeline.repair(attempt, trigger=trigger, source=_source(workspace, opened, database), accept=accept)


class _LenientSource:
    """A source, made when it is first needed, that leaves an attempt as it is when the model fails meanwhile.

    The stages that repair take as long to load as a database to open: the first answer does not wait for them.
    """

    def __init__(self, make: Callable[[], Source]) -> None:
        self._make = make

    @cached_property
    def _source(self) -> Source:
        return self._make()

    @property
    def name(self) -> str:
        return self._source.name

    def acquire(self, attempt: Attempt, *, right: bool, accept: Check) -> Effort:
        try:
            return self._source.acquire(attempt, right=right, accept=accept)
        except ModelError:
            return Effort(attempt=attempt, source=self.name)

    def calls_in(self, rounds: float) -> float:
        return self._source.calls_in(rounds)


def _as_given(attempt: Attempt, effort: Effort, sql: str | None) -> Episode:
    """Give the answer as it stands, with what was tried; a first answer that stands is a success when confirmed."""
    source = effort.source if sql != attempt.sql else "success"
    return Episode(attempt=attempt, source=source, sql=sql or "", rounds=effort.rounds)


def _result(kind: str, sql: str | None, execution: Execution | None) -> Event:
    if isinstance(execution, Rows):
        rows = execution.rows[:SHOWN_ROWS]
        return Event(kind, {"sql": sql, "columns": execution.columns, "rows": rows, "error": ""})
    error = execution.message if isinstance(execution, Failure) else "the model's reply held no SQL"
    return Event(kind, {"sql": sql, "columns": (), "rows": (), "error": error})


class OnceEach:
    """A database for the length of one answer: the same statement runs once, whoever looks at its result."""

    def __init__(self, database: Database) -> None:
        """Remember nothing yet."""
        self.name, self.dialect = database.name, database.dialect
        self._database = database
        self._schema = database.schema()
        self._known: dict[tuple[str, float, int], Execution] = {}

    def schema(self) -> str:
        """Tell what prompts show."""
        return self._schema

    def fingerprint(self) -> str:
        """Give that of the whole schema."""
        return self._database.fingerprint()

    def execute(self, sql: str, *, timeout: float = 30.0, max_rows: int = 100_000) -> Execution:
        """Give the statement's result, from the database the first time."""
        key = (sql, timeout, max_rows)
        if key not in self._known:
            self._known[key] = self._database.execute(sql, timeout=timeout, max_rows=max_rows)
        return self._known[key]

    def close(self) -> None:
        """Leave the database open: it is others' too."""


class _WatchedMemory:
    """Tells which cards came up."""

    def __init__(self, memory: Memory, notify: Notify) -> None:
        self._memory = memory
        self._notify = notify

    def recall(self, question: Question) -> Sequence[Retrieved]:
        retrieved = self._memory.recall(question)
        used = [UsedCard.of(neighbour.card, neighbour.score) for neighbour in retrieved]
        self._notify(Event("cards", {"cards": msgspec.to_builtins(used)}))
        return retrieved

    def arrange(self, retrieved: Sequence[Retrieved]) -> Sequence[Card]:
        return self._memory.arrange(retrieved)


class _FirstAloud:
    """A model whose first reply is told while it is written: that is the answer, unless another view replaces it."""

    def __init__(self, model: LanguageModel, notify: Notify) -> None:
        self.name, self.digest, self.slots = model.name, model.digest, model.slots
        self._model = model
        self._notify = notify
        self._told = False
        self._sql: str | None = None
        self._next = 0.0

    def chat(self, messages: Sequence[Message], *, sampling: Sampling) -> Completion:
        if self._told:
            return self._model.chat(messages, sampling=sampling)
        self._told = True
        with overheard(self._hear):
            return self._model.chat(messages, sampling=sampling)

    def _hear(self, text: str) -> None:
        """Tell the SQL that stands in a reply so far, not more often than anybody can read."""
        now = monotonic()
        if now < self._next:
            return
        sql = extract_sql(text)
        if sql and sql != self._sql:
            self._sql, self._next = sql, now + TOLD_EVERY
            self._notify(Event("writing", {"sql": sql}))

    def close(self) -> None:
        self._model.close()


class _WatchedSolver:
    """Tells the SQL before it runs."""

    def __init__(self, solver: Solver, notify: Notify) -> None:
        self._solver = solver
        self._notify = notify

    def shown(self, question: Question) -> Database:
        return self._solver.shown(question)

    def solve(self, question: Question, cards: Sequence[Card] = ()) -> Attempt:
        attempt = self._solver.solve(question, cards)
        self._notify(Event("sql", {"sql": attempt.sql}))
        return attempt
