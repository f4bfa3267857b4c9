"""Where an episode comes from: first-try successes, and their union with repairs."""

from typing import ClassVar

from sqlcrystal.acquisition.repair import Repair
from sqlcrystal.protocols import Check, Watch, ignore
from sqlcrystal.types import Attempt, Episode


class FirstTry:
    """Keeps answers that were right at once, with an empty trace."""

    name: ClassVar[str] = "success"

    def acquire(self, attempt: Attempt, check: Check, *, watch: Watch = ignore) -> Episode | None:  # noqa: ARG002
        """The first attempt itself, if the check accepts it."""
        if attempt.sql is None or not check(attempt.sql):
            return None
        return Episode(attempt=attempt, source=self.name, sql=attempt.sql)


class Union:
    """Keeps first-try successes, and repairs the rest; each episode names the source it came from."""

    def __init__(self, repair: Repair, *, name: str = "union") -> None:
        self.name = name
        self.first = FirstTry()
        self.rest = repair

    def acquire(self, attempt: Attempt, check: Check, *, watch: Watch = ignore) -> Episode | None:
        """The success, or else a repair."""
        return self.first.acquire(attempt, check) or self.rest.repair(attempt, check, watch=watch)
