"""Runs a study: a worker pool over the units, each as soon as what it waits for is there, resumable at any moment.

The recording is the only memory between runs: whatever is not in it is asked, whatever is in it is never asked again,
and everything else follows from it.
"""

import time
from collections import defaultdict
from collections.abc import Hashable
from heapq import heappop, heappush
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from sqlcrystal.engines.worker_pool import Done, WorkerPool
from sqlcrystal.errors import InfrastructureError, ModelRefusedAccess, ModelRejected, RecordingMiss, SqlcrystalError
from sqlcrystal.ledger.folder import Logs
from sqlcrystal.ledger.records import Outcome
from sqlcrystal.protocols import Reporter
from sqlcrystal.study.memories import CollectionProgress, FinishedCollection, Performed
from sqlcrystal.study.perform import Performer
from sqlcrystal.study.units import Batch, Collection, Unit

# ── the run ──────────────────────────────────────────────────────────────────────────────────────────────────────────

PATIENCE = 8
"""So many failed calls in a row, or as many as are under way at once and one more, end the run: the model is away."""
REFUSALS = 8
"""So many prompts refused, and none answered, end the run: it is not the prompts."""
StudyWorkers: TypeAlias = WorkerPool[Unit, Collection, FinishedCollection, Performed]


class RunResult(Struct, kw_only=True):
    """The findings of a run: the outcomes of complete batches, the banks, and why the rest is left out."""

    outcomes: dict[str, list[Outcome]]
    collections: dict[Collection, FinishedCollection]
    left_out: dict[str, str]
    first_error: SqlcrystalError | None = None


class Progress(Struct):
    """The progress of one batch: its units in the order of the tables, each with its row once it is performed."""

    batch: Batch
    rows: dict[Unit, Outcome | None]
    trouble: str = ""

    @property
    def complete(self) -> bool:
        """Tell whether every unit is performed."""
        return len(self.rows) == len(self.batch.units)


class Ready(NamedTuple):
    """A unit that can be begun, in the order in which to begin it, and what its work has in common with others."""

    place: int
    prefix: tuple[str, ...]
    number: int
    unit: Unit
    work: Hashable


class Runner:
    """Keeps a worker pool busy with the units of one study, the earliest batch first."""

    def __init__(
        self,
        performer: Performer,
        batches: list[Batch],
        *,
        workers: StudyWorkers,
        reporter: Reporter,
        logs: Logs | None = None,
        until: float | None = None,
    ) -> None:
        """`until` is the moment of `time.monotonic()` after which no new unit is begun."""
        self.performer, self.workers, self.reporter, self.logs, self.until = performer, workers, reporter, logs, until
        self.replaying = performer.study.mode == "replay"
        self.progress = [Progress(batch, {}) for batch in batches]
        self.first_error: SqlcrystalError | None = None
        self._places = {unit: place for place, batch in enumerate(batches) for unit in batch.units}
        self._numbers = {unit: number for number, unit in enumerate(self._places)}
        self._collections = CollectionProgress(self._places)
        self._waiting: dict[tuple[Collection, ...], list[Unit]] = defaultdict(list)
        for unit in self._places:
            self._waiting[unit.needs].append(unit)
        self._ready: list[Ready] = []
        self._under_way: dict[Unit, Hashable] = {}
        self._parked: dict[Hashable, list[Ready]] = {}
        self._stopping = ""
        self._failures = self._refused = self._answered = 0
        self._told: set[str] = set()

    def run(self) -> RunResult:
        """Every unit that can be performed; what cannot be finished is left out with its reason."""
        self._release()
        self.reporter.start(len(self._places))
        while True:
            try:
                while len(self._under_way) < self.workers.size and (unit := self._next_unit()) is not None:
                    self.workers.begin(unit, {bank: self._collections.filled[bank] for bank in unit.needs})
                if not self._under_way:
                    return self._result()
                done = self.workers.next_done()
                for ready in self._parked.pop(self._under_way.pop(done.unit)):
                    heappush(self._ready, ready)
                self._settle(done)
            except KeyboardInterrupt:
                if self._stopping:
                    raise
                self._stopping = "interrupted"
                self.reporter.note("stopping after the calls under way; what is complete will be written")

    # ── what is next ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _release(self) -> None:
        """Queue every unit whose banks are filled, those whose prompts start alike side by side."""
        filled = self._collections.filled
        for needs in [needs for needs in self._waiting if all(bank in filled for bank in needs)]:
            for unit in self._waiting.pop(needs):
                try:
                    prefix, work = self.performer.work(unit, filled)
                except InfrastructureError as error:  # the embedder cannot be reached
                    self._fail(unit, error)
                    continue
                heappush(self._ready, Ready(self._places[unit], prefix, self._numbers[unit], unit, work))

    def _next_unit(self) -> Unit | None:
        """The earliest unit whose work no other is doing already; those that ask alike are parked until it is done."""
        if not self._stopping and self.until is not None and time.monotonic() > self.until:
            self._stopping = "not begun or not finished in time"
        while self._ready and not self._stopping:
            ready = heappop(self._ready)
            # A replay asks nobody, so a batch that lacks one reply is not gone through for the others.
            if self.replaying and self.progress[ready.place].trouble:
                continue
            if ready.work in self._parked:
                self._parked[ready.work].append(ready)
                continue
            self._parked[ready.work] = []
            self._under_way[ready.unit] = ready.work
            return ready.unit
        return None

    # ── what came back ───────────────────────────────────────────────────────────────────────────────────────────────

    def _settle(self, done: Done[Unit, Performed]) -> None:
        match done.error:
            case None:
                self._answered += 1
            case ModelRejected() as error:
                self._refused += 1
                if not self._answered and self._refused >= REFUSALS:
                    raise error
            case (InfrastructureError() | RecordingMiss()) as error if not isinstance(error, ModelRefusedAccess):
                self._fail(done.unit, error)
                return
            case error:
                raise error
        self._failures = 0
        self._keep(done.unit, done.performed)

    def _fail(self, unit: Unit, error: SqlcrystalError) -> None:
        progress = self.progress[self._places[unit]]
        progress.trouble = progress.trouble or error.line
        self.first_error = self.first_error or error
        if isinstance(error, InfrastructureError):
            if str(error) not in self._told:
                self._told.add(str(error))
                self.reporter.note(f"{progress.batch.label}: {error}")
            self._failures += 1
            if self._failures >= min(PATIENCE, self.workers.size + 1):
                self._stopping = str(error)

    def _keep(self, unit: Unit, performed: Performed | None) -> None:
        progress = self.progress[self._places[unit]]
        progress.rows[unit] = performed.outcome if performed is not None else None
        self.reporter.step(progress.batch.label)
        if performed is not None and progress.batch.told and self.logs is not None:
            run = f"-run{performed.outcome.run}" if performed.outcome.run > 1 else ""
            place = f"-without{unit.leaves_out}" if unit.leaves_out else ""
            self.logs.append(f"{unit.arm}-{unit.setting}-{unit.seed}{run}{place}", performed.line)
        if self._collections.keep(unit, performed):
            self._release()

    def _result(self) -> RunResult:
        result = RunResult(outcomes={}, collections=self._collections.filled, left_out={}, first_error=self.first_error)
        for progress in self.progress:
            batch = progress.batch
            if batch.told and progress.complete:
                rows = (progress.rows[unit] for unit in batch.units)
                result.outcomes[batch.label] = [row for row in rows if row is not None]
            elif batch.told:
                why = progress.trouble or self._stopping or "needs a collection that is not complete"
                result.left_out[batch.label] = why
        return result
