"""Runs a study: a crew over the units, each as soon as what it waits for is there, resumable at any moment.

The recording is the only memory between runs: whatever is not in it is asked, whatever is in it is never asked again,
and everything else follows from it.
"""

import time
from collections import Counter, defaultdict
from heapq import heappop, heappush

from msgspec import Struct

from sqlcrystal.errors import (
    InfrastructureError,
    ModelRefusedAccess,
    ModelRejected,
    RecordingMiss,
    SqlcrystalError,
)
from sqlcrystal.study.crew import Crew, Done
from sqlcrystal.study.ledger import Outcome
from sqlcrystal.study.log import Logs
from sqlcrystal.study.memories import Holding
from sqlcrystal.study.perform import Performed, Performer, passed
from sqlcrystal.study.reporter import Reporter
from sqlcrystal.study.units import Bank, Stretch, Unit

PATIENCE = 8
"""So many failed calls in a row, or as many as are under way at once and one more, end the run: the model is away."""
REFUSALS = 8
"""So many prompts refused, and none answered, end the run: it is not the prompts."""


class Facts(Struct, kw_only=True):
    """What a run found out: the outcomes of complete stretches, what the banks hold, and why the rest is left out."""

    outcomes: dict[str, list[Outcome]]
    holdings: dict[Bank, Holding]
    left_out: dict[str, str]
    first_error: SqlcrystalError | None = None


class Progress(Struct):
    """How far one stretch is."""

    stretch: Stretch
    waiting: int
    performed: dict[Unit, Performed | None]
    trouble: str = ""


class Runner:
    """Keeps a crew busy with the units of one study, the earliest stretch first."""

    def __init__(
        self,
        performer: Performer,
        stretches: list[Stretch],
        *,
        crew: Crew,
        reporter: Reporter,
        logs: Logs | None = None,
        until: float | None = None,
    ) -> None:
        """`until` is the moment of `time.monotonic()` after which no new unit is begun."""
        self.performer, self.crew, self.reporter, self.logs, self.until = performer, crew, reporter, logs, until
        self.replaying = performer.study.mode == "replay"
        self.progress = [Progress(stretch, len(stretch.units), {}) for stretch in stretches]
        self.holdings: dict[Bank, Holding] = {}
        self.first_error: SqlcrystalError | None = None
        self._places = {unit: place for place, each in enumerate(stretches) for unit in each.units}
        self._numbers = {unit: number for number, unit in enumerate(self._places)}
        self._fillers: dict[Bank, list[Unit]] = defaultdict(list)
        self._waiting: dict[tuple[Bank, ...], list[Unit]] = defaultdict(list)
        for unit in self._places:
            self._waiting[unit.needs].append(unit)
            if unit.fills is not None:
                self._fillers[unit.fills].append(unit)
        self._unfilled = Counter({bank: len(units) for bank, units in self._fillers.items()})
        self._ready: list[tuple[int, tuple[str, ...], int, Unit]] = []
        self._stopping = ""
        self._failures = self._refused = self._answered = 0
        self._told: set[str] = set()

    def run(self) -> Facts:
        """Every unit that can be performed; what cannot be finished is left out with its reason."""
        under_way = 0
        self._release()
        self.reporter.start(len(self._places))
        while True:
            try:
                while under_way < self.crew.size and (unit := self._next_unit()) is not None:
                    self.crew.begin(unit, {bank: self.holdings[bank] for bank in unit.needs})
                    under_way += 1
                if not under_way:
                    break
                done = self.crew.next_done()
                under_way -= 1
                self._settle(done)
            except KeyboardInterrupt:
                if self._stopping:
                    raise
                self._stopping = "interrupted"
                self.reporter.note("stopping after the calls under way; what is complete will be written")
        return self._facts()

    # ── what is next ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _release(self) -> None:
        """Queue every unit whose banks are filled, those whose prompts start alike side by side."""
        for needs in [needs for needs in self._waiting if all(bank in self.holdings for bank in needs)]:
            for unit in self._waiting.pop(needs):
                place = self._places[unit]
                try:
                    prefix = self.performer.prefix(unit, self.holdings)
                except InfrastructureError as error:  # the embedder is away
                    self._fail(unit, error)
                    continue
                heappush(self._ready, (place, prefix, self._numbers[unit], unit))

    def _next_unit(self) -> Unit | None:
        if not self._stopping and self.until is not None and time.monotonic() > self.until:
            self._stopping = "not begun or not finished in time"
        while self._ready and not self._stopping:
            place, _, _, unit = heappop(self._ready)
            progress = self.progress[place]
            # A replay asks nobody, so a stretch that lacks one reply is not gone through for the others.
            if not (self.replaying and progress.trouble):
                return unit
        return None

    # ── what came back ───────────────────────────────────────────────────────────────────────────────────────────────

    def _settle(self, done: Done) -> None:
        error = done.error
        if isinstance(error, ModelRefusedAccess):
            raise error
        if isinstance(error, ModelRejected):
            self._refused += 1
            if not self._answered and self._refused >= REFUSALS:
                raise error
        elif isinstance(error, InfrastructureError | RecordingMiss):
            self._fail(done.unit, error)
            return
        elif error is not None:
            raise error
        else:
            self._answered += 1
        self._failures = 0
        self._keep(done.unit, done.performed)

    def _fail(self, unit: Unit, error: SqlcrystalError) -> None:
        progress = self.progress[self._places[unit]]
        progress.trouble = progress.trouble or str(error)
        self.first_error = self.first_error or error
        if isinstance(error, InfrastructureError):
            if str(error) not in self._told:
                self._told.add(str(error))
                self.reporter.note(f"{progress.stretch.label}: {error}")
            self._failures += 1
            if self._failures >= min(PATIENCE, self.crew.size + 1):
                self._stopping = str(error)

    def _keep(self, unit: Unit, performed: Performed | None) -> None:
        progress = self.progress[self._places[unit]]
        progress.performed[unit] = performed
        progress.waiting -= 1
        self.reporter.step(progress.stretch.label)
        if performed is not None and progress.stretch.told and self.logs is not None:
            run = f"-run{performed.outcome.run}" if performed.outcome.run > 1 else ""
            self.logs.append(f"{unit.arm}-{unit.setting}-{unit.seed}{run}", performed.line)
        if unit.fills is not None:
            self._unfilled[unit.fills] -= 1
            if not self._unfilled[unit.fills]:
                self.holdings[unit.fills] = self._holding(unit.fills)
                self._release()

    def _holding(self, bank: Bank) -> Holding:
        """The cards of a finished pass after those of the passes before it."""
        units = self._fillers[bank]
        performed = [self.progress[self._places[unit]].performed[unit] for unit in units]
        before = self.holdings[units[0].needs[0]] if units[0].needs else Holding()
        return before.extended(*passed(units, performed))

    def _facts(self) -> Facts:
        facts = Facts(outcomes={}, holdings=self.holdings, left_out={}, first_error=self.first_error)
        for progress in self.progress:
            stretch = progress.stretch
            if not stretch.told:
                continue
            if progress.waiting:
                facts.left_out[stretch.label] = (
                    progress.trouble or self._stopping or "needs a collection that is not complete"
                )
                continue
            came = (progress.performed[unit] for unit in stretch.units)
            facts.outcomes[stretch.label] = [each.outcome for each in came if each is not None]
        return facts
