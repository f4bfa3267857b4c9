"""The model's answer through the pipeline, watched as it goes, and repaired where the engine shows that it is wrong."""

from collections.abc import Sequence

import msgspec

from sqlcrystal import pipeline
from sqlcrystal.errors import ModelError
from sqlcrystal.pipeline import Memory
from sqlcrystal.protocols import Check, Database, Solver
from sqlcrystal.serving.answers import Event, Notify
from sqlcrystal.serving.clock import ClockedModel
from sqlcrystal.serving.documents import UsedCard
from sqlcrystal.serving.draft import Draft
from sqlcrystal.serving.workspace import OpenDatabase, Workspace
from sqlcrystal.solving.solver import SingleShot
from sqlcrystal.types import Attempt, Card, Effort, Episode, Execution, Failure, Question, Retrieved, Rows

SHOWN_ROWS = 100
SOURCES = {"allowed": "T3-look", "never": "T2"}
"""How an answer is repaired; a probe shows cell values to the model, one bit shows none."""


def solve(workspace: Workspace, opened: OpenDatabase, question: Question, *, memory: Memory, notify: Notify) -> Draft:
    """Answer, and repair within the budget what the engine complains of."""
    database = OnceEach(presented(opened, question))
    solver: Solver = SingleShot(ClockedModel(workspace.model), database, header_of=_header)
    if opened.entry.fallback:
        from sqlcrystal.solving.fallback import Fallback

        solver = Fallback(solver, database)
    answer = pipeline.answer(
        question, memory=_WatchedMemory(memory, notify), solver=_WatchedSolver(solver, notify), database=database
    )
    notify(_result("rows", answer.attempt.sql, answer.execution))
    from sqlcrystal.databases.symptoms import symptoms  # whose parser is not needed before the model has answered

    effort = mend(workspace, opened, answer.attempt, database, accept=lambda sql: not symptoms(sql, database))
    sql = _best(answer.attempt, effort, database)
    episode = effort.episode or _as_given(answer.attempt, effort, sql)
    draft = Draft(
        question=question,
        sql=sql,
        execution=None if sql is None else database.execute(sql),
        retrieved=answer.retrieved,
        calls=(*answer.attempt.calls, *(call for spent in effort.rounds for call in spent.calls)),
        episode=episode,
        repaired=sql != answer.attempt.sql,
    )
    if draft.repaired:
        notify(_result("repaired", sql, draft.execution))
    return draft


def _header(writer: str) -> str:
    from sqlcrystal.assembly import header  # whose stages a question without cards need not load before the model

    return header(writer)


def presented(opened: OpenDatabase, question: Question) -> Database:
    """Show the database as prompts do: with its columns' values only where values may leave it."""
    return opened.presenter.present(question, profiled=opened.entry.profile and opened.entry.values == "allowed")


def mend(
    workspace: Workspace,
    opened: OpenDatabase,
    attempt: Attempt,
    database: Database,
    *,
    accept: Check,
    trigger: Check | None = None,
) -> Effort:
    """Tell what the team's budget of repair makes of an attempt; a model that fails meanwhile leaves it as it is."""
    from sqlcrystal import assembly

    name = SOURCES[opened.entry.values]
    source = assembly.source(name, model=ClockedModel(workspace.model), database=database, budget=workspace.team.budget)
    try:
        return pipeline.repair(attempt, trigger=trigger or accept, source=source, accept=accept)
    except ModelError:
        if trigger is not None:  # a person asked for this repair and wants to know
            raise
        return Effort(attempt=attempt, source=name)


def _best(attempt: Attempt, effort: Effort, database: Database) -> str | None:
    """The accepted candidate; or else the attempt, unless it does not run and the last candidate does."""
    if effort.episode is not None:
        return effort.episode.sql
    if attempt.sql is not None and isinstance(database.execute(attempt.sql), Rows):
        return attempt.sql
    ran = [spent.sql for spent in effort.rounds if spent.sql is not None and isinstance(spent.execution, Rows)]
    return ran[-1] if ran else attempt.sql


def _as_given(attempt: Attempt, effort: Effort, sql: str | None) -> Episode:
    """The answer as it stands, with what was tried; a first answer that stands is called a success when confirmed."""
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
        """Of the whole schema."""
        return self._database.fingerprint()

    def execute(self, sql: str, *, timeout: float = 30.0, max_rows: int = 100_000) -> Execution:
        """The statement's result, from the database the first time."""
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
