"""Runs a study: phase by phase, each question in a thread of the pool, resumable at any moment.

The recording is the only memory between runs: whatever is not in it is asked, whatever is in it is never asked again,
and everything else follows from it.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Event, Lock
from typing import NamedTuple, TypeVar

from msgspec import Struct

from sqlcrystal.benchmarks.cases import Case
from sqlcrystal.errors import InfrastructureError, RecordingMiss, SqlcrystalError
from sqlcrystal.study.design import MATCHED, PlannedArm
from sqlcrystal.study.ledger import BankedCard, Outcome
from sqlcrystal.study.log import Logs, line_of
from sqlcrystal.study.order import Phase, phases, runs
from sqlcrystal.study.reporter import Reporter, Silent
from sqlcrystal.study.rows import banked_cards, outcome
from sqlcrystal.study.work import Answered, Asked, Collected, Trajectory, Workshop, after_passes
from sqlcrystal.types import Question

Asking = TypeVar("Asking")
Result = TypeVar("Result")
PATIENCE = 8
"""So many failed calls in a row end the run: the model is away."""


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


class Ask(NamedTuple):
    """A question in one seed and repetition."""

    question: Question
    seed: int
    run: int


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
        seeds = self.workshop.study.seeds
        if phase.planned.remembers:
            for seed in seeds:
                self._collect(phase.planned, seed)
        if phase.setting == "collection":
            return [
                self._row(phase, seed, one) for seed in seeds for one in self.workshop.collection(phase.planned, seed)
            ]
        repetitions = runs(phase.setting, self.workshop.study.reruns)
        asks = [
            Ask(question, seed, run) for seed in seeds for run in repetitions for question in self._asked(phase, seed)
        ]
        return self._each(phase.label, asks, partial(self._settle, phase), beside=partial(self._prefix, phase))

    def _settle(self, phase: Phase, ask: Ask) -> Outcome:
        """One question of one arm, setting, seed and repetition."""
        planned, setting, workshop = phase.planned, phase.setting, self.workshop
        trajectory = None
        if setting == "rerun":
            answered = workshop.attempt(ask.question, solver=planned.arm.solver, run=ask.run)
        else:
            answered = workshop.answer(planned, ask.question, ask.seed, own=setting == "replay", run=ask.run)
        if setting == "repair":
            trajectory = workshop.repair(planned.arm.source, answered)
        return self._outcome(phase, ask.seed, answered, trajectory=trajectory, run=ask.run)

    def _prefix(self, phase: Phase, ask: Ask) -> tuple[str, ...]:
        """What the prompt starts with: the database and the cards in their order."""
        if phase.setting == "rerun":
            return (ask.question.database,)
        own = phase.setting == "replay"
        found = self.workshop.retrieved(phase.planned, ask.question, ask.seed, own=own)
        return (ask.question.database, *(card.text for card in self.workshop.shown(found)))

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

    def _each(
        self,
        label: str,
        asks: Sequence[Asking],
        work: Callable[[Asking], Result],
        *,
        beside: Callable[[Asking], tuple[str, ...]] | None = None,
    ) -> list[Result]:
        """The work on every ask, results in order; an error of one does not keep the others from being asked.

        Asks whose prompts start alike go to the model one after the other, which then reads their start once.
        """
        self.reporter.start(label, len(asks))
        places = list(range(len(asks)))
        if beside is not None:
            try:
                places.sort(key=[beside(ask) for ask in asks].__getitem__)
            except InfrastructureError as error:  # the embedder is away
                raise Incomplete(error) from error
        futures = {place: self._pool.submit(self._guarded, work, asks[place]) for place in places}
        results: list[Result] = []
        trouble: Incomplete | None = None
        for place in range(len(asks)):
            try:
                results.append(futures[place].result())
            except Incomplete as error:
                trouble = trouble if trouble and trouble.cause else error
        if trouble is not None:
            if trouble.cause is not None:
                self.reporter.note(f"{label}: {trouble.cause}")
            raise trouble
        return results

    def _guarded(self, work: Callable[[Asking], Result], ask: Asking) -> Result:
        if self.stop.is_set() or (self.until is not None and time.monotonic() > self.until):
            raise Incomplete(None)
        try:
            result = work(ask)
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
