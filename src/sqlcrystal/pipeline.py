"""The one place where the stages meet, for studies and for serving alike; read it downward.

read: a follow-up → a question that stands alone.  explain: its terms → their definitions beside it.
answer: retrieve → solve → execute.  repair: trigger → acquire.  admit: verify → write.  learn: repair → admit.
serve: answer → repair on the engine's signs → the SQL that stands.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from sqlcrystal.errors import ModelRejected
from sqlcrystal.protocols import Check, Database, Solver, Source, Verifier, Writer
from sqlcrystal.solving.following import PastTurn, Reading, Rewriter
from sqlcrystal.types import (
    Admitted,
    Attempt,
    Call,
    Card,
    Effort,
    Episode,
    Execution,
    Question,
    Rejected,
    Retrieved,
    Rows,
    Written,
)

if TYPE_CHECKING:
    from sqlcrystal.telling.words import Meant


class Memory(Protocol):
    """The cards that retrieval brings up for a question, and the order in which they stand."""

    def recall(self, question: Question) -> Sequence[Retrieved]:
        """Bring at most k cards with their scores, best first."""
        ...

    def arrange(self, retrieved: Sequence[Retrieved]) -> Sequence[Card]:
        """Give the cards as they stand in the prompt."""
        ...


class Answer(Struct, frozen=True, kw_only=True):
    """An attempt, the cards that were in its prompt, and the result of its SQL."""

    attempt: Attempt
    retrieved: tuple[Retrieved, ...] = ()
    execution: Execution | None = None


class Lesson(Struct, frozen=True, kw_only=True):
    """All that came of one attempt: the source's effort, the verdict, and the card if there is one."""

    effort: Effort
    verdict: Admitted | Rejected | None = None
    written: Written | None = None

    @property
    def card(self) -> Card | None:
        """Give the card, if the episode was let through and written."""
        return self.written.card if self.written is not None else None

    @property
    def calls(self) -> tuple[Call, ...]:
        """Give every model call after the attempt: the rounds' and the writer's."""
        rounds = (call for spent in self.effort.rounds for call in spent.calls)
        return (*rounds, *(self.written.calls if self.written is not None else ()))


def read(question: Question, turns: Sequence[PastTurn], *, rewriter: Rewriter) -> Reading:
    """Read a question after earlier ones; the first of a conversation stands alone already."""
    return rewriter.follow(question, turns) if turns else Reading(question=question)


def explain(question: Question, meant: "Sequence[Meant]") -> Question:
    """Put the definitions of a question's terms beside it, for every stage that answers or repairs."""
    if not meant:
        return question
    from sqlcrystal.telling.words import explained  # which a question without terms need not load

    return explained(question, meant)


def answer(question: Question, *, memory: Memory, solver: Solver, database: Database) -> Answer:
    """Retrieve, solve, execute."""
    retrieved = tuple(memory.recall(question))
    attempt = solver.solve(question, memory.arrange(retrieved))
    execution = None if attempt.sql is None else database.execute(attempt.sql)
    # A solver may fall back on the answer without cards: then none of them was in its prompt.
    return Answer(attempt=attempt, retrieved=retrieved if attempt.cards else (), execution=execution)


def repair(attempt: Attempt, *, trigger: Check, source: Source, accept: Check) -> Effort:
    """Let the source work on an attempt; the trigger says whether it is right as it is."""
    right = attempt.sql is not None and trigger(attempt.sql)
    return source.acquire(attempt, right=right, accept=accept)


class Served(Struct, frozen=True, kw_only=True):
    """An answer as people get it: the first one, all that repair made of it, and the SQL that stands."""

    answer: Answer
    effort: Effort
    sql: str | None

    @property
    def other(self) -> str | None:
        """Give the SQL of the second reading, where the views that were asked for fall apart in two."""
        if not self.answer.attempt.views:
            return None
        from sqlcrystal.solving.consensus import other_reading  # whose parser an answer of one view need not load

        return other_reading(self.answer.attempt.views, self.sql)


def serve(
    question: Question,
    *,
    memory: Memory,
    solver: Solver,
    source: Source,
    database: Database,
    sound: Check,
    on_draft: Callable[[Answer], None] = lambda _: None,
) -> Served:
    """Answer, and repair on the engine's signs alone; `on_draft` sees the answer that a repair may still replace."""
    draft = answer(question, memory=memory, solver=solver, database=database)
    on_draft(draft)
    effort = repair(draft.attempt, trigger=sound, source=source, accept=sound)
    return Served(answer=draft, effort=effort, sql=standing(effort, database))


def standing(effort: Effort, database: Database) -> str | None:
    """Choose the accepted candidate; or else the attempt, unless it does not run and the last candidate does."""
    first = effort.attempt.sql
    if effort.episode is not None:
        return effort.episode.sql
    if first is not None and isinstance(database.execute(first), Rows):
        return first
    ran = [spent.sql for spent in effort.rounds if spent.sql is not None and isinstance(spent.execution, Rows)]
    return ran[-1] if ran else first


def admit(episode: Episode, *, verifier: Verifier, writer: Writer) -> tuple[Admitted | Rejected, Written | None]:
    """Ask the verifier, and write a card of what it lets through; nothing else in the system makes one."""
    verdict = verifier.verify(episode)
    return verdict, writer.write(verdict) if isinstance(verdict, Admitted) else None


def learn(
    attempt: Attempt, *, trigger: Check, source: Source, accept: Check, verifier: Verifier, writer: Writer
) -> Lesson:
    """Run the paper's algorithm for one question: repair, verify, write."""
    effort = repair(attempt, trigger=trigger, source=source, accept=accept)
    if (episode := effort.last_candidate) is None:
        return Lesson(effort=effort)
    try:
        verdict, written = admit(episode, verifier=verifier, writer=writer)
    except ModelRejected:  # an episode too long for the writer's model stays without a card
        return Lesson(effort=effort)
    return Lesson(effort=effort, verdict=verdict, written=written)
