"""The study's three regimes: the oracle's bit, the oracle's bit with noise, and no gate at all."""

import hashlib
from collections.abc import Callable
from typing import ClassVar, TypeAlias

from sqlcrystal.admission.seal import Clock, admit, utc_now
from sqlcrystal.errors import ConfigError
from sqlcrystal.types import Admitted, Episode, Question, Rejected

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
        """Whether this question's decision is turned around."""
        digest = hashlib.sha256(f"{self.seed}\0{question.database}\0{question.id}".encode()).digest()
        return int.from_bytes(digest[:8], "big") / 2**64 < self.rate

    def verify(self, episode: Episode) -> Admitted | Rejected:
        """The oracle's bit, or its opposite."""
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
