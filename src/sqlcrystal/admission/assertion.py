"""Executable assertion: SQL over the candidate's result that must return rows, no rows, or a value."""

import math
from typing import ClassVar, Literal, TypeAlias

from sqlcrystal.admission.seal import Clock, admit, utc_now
from sqlcrystal.config import ExpectedValue
from sqlcrystal.errors import ConfigError
from sqlcrystal.protocols import Database
from sqlcrystal.types import Admitted, Cell, Episode, Failure, Rejected, Rows

PLACE = "{answer}"


Expectation: TypeAlias = Literal["rows", "no rows"] | ExpectedValue


class Assertion:
    """Admits an episode whose SQL runs and passes one assertion; `{answer}` stands for the candidate as a subquery.

    An assertion that cannot run rejects. It does not prove the answer right, only not wrong in the way it looks for.
    """

    signal: ClassVar[str] = "assertion"

    def __init__(
        self,
        database: Database,
        sql: str,
        *,
        expect: Expectation = "rows",
        by: str = "assertion",
        timeout: float = 30.0,
        clock: Clock = utc_now,
    ) -> None:
        if PLACE not in sql:
            raise ConfigError(f"admission.assertion: the SQL must read from {PLACE}, or it would admit any answer")
        self.database = database
        self.sql = sql
        self.expect = expect
        self.by = by
        self.timeout = timeout
        self.clock = clock

    def verify(self, episode: Episode) -> Admitted | Rejected:
        """Run the candidate, then the assertion over it."""
        # The candidate runs alone first, so that SQL which only makes sense inside our parentheses never passes.
        alone = self.database.execute(episode.sql, timeout=self.timeout)
        if isinstance(alone, Failure):
            return self.reject(episode, f"the SQL does not run: {alone.message}")
        asserted = self.sql.replace(PLACE, f"(\n{episode.sql}\n)")
        result = self.database.execute(asserted, timeout=self.timeout)
        if isinstance(result, Failure):
            return self.reject(episode, f"the assertion could not run: {result.message}")
        if (problem := self.problem(result)) is not None:
            return self.reject(episode, problem)
        return admit(episode, signal=self.signal, by=self.by, clock=self.clock, detail=self.sql)

    def problem(self, result: Rows) -> str | None:
        """What is wrong with the assertion's result, if anything is."""
        if isinstance(self.expect, ExpectedValue):
            shape = len(result.rows) == 1 and len(result.rows[0]) == 1
            if shape and _same(result.rows[0][0], self.expect.value):
                return None
            returned = repr(result.rows[0][0]) if shape else f"{len(result.rows)} rows"
            return f"the assertion must return {self.expect.value!r} and returned {returned}"
        if bool(result.rows) == (self.expect == "rows"):
            return None
        return f"the assertion must return {self.expect} and returned {len(result.rows)} rows"

    def reject(self, episode: Episode, reason: str) -> Rejected:
        """Turn the episode away."""
        return Rejected(episode=episode, signal=self.signal, reason=reason)


def _same(left: Cell, right: Cell) -> bool:
    numbers = isinstance(left, int | float) and isinstance(right, int | float)
    return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-12) if numbers else left == right  # type: ignore[arg-type]
