"""The actions of `Crystal` that tell what memory is worth: the live account, its experiment, and the team's tests."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from sqlcrystal.bank import Scope
from sqlcrystal.serving import reach
from sqlcrystal.serving.reach import ReachedTeam

if TYPE_CHECKING:
    from sqlcrystal.serving.measuring import MeasuringChoice
    from sqlcrystal.serving.own_tests import OwnTest, TestResult
    from sqlcrystal.serving.refit import TeamConfidence
    from sqlcrystal.serving.value import Look, Value


class Worth(ReachedTeam):
    """The worth of memory to a team, and its measurement."""

    def value(self, database: str | None = None, *, effect_pp: float | None = None, since: str = "") -> "list[Value]":
        """Say what memory is worth: the live lift with its interval, its cost, which cards earn, if it is known yet."""
        from sqlcrystal.serving.value import values

        if not self.workspace.store_exists():
            return []
        name = self._one_or_all(database)
        return values(self.store, prices=self.prices, database=name, effect_pp=effect_pp, since=since)

    def refit(self, database: str | None = None) -> "TeamConfidence":
        """Refit now how sure answers of a database are told to be, from all verdicts on them."""
        from sqlcrystal.serving.refit import refit_now

        return refit_now(reach.existing_store(self.workspace), self.database(database, Scope.MANAGE))

    def trend(self, database: str | None = None) -> "list[Look]":
        """Give the live lift of a database as it stood after so many verdicts."""
        from sqlcrystal.serving.value import trend

        return trend(self.store, self.database(database))

    def judged(self, database: str | None = None) -> list[bool]:
        """Tell of each verdict that stands, in order, whether it found the answer right."""
        return [verdict.right for verdict in self.store.answers.judged(database=self.database(database))]

    def measuring(self, database: str | None = None) -> "tuple[MeasuringChoice, ...]":
        """Give the ways to measure memory over a database: what each costs, when it will tell, which is on."""
        from sqlcrystal.serving.measuring import choices

        return choices(self.workspace, self.database(database))

    def measure(self, kind: str, database: str | None = None, *, by: str = "") -> "MeasuringChoice":
        """Measure memory from now on in one of those ways, in every process; it goes before the settings."""
        from sqlcrystal.serving.measuring import choose

        name = self.database(database, Scope.MANAGE)
        return choose(self.workspace, name, kind, by=self._named(by))

    def test(self, tests: "Iterable[OwnTest]", database: str | None = None) -> "list[TestResult]":
        """Ask the team's own tests with memory and without; nothing is kept of it."""
        from sqlcrystal.serving.own_tests import run_tests

        return run_tests(self.workspace, tests, choose=lambda name: self.database(name or database))

    def make_benchmark(self, folder: Path, database: str | None = None) -> int:
        """Write the confirmed answers as a benchmark of one's own; returns how many."""
        from sqlcrystal.serving.own_tests import make_benchmark

        chosen = self._one_or_all(database, Scope.MANAGE)
        return make_benchmark(reach.existing_store(self.workspace), folder, database=chosen)
