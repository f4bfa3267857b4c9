"""Where an episode comes from: first-try successes, and their union with repairs."""

from typing import ClassVar

from sqlcrystal.acquisition.repair import Repair
from sqlcrystal.protocols import Check
from sqlcrystal.types import Attempt, Effort, Episode


class FirstTry:
    """Keeps answers that were right at once, with an empty trace."""

    name: ClassVar[str] = "success"

    def acquire(self, attempt: Attempt, *, right: bool, accept: Check) -> Effort:  # noqa: ARG002
        """The first attempt itself, if it is right."""
        kept = right and attempt.sql is not None
        episode = Episode(attempt=attempt, source=self.name, sql=attempt.sql or "") if kept else None
        return Effort(attempt=attempt, source=self.name, right_at_once=right, episode=episode)

    def calls_in(self, rounds: float) -> float:  # noqa: ARG002
        """It never asks."""
        return 0.0


class Union:
    """Keeps first-try successes, and repairs the rest; each episode names the source it came from."""

    def __init__(self, repair: Repair, *, name: str = "union") -> None:
        self.name = name
        self.first = FirstTry()
        self.rest = repair

    def acquire(self, attempt: Attempt, *, right: bool, accept: Check) -> Effort:
        """The success, or else a repair."""
        return (self.first if right else self.rest).acquire(attempt, right=right, accept=accept)

    def calls_in(self, rounds: float) -> float:
        """What the repair takes."""
        return self.rest.calls_in(rounds)
