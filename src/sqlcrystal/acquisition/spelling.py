"""T3-near and T2-near, the repairs of the service: values are first spelled as they are stored, without a call."""

from collections.abc import Iterator
from typing import ClassVar, Self

from sqlcrystal.acquisition.repair import NamedSource, Repair, clip
from sqlcrystal.acquisition.revision import LookFirst, OneBit
from sqlcrystal.databases.spelling import misspelt, respelled
from sqlcrystal.protocols import Check, Database, LanguageModel
from sqlcrystal.types import Attempt, Effort, Episode, Round


class LookNear(LookFirst):
    """Tells the model, beside what T3-look tells, which stored value is near a literal that its column never holds."""

    name: ClassVar[str] = "T3-look, told near values"

    def remarks(self, previous: str | None) -> Iterator[str]:
        """Write a sentence for each misspelt value."""
        return misspelt(previous, self.database)


class SpelledThenLook(NamedSource):
    """Exchanges misspelt values for stored ones; where that is not enough, asks the model to repair."""

    name: ClassVar[str] = "T3-near"
    summary: ClassVar[str] = "stored spellings, then repair by T3-look told of near values"
    repairs_by: ClassVar[type[Repair]] = LookNear

    def __init__(self, repair: Repair) -> None:
        self.rest = repair

    @classmethod
    def of(cls, model: LanguageModel, database: Database, *, budget: int) -> Self:
        """Make the source around the one that asks the model."""
        return cls(cls.repairs_by.of(model, database, budget=budget))

    def acquire(self, attempt: Attempt, *, right: bool, accept: Check) -> Effort:
        """Take the respelled query if the check accepts it; a round of it has no call."""
        found = None if right else respelled(attempt.sql, self.rest.database)
        if found is None or not accept(found.sql):
            return self.rest.acquire(attempt, right=right, accept=accept)
        execution = clip(self.rest.run(found.sql))
        rounds = (Round(calls=(), sql=found.sql, execution=execution, accepted=True),)
        episode = Episode(attempt=attempt, source=self.name, sql=found.sql, rounds=rounds)
        return Effort(attempt=attempt, source=self.name, rounds=rounds, episode=episode)

    def calls_in(self, rounds: float) -> float:
        """Count what the repair takes."""
        return self.rest.calls_in(rounds)


class SpelledThenOneBit(SpelledThenLook):
    """Does the same where the model may see no value: it is told nothing but that its query was wrong."""

    name: ClassVar[str] = "T2-near"
    summary: ClassVar[str] = "stored spellings, then repair on one bit"
    repairs_by: ClassVar[type[Repair]] = OneBit
