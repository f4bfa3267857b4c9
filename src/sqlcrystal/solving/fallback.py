"""The choice on the engine's signs: memory, unless its answer shows a sign of trouble and the plain one does not."""

from collections.abc import Sequence
from typing import ClassVar, Self

from msgspec.structs import replace

from sqlcrystal.databases.symptoms import symptoms
from sqlcrystal.protocols import Database, LanguageModel, Solver
from sqlcrystal.solving.prompt import HeaderOf
from sqlcrystal.solving.solver import NamedSolver, SingleShot
from sqlcrystal.types import Attempt, Card, Question, Sampling


class Fallback(NamedSolver):
    """Answers from memory, unless that answer shows a sign of trouble and the answer without cards shows none.

    The signs are the engine's own, so no oracle is asked; the plain answer is asked for only when there is a sign.
    """

    name: ClassVar[str] = "fallback"
    summary: ClassVar[str] = "answers without cards where only the answer with cards shows a sign of trouble"
    chooses_between: ClassVar[type[SingleShot]] = SingleShot
    """The solver of both answers, where it is made by name."""

    def __init__(self, solver: Solver, database: Database) -> None:
        """Choose between two answers of one solver."""
        self.solver = solver
        self.database = database

    @classmethod
    def of(cls, model: LanguageModel, database: Database, *, sampling: Sampling, header_of: HeaderOf) -> Self:
        """Make the solver around the one that answers."""
        return cls(cls.chooses_between.of(model, database, sampling=sampling, header_of=header_of), database)

    def shown(self, question: Question) -> Database:
        """Show the database as the solver does."""
        return self.solver.shown(question)

    def solve(self, question: Question, cards: Sequence[Card] = ()) -> Attempt:
        """Give the attempt that stands; its calls are those of both, the one that was answered with its SQL last."""
        remembered = self.solver.solve(question, cards)
        if not cards or not symptoms(remembered.sql, self.database):
            return remembered
        plain = self.solver.solve(question)
        chosen, other = (remembered, plain) if symptoms(plain.sql, self.database) else (plain, remembered)
        return replace(chosen, calls=(*other.calls, *chosen.calls))
