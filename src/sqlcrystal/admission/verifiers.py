"""The verifiers that decide here: a benchmark's bit, a person, the engine, an assertion in SQL, or none at all."""

import hashlib
import math
from collections.abc import Callable
from typing import ClassVar, Literal, TypeAlias

from sqlcrystal.admission.seal import Clock, admit, utc_now
from sqlcrystal.config import ExpectedValue
from sqlcrystal.databases.results import result_digest
from sqlcrystal.databases.symptoms import symptoms
from sqlcrystal.errors import ConfigError
from sqlcrystal.protocols import Database
from sqlcrystal.types import Admitted, Cell, Episode, Failure, Question, Rejected, Rows

Judge: TypeAlias = Callable[[Question, str], bool]
"""Whether SQL answers a question; a benchmark knows, and says no more than this bit."""


class Oracle:
    """Admits what the benchmark says is right."""

    signal: ClassVar[str] = "oracle"

    def __init__(self, judge: Judge, *, by: str = "benchmark", clock: Clock = utc_now) -> None:
        self.judge = judge
        self.by = by
        self.clock = clock

    def verify(self, episode: Episode) -> Admitted | Rejected:
        """Ask for the bit."""
        if self.judge(episode.question, episode.sql):
            return admit(episode, signal=self.signal, by=self.by, clock=self.clock)
        return Rejected(episode=episode, signal=self.signal, reason="the benchmark says it is wrong")


class Noisy:
    """The oracle with its decision flipped on a seeded share of the questions.

    A question's flip depends on the seed and the question alone, so a higher rate flips a superset.
    """

    signal: ClassVar[str] = "noisy"

    def __init__(
        self, judge: Judge, *, rate: float = 0.1, seed: int = 0, by: str = "benchmark", clock: Clock = utc_now
    ) -> None:
        if not 0.0 <= rate <= 1.0:
            raise ConfigError(f"admission.rate: {rate!r} is not a share; choose a number from 0 to 1")
        self.judge = judge
        self.rate = rate
        self.seed = seed
        self.by = by
        self.clock = clock

    def flips(self, question: Question) -> bool:
        """Tell whether this question's decision is turned around."""
        digest = hashlib.sha256(f"{self.seed}\0{question.database}\0{question.id}".encode()).digest()
        return int.from_bytes(digest[:8], "big") / 2**64 < self.rate

    def verify(self, episode: Episode) -> Admitted | Rejected:
        """Follow the oracle's bit, or its opposite."""
        flipped = self.flips(episode.question)
        detail = f"rate={self.rate:g} seed={self.seed}" + (" flipped" if flipped else "")
        if self.judge(episode.question, episode.sql) != flipped:
            return admit(episode, signal=self.signal, by=self.by, clock=self.clock, detail=detail)
        return Rejected(episode=episode, signal=self.signal, reason=f"the noisy benchmark says it is wrong ({detail})")


class Ungated:
    """Admits everything: the control that shows what a gate is worth. Never use it in earnest."""

    signal: ClassVar[str] = "ungated"

    def __init__(self, *, by: str = "nobody", clock: Clock = utc_now) -> None:
        self.by = by
        self.clock = clock

    def verify(self, episode: Episode) -> Admitted:
        """Let it through, and say that nothing was checked."""
        return admit(episode, signal=self.signal, by=self.by, clock=self.clock, detail=f"elected by {episode.source}")


Verdict: TypeAlias = Callable[[Episode], bool | None]
"""A person's verdict on an episode; None while there is none."""


class UserConfirmation:
    """Admits what a named person confirmed; silence admits nothing."""

    signal: ClassVar[str] = "user"

    def __init__(self, verdict: Verdict, *, by: str, note: str = "", clock: Clock = utc_now) -> None:
        self.verdict = verdict
        self.by = by
        self.note = note
        self.clock = clock

    def verify(self, episode: Episode) -> Admitted | Rejected:
        """Ask for the person's verdict."""
        verdict = self.verdict(episode)
        if verdict is True:
            return admit(episode, signal=self.signal, by=self.by, clock=self.clock, detail=self.note)
        reason = f"{self.by} rejected it" if verdict is False else f"{self.by} gave no verdict"
        return Rejected(episode=episode, signal=self.signal, reason=reason + (f": {self.note}" if self.note else ""))


class EngineSignal:
    """Admits SQL that runs, returns something, and compares columns only with values they hold.

    It does not guarantee that the SQL answers the question: cards it admits say so by their signal.
    """

    signal: ClassVar[str] = "engine"

    def __init__(self, database: Database, *, clock: Clock = utc_now) -> None:
        self.database = database
        self.clock = clock

    def verify(self, episode: Episode) -> Admitted | Rejected:
        """Look at what the engine shows."""
        if complaints := symptoms(episode.sql, self.database):
            return Rejected(episode=episode, signal=self.signal, reason=" ".join(complaints))
        return admit(episode, signal=self.signal, by=self.database.dialect, clock=self.clock)


class RoundTrip:
    """Admits a query of a log whose question, asked again, leads back to the same rows, where there are any.

    It does not guarantee that a person would ask so, or that the query was right when it ran: cards say so by it.
    """

    signal: ClassVar[str] = "round-trip"

    def __init__(self, database: Database, *, by: str = "model", clock: Clock = utc_now) -> None:
        self.database = database
        self.by = by
        self.clock = clock

    def verify(self, episode: Episode) -> Admitted | Rejected:
        """Hold the rows of the answer to the question beside those of the query."""
        if complaints := symptoms(episode.sql, self.database):
            return Rejected(episode=episode, signal=self.signal, reason=" ".join(complaints))
        if not self.leads_back(episode.attempt.sql, episode.sql):
            return Rejected(episode=episode, signal=self.signal, reason="asked again, its question gave other rows")
        return admit(episode, signal=self.signal, by=self.by, clock=self.clock)

    def leads_back(self, answer: str | None, logged: str) -> bool:
        """Tell whether two queries return the same rows, in any order."""
        found = "" if answer is None else result_digest(self.database.execute(answer))
        return bool(found) and found == result_digest(self.database.execute(logged))


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
        """Tell what is wrong with the assertion's result, if anything is."""
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
