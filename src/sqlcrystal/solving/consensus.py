"""The choice by agreement: several views of one database answer, and the result that most of them share stands."""

from collections.abc import Hashable, Iterator, Sequence
from typing import ClassVar, Self

from msgspec.structs import replace

from sqlcrystal.databases.symptoms import symptoms
from sqlcrystal.errors import ModelError
from sqlcrystal.protocols import Database, LanguageModel, Solver
from sqlcrystal.solving.profile import Profiled
from sqlcrystal.solving.prompt import HeaderOf
from sqlcrystal.solving.solver import NamedSolver, SingleShot, same_words
from sqlcrystal.types import Attempt, Card, Execution, Question, Rows, Sampling, View

AGREEING = 2
"""So many sound views with one result end the asking."""


class Consensus(NamedSolver):
    """Answers from what the columns hold and the cards, without the cards, and bare; two that agree are enough.

    An answer that is the very query of a card stands at once, since that query was verified. Answers that show a sign
    of trouble have no voice unless all do: then the first stands, and repair is due. Among results with equally many
    voices the first stands. No oracle is asked.
    """

    name: ClassVar[str] = "consensus"
    summary: ClassVar[str] = "answers with columns and cards, without cards, and bare, until two results agree"

    def __init__(self, full: Solver, bare: Solver, database: Database, *, lenient: bool = False) -> None:
        """Choose between views; a lenient choice is made from the views there are when the model fails meanwhile."""
        self.full = full
        self.bare = bare
        self.database = database
        self.lenient = lenient

    @classmethod
    def of(cls, model: LanguageModel, database: Database, *, sampling: Sampling, header_of: HeaderOf) -> Self:
        """Make the solver with its views."""
        full = Profiled.of(model, database, sampling=sampling, header_of=header_of)
        return cls(full, SingleShot.of(model, database, sampling=sampling, header_of=header_of), database)

    def shown(self, question: Question) -> Database:
        """Show the database as its fullest view does."""
        return self.full.shown(question)

    def solve(self, question: Question, cards: Sequence[Card] = ()) -> Attempt:
        """Ask for views until enough agree; the attempt that stands has the calls of all, its own last."""
        attempts: list[Attempt] = []
        views: tuple[View, ...] = ()
        for attempt in self._attempts(question, cards):
            attempts.append(attempt)
            views = viewed(attempts, self.database)
            if any(voices(views, view) >= AGREEING for view in views) or (
                views[0].sound and _is_of(attempts[0], cards)
            ):
                break
        chosen = max(attempts, key=lambda attempt: voices(views, views[attempts.index(attempt)]))
        others = (call for attempt in attempts if attempt is not chosen for call in attempt.calls)
        return replace(chosen, calls=(*others, *chosen.calls), views=views if len(views) > 1 else ())

    def _attempts(self, question: Question, cards: Sequence[Card]) -> Iterator[Attempt]:
        """Make the attempts one by one; a view that would ask the very same as another is left out."""
        ways = [(self.full, cards)]
        if cards:
            ways.append((self.full, ()))
        if self.bare.shown(question).schema() != self.full.shown(question).schema():
            ways.append((self.bare, ()))
        for place, (solver, shown) in enumerate(ways):
            try:
                yield solver.solve(question, shown)
            except ModelError:
                if place == 0 or not self.lenient:
                    raise
                return


def _is_of(attempt: Attempt, cards: Sequence[Card]) -> bool:
    """Tell whether an answer is the query of one of the cards that its prompt showed."""
    return any(same_words(card.sql, attempt.sql) for card in cards)


def viewed(attempts: Sequence[Attempt], database: Database) -> tuple[View, ...]:
    """Tell of each attempt whether it shows a sign of trouble, and which others returned the same rows."""
    results: dict[Hashable, int] = {}
    views = []
    for place, attempt in enumerate(attempts):
        key = rows_of(database.execute(attempt.sql)) if attempt.sql is not None else None
        number = results.setdefault(place if key is None else key, len(results))
        views.append(View(sql=attempt.sql, sound=not symptoms(attempt.sql, database), result=number))
    return tuple(views)


def voices(views: Sequence[View], view: View) -> int:
    """Count the sound views with the same result; none for one that shows a sign of trouble."""
    return sum(other.sound and other.result == view.result for other in views) if view.sound else 0


def other_reading(views: Sequence[View], sql: str | None) -> str | None:
    """Give the second reading of a question: the next sound view with another result, where no two views agree.

    Views are facts of the engine, so that no model's opinion of what is ambiguous decides; None where the SQL that
    stands is not one of them (it was repaired), or shows a sign of trouble itself.
    """
    standing = next((view for view in views if view.sql == sql), None)
    if standing is None or voices(views, standing) != 1 or any(voices(views, view) >= AGREEING for view in views):
        return None
    return next((view.sql for view in views if view.sound and view.result != standing.result), None)


def rows_of(execution: Execution) -> Hashable:
    """Give what two executions must share to be one result, the set of their rows; None for a failure."""
    return frozenset(execution.rows) if isinstance(execution, Rows) else None
