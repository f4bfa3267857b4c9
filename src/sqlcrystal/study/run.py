"""Runs a study: phase by phase, each question in a thread of the pool, resumable at any moment.

The recording is the only memory between runs: whatever is not in it is asked, whatever is in it is never asked again,
and everything else follows from it.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from threading import Event, Lock
from typing import Protocol, TypeVar

from msgspec import Struct

from sqlcrystal.benchmarks.cases import Case
from sqlcrystal.errors import InfrastructureError, RecordingMiss, SqlcrystalError
from sqlcrystal.study.design import MATCHED, PlannedArm
from sqlcrystal.study.ledger import BankedCard, Outcome
from sqlcrystal.study.log import Logs, line_of
from sqlcrystal.study.order import Phase, phases
from sqlcrystal.study.rows import banked_cards, outcome
from sqlcrystal.study.work import Answered, Asked, Collected, Trajectory, Workshop, after_passes
from sqlcrystal.types import Question

Result = TypeVar("Result")
PATIENCE = 8
"""So many failed calls in a row end the run: the model is away."""


class Reporter(Protocol):
    """Who is told how far a run is."""

    def start(self, label: str, total: int) -> None:
        """A stretch of work begins."""
        ...

    def step(self) -> None:
        """One question is done."""
        ...

    def note(self, text: str) -> None:
        """Something worth a line."""
        ...


class Silent:
    """A reporter that tells nobody."""

    def start(self, label: str, total: int) -> None:
        """Say nothing."""

    def step(self) -> None:
        """Say nothing."""

    def note(self, text: str) -> None:
        """Say nothing."""


class Incomplete(Exception):
    """A phase that cannot be finished now; holds the first cause."""

    def __init__(self, cause: SqlcrystalError | None) -> None:
        super().__init__(str(cause) if cause else "not begun or not finished in time")
        self.cause = cause


class Facts(Struct, kw_only=True):
    """What a run found out: the outcomes of complete phases, their cards, and why the others are not complete."""

    outcomes: dict[Phase, list[Outcome]]
    cards: list[BankedCard]
    left_out: dict[str, str]
    first_error: SqlcrystalError | None = None


class Runner:
    """Does the phases of one study in order."""

    def __init__(
        self,
        workshop: Workshop,
        *,
        logs: Logs | None = None,
        jobs: int = 1,
        reporter: Reporter | None = None,
        until: float | None = None,
    ) -> None:
        """`until` is the moment of `time.monotonic()` after which no new question is begun."""
        self.workshop = workshop
        self.design = workshop.design
        self.default = self.design.arm(self.design.default)
        self.logs = logs
        self.jobs = jobs
        self.reporter = reporter or Silent()
        self.until = until
        self.stop = Event()
        self._failures = 0
        self._lock = Lock()

    def run(self) -> Facts:
        """All phases; what cannot be finished is left out with its reason."""
        facts = Facts(outcomes={}, cards=[], left_out={})
        with ThreadPoolExecutor(max_workers=self.jobs, thread_name_prefix="study") as pool:
            self._pool = pool
            self._try(facts, "first attempts", self._attempts)
            for phase in phases(self.design):
                rows = self._try(facts, phase.label, partial(self._phase, phase))
                if rows is not None:
                    facts.outcomes[phase] = rows
        facts.left_out.pop("first attempts", None)
        facts.cards = self._cards({phase.planned.name for phase in facts.outcomes})
        return facts

    def _try(self, facts: Facts, label: str, work: Callable[[], Result]) -> Result | None:
        try:
            return work()
        except Incomplete as error:
            facts.left_out[label] = str(error)
            facts.first_error = facts.first_error or error.cause
        except KeyboardInterrupt:
            if self.stop.is_set():
                raise
            self.stop.set()
            self.reporter.note("stopping after the calls under way; what is complete will be written")
            facts.left_out[label] = "interrupted"
        return None

    # ── phases ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _attempts(self) -> None:
        """Every question without memory: what all arms and seeds start from."""
        cases = sorted(self.workshop.world.benchmark.cases, key=lambda case: case.question.database)
        self._each("first attempts", _questions(cases), self.workshop.attempt)

    def _phase(self, phase: Phase) -> list[Outcome]:
        rows: list[Outcome] = []
        for seed in self.workshop.study.seeds:
            if phase.planned.remembers:
                self._collect(phase.planned, seed)
            if phase.setting == "collection":
                rows += [self._row(phase, seed, one) for one in self.workshop.collection(phase.planned, seed)]
                continue
            runs = range(1, self.workshop.study.reruns + 1) if phase.setting in ("rerun", "again") else range(1)
            for run in runs:
                rows += self._settle(phase, seed, run)
        return rows

    def _settle(self, phase: Phase, seed: int, run: int) -> list[Outcome]:
        """One arm, setting, seed and repetition."""
        planned, setting, workshop = phase.planned, phase.setting, self.workshop

        def work(question: Question) -> Outcome:
            trajectory = None
            if setting == "rerun":
                answered = workshop.attempt(question, solver=planned.arm.solver, run=run)
            else:
                answered = workshop.answer(planned, question, seed, own=setting == "replay", run=run)
            if setting == "repair":
                trajectory = workshop.repair(planned.arm.source, answered)
            return self._outcome(phase, seed, answered, trajectory=trajectory, run=run)

        return self._each(f"{phase.label} {seed}", self._asked(phase, seed), work)

    def _asked(self, phase: Phase, seed: int) -> list[Question]:
        """Held-out questions, or for replay and its kin the questions whose cards are in the bank."""
        if phase.setting in ("transfer", "repair", "again"):
            return _questions(self.workshop.splits[seed].held_out)
        bank = self.workshop.served(phase.planned, seed).bank
        return [card.question for database in bank.databases() for card in bank.cards(database)]

    def _collect(self, planned: PlannedArm, seed: int) -> None:
        """The arm's collection for one seed, and that of the arm whose card counts it is matched to."""
        if cut := MATCHED.fullmatch(planned.arm.bank):
            self._collect(self.design.arm(cut[1]), seed)
        workshop, label = self.workshop, f"{planned.name}/collection {seed}"
        learn = _questions(workshop.splits[seed].learn)
        collected = self._each(label, learn, lambda question: workshop.collect(planned.arm, question, seed))
        for number in range(2, planned.arm.passes + 1):
            now = after_passes(planned, number)
            missed = [one.answered.question for one in collected if workshop.missed(one)]
            collected = self._each(f"{label}, pass {number}", missed, partial(workshop.collect_again, now, seed=seed))
        workshop.served(planned, seed)

    # ── rows ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _row(self, phase: Phase, seed: int, one: Collected) -> Outcome:
        return self._outcome(phase, seed, one.answered, trajectory=one.trajectory, writing=one.writing)

    def _outcome(
        self,
        phase: Phase,
        seed: int,
        answered: Answered,
        *,
        trajectory: Trajectory | None = None,
        writing: Sequence[Asked] = (),
        run: int = 0,
    ) -> Outcome:
        row = outcome(
            self.workshop,
            arm=phase.planned.name,
            setting=phase.setting,
            seed=seed,
            answered=answered,
            trajectory=trajectory,
            writing=writing,
            run=run,
        )
        if self.logs is not None:
            line = line_of(
                answered,
                digest=self.workshop.model.digest,
                sql=row.sql,
                right=row.right,
                trajectory=trajectory,
                writing=writing,
            )
            self.logs.append(f"{phase.planned.name}-{phase.setting}-{seed}" + (f"-run{run}" if run > 1 else ""), line)
        return row

    def _cards(self, arms: set[str]) -> list[BankedCard]:
        rows = []
        for planned in self.design.arms:
            if planned.name in arms and planned.remembers:
                for seed in self.workshop.study.seeds:
                    rows += banked_cards(
                        self.workshop,
                        arm=planned.name,
                        seed=seed,
                        served=self.workshop.served(planned, seed),
                        collection=self.workshop.collection(planned, seed),
                    )
        return rows

    # ── threads ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _each(self, label: str, questions: Sequence[Question], work: Callable[[Question], Result]) -> list[Result]:
        """The work on every question, in order; an error of one does not keep the others from being asked."""
        self.reporter.start(label, len(questions))
        futures: list[Future[Result]] = [self._pool.submit(self._guarded, work, question) for question in questions]
        results: list[Result] = []
        trouble: Incomplete | None = None
        for future in futures:
            try:
                results.append(future.result())
            except Incomplete as error:
                trouble = trouble if trouble and trouble.cause else error
        if trouble is not None:
            if trouble.cause is not None:
                self.reporter.note(f"{label}: {trouble.cause}")
            raise trouble
        return results

    def _guarded(self, work: Callable[[Question], Result], question: Question) -> Result:
        if self.stop.is_set() or (self.until is not None and time.monotonic() > self.until):
            raise Incomplete(None)
        try:
            result = work(question)
        except (InfrastructureError, RecordingMiss) as error:
            with self._lock:
                self._failures += isinstance(error, InfrastructureError)
                if self._failures >= PATIENCE:
                    self.stop.set()
            raise Incomplete(error) from error
        with self._lock:
            self._failures = 0
        self.reporter.step()
        return result


def _questions(cases: Sequence[Case]) -> list[Question]:
    return [case.question for case in cases]
