"""The choice on the engine's signs: memory, unless its answer shows a sign of trouble and the plain one does not."""

from collections.abc import Sequence

from msgspec.structs import replace

from sqlcrystal.databases.symptoms import symptoms
from sqlcrystal.protocols import Database, Solver
from sqlcrystal.types import Attempt, Card, Question


class Fallback:
    """Answers from memory, unless that answer shows a sign of trouble and the answer without cards shows none.

    The signs are the engine's own, so no oracle is asked; the plain answer is asked for only when there is a sign.
    """

    def __init__(self, solver: Solver, database: Database) -> None:
        """Choose between two answers of one solver."""
        self.solver = solver
        self.database = database

    def shown(self, question: Question) -> Database:
        """As the solver shows it."""
        return self.solver.shown(question)

    def solve(self, question: Question, cards: Sequence[Card] = ()) -> Attempt:
        """Give the attempt that stands; its calls are those of both, the one that was answered with its SQL last."""
        remembered = self.solver.solve(question, cards)
        if not cards or not symptoms(remembered.sql, self.database):
            return remembered
        plain = self.solver.solve(question)
        chosen, other = (remembered, plain) if symptoms(plain.sql, self.database) else (plain, remembered)
        return replace(chosen, calls=(*other.calls, *chosen.calls))
