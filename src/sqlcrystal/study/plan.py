"""What a study will cost before it is spent: every prompt that can be built already is counted, the rest is guessed.

The plan walks the study's phases over what is recorded. A prompt that follows from recorded replies is known exactly; a
prompt that depends on a reply nobody has yet is guessed from the averages below, or from the study's own where it has
enough, and the plan says how many of each there are.
"""

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct

from sqlcrystal.config import StudyFile
from sqlcrystal.errors import RecordingMiss
from sqlcrystal.models.recording import Recording, request_key
from sqlcrystal.protocols import Embedder, LanguageModel
from sqlcrystal.study.design import PlannedArm, gate_of
from sqlcrystal.study.opening import Opened, open_study
from sqlcrystal.study.order import Phase, phases, runs
from sqlcrystal.study.work import Workshop
from sqlcrystal.study.world import key_of
from sqlcrystal.types import Completion, Message, Question, Sampling
from sqlcrystal.writing import estimate_tokens

WRONG_SHARE = 0.5
YIELD = 0.3
ROUNDS_USED = 0.85
CALLS_PER_ROUND = {"T1": 1, "T2": 1, "T3": 2, "T3-look": 2, "T4": 5, "success": 0, "explore": 2}
FIRST_ROUND_SAVES = {"T3-look": 1}
"""T3-look's first round looks for itself: the model is asked for probes from the second on."""
CARD_TOKENS = 90
COMPLETION_TOKENS = 70
SECONDS_PER_TOKEN = 0.0045
"""Of a call's prompt tokens plus ten times its completion tokens: the embedded 1.5B model on two cores."""
COMPLETION_WEIGHT = 10
ENOUGH = 20


class PlannedWork(Struct, frozen=True, kw_only=True):
    """One arm in one setting: calls already recorded, calls whose prompts are known, and calls that are guessed."""

    arm: str
    setting: str
    recorded: int
    known: int
    guessed: float
    prompt_tokens: float
    completion_tokens: float
    minutes: float
    money: float

    @property
    def calls(self) -> float:
        """Calls still to be sent."""
        return self.known + self.guessed


class StudyPlan(Struct, frozen=True, kw_only=True):
    """The work of a study in the order it will be done, and what the estimate rests on."""

    study: str
    digest: str
    model: str
    work: tuple[PlannedWork, ...]
    recorded: int
    calls: float
    prompt_tokens: float
    completion_tokens: float
    minutes: float
    money: float
    assumptions: dict[str, float]
    measured: bool


class Peeking:
    """A model that only knows what is recorded, and keeps count of what it was asked."""

    def __init__(self, model: LanguageModel, layers: Sequence[Recording]) -> None:
        """Look into these recordings."""
        self.name, self.digest, self.slots = model.name, model.digest, model.slots
        self._layers = layers
        self._asked: set[str] = set()
        self.recorded = 0
        self.missing: list[int] = []
        self.seen: list[Completion] = []

    def chat(self, messages: Sequence[Message], *, sampling: Sampling) -> Completion:
        """The recorded reply, or a miss that is noted with the length of its prompt."""
        key = request_key(self.digest, messages, sampling)
        found = next((reply for layer in self._layers if (reply := layer.get(key)) is not None), None)
        fresh = key not in self._asked
        self._asked.add(key)
        if found is None:
            if fresh:
                self.missing.append(sum(estimate_tokens(message.content) for message in messages))
            raise RecordingMiss(f"not recorded: {key[:12]}")
        if fresh:
            self.recorded += 1
            self.seen.append(found)
        return found

    def close(self) -> None:
        """Nothing to release."""


def plan_study(
    study: StudyFile,
    recording: Path | None = None,
    *,
    model: LanguageModel | None = None,
    embedder: Embedder | None = None,
) -> StudyPlan:
    """Plan a study; `recording` is the run's own, if it was begun. Nothing is asked and nothing is written."""
    with tempfile.TemporaryDirectory() as scratch:
        layer = [str(recording)] if recording is not None and recording.is_file() else []
        reading = [Path(name) for name in (*layer, *study.recordings) if Path(name).is_file()]
        with open_study(study, Path(scratch) / "none.sqlite", model=model, embedder=embedder) as opened:
            layers = [Recording(path) for path in reading]
            try:
                return Planner(opened, layers, jobs=opened.model.slots).plan()
            finally:
                for one in layers:
                    one.close()


class Planner:
    """Walks the phases without asking anything."""

    def __init__(self, opened: Opened, layers: Sequence[Recording], *, jobs: int) -> None:
        """Give the study's workshop a model that only peeks."""
        self.opened = opened
        self.study = opened.study
        self.peek = Peeking(opened.model, layers)
        self.workshop = Workshop(opened.study, opened.design, opened.world, self.peek, opened.workshop.embedder)
        self.jobs = jobs
        self.unknown: set[tuple[str, str]] = set()
        self.guessed_repairs: set[tuple[str, ...]] = set()
        self.prompt = 0.0

    def plan(self) -> StudyPlan:
        """The whole plan."""
        counted = [("", "first attempts", *self._counted(self._attempts))]
        counted += [
            (phase.planned.name, phase.setting, *self._counted(partial(self._phase, phase)))
            for phase in phases(self.opened.design)
        ]
        return self._priced(counted)

    def _counted(self, walk: Callable[[], tuple[float, float]]) -> tuple[int, list[int], float, float]:
        """What one stretch adds: recorded calls, the lengths of known prompts, guessed calls and their cards."""
        recorded, missing = self.peek.recorded, len(self.peek.missing)
        guessed, cards = walk()
        return self.peek.recorded - recorded, self.peek.missing[missing:], guessed, cards

    def _attempts(self) -> tuple[float, float]:
        for case in self.opened.world.benchmark.cases:
            try:
                self.workshop.attempt(case.question)
            except RecordingMiss:
                self.unknown.add(key_of(case.question))
        lengths = self.peek.missing or [one.prompt_tokens for one in self.peek.seen]
        self.prompt = sum(lengths) / max(len(lengths), 1)
        return 0.0, 0.0

    def _phase(self, phase: Phase) -> tuple[float, float]:
        guessed = 0.0
        for seed in self.study.seeds:
            complete = True
            if phase.planned.remembers:
                more, complete = self._collection(phase.planned, seed)
                guessed += more
            if phase.setting != "collection":
                guessed += self._setting(phase, seed, complete=complete)
        return guessed, float(phase.planned.arm.k if phase.planned.remembers and phase.setting != "collection" else 0)

    def _collection(self, planned: PlannedArm, seed: int) -> tuple[float, bool]:
        """Guessed calls of a collection, and whether it is recorded to its end."""
        guessed, complete = 0.0, True
        for case in self.workshop.splits[seed].learn:
            question = case.question
            if key_of(question) in self.unknown:
                complete = False
                guessed += self._guess(planned, question, WRONG_SHARE)
                continue
            before = len(self.peek.missing)
            try:
                self.workshop.collect(planned.arm, question, seed)
            except RecordingMiss:
                complete = False
                guessed += max(0.0, self._guess(planned, question, 1.0) - (len(self.peek.missing) - before))
        return guessed, complete and planned.arm.passes == 1

    def _guess(self, planned: PlannedArm, question: Question, share: float) -> float:
        """The calls of one repair, counted once for all arms and seeds that share it."""
        source = {"union": "T3", "union-look": "T3-look"}.get(planned.arm.source, planned.arm.source)
        writer = planned.arm.writer if planned.arm.writer.startswith("W5") else ""
        rounds = 1.0 if source == "explore" else max(1.0, self.study.budget * ROUNDS_USED)
        if gate_of(planned.arm.admission)[0] == "ungated":
            rounds = 1.0
        calls = 0.0
        if (source, *key_of(question)) not in self.guessed_repairs:
            self.guessed_repairs.add((source, *key_of(question)))
            calls += rounds * CALLS_PER_ROUND[source] - FIRST_ROUND_SAVES.get(source, 0)
        if writer and (source, writer, *key_of(question)) not in self.guessed_repairs:
            self.guessed_repairs.add((source, writer, *key_of(question)))
            calls += YIELD
        return share * calls

    def _setting(self, phase: Phase, seed: int, *, complete: bool) -> float:
        planned, setting, workshop = phase.planned, phase.setting, self.workshop
        held_out = [case.question for case in workshop.splits[seed].held_out]
        repetitions = runs(setting, self.study.reruns)
        if not complete:
            banked = len(workshop.splits[seed].learn) * WRONG_SHARE * YIELD
            repair = sum(self._guess(planned, one, WRONG_SHARE) for one in held_out) if setting == "repair" else 0.0
            return len(repetitions) * (len(held_out) if setting in ("transfer", "repair", "again") else banked) + repair
        questions = held_out
        if setting in ("replay", "retention", "rerun"):
            bank = workshop.served(planned, seed).bank
            questions = [card.question for name in bank.databases() for card in bank.cards(name)]
        return sum(self._walk(phase, one, seed, run) for one in questions for run in repetitions)

    def _walk(self, phase: Phase, question: Question, seed: int, run: int) -> float:
        planned, before = phase.planned, len(self.peek.missing)
        try:
            if phase.setting == "rerun":
                self.workshop.attempt(question, solver=planned.arm.solver, run=run)
                return 0.0
            answered = self.workshop.answer(planned, question, seed, own=phase.setting == "replay", run=run)
            if phase.setting == "repair":
                self.workshop.repair(planned.arm.source, answered)
        except RecordingMiss:
            if phase.setting == "repair":
                share = WRONG_SHARE if key_of(question) in self.unknown else 1.0
                return max(0.0, self._guess(planned, question, share) - (len(self.peek.missing) - before))
        return 0.0

    def _priced(self, counted: Sequence[tuple[str, str, int, list[int], float, float]]) -> StudyPlan:
        seen = self.peek.seen
        measured = len(seen) >= ENOUGH
        completion = sum(one.completion_tokens for one in seen) / len(seen) if measured else COMPLETION_TOKENS
        weight = sum(one.prompt_tokens + COMPLETION_WEIGHT * one.completion_tokens for one in seen)
        pace = sum(one.seconds for one in seen) / weight if measured and weight else SECONDS_PER_TOKEN
        prices = self.study.prices
        work = []
        for arm, setting, recorded, lengths, guessed, cards in counted:
            prompts = sum(lengths) + guessed * (self.prompt + cards * CARD_TOKENS)
            completions = (len(lengths) + guessed) * completion
            work.append(
                PlannedWork(
                    arm=arm,
                    setting=setting,
                    recorded=recorded,
                    known=len(lengths),
                    guessed=round(guessed, 1),
                    prompt_tokens=round(prompts),
                    completion_tokens=round(completions),
                    minutes=round(pace * (prompts + COMPLETION_WEIGHT * completions) / self.jobs / 60, 2),
                    money=round((prompts * prices.prompt + completions * prices.completion) / 1e6, 4),
                )
            )
        return StudyPlan(
            study=self.study.name,
            digest=self.opened.digest,
            model=self.opened.model.name,
            work=tuple(work),
            recorded=sum(one.recorded for one in work),
            calls=round(sum(one.calls for one in work)),
            prompt_tokens=sum(one.prompt_tokens for one in work),
            completion_tokens=sum(one.completion_tokens for one in work),
            minutes=round(sum(one.minutes for one in work), 1),
            money=round(sum(one.money for one in work), 4),
            assumptions={
                "share of first attempts that are wrong, where unknown": WRONG_SHARE,
                "share of wrong ones that repair banks, where unknown": YIELD,
                "share of the repair budget that is used, where unknown": ROUNDS_USED,
                "completion tokens a call": round(completion, 1),
                "seconds a token (a completion token counts as 10)": round(pace, 6),
                "calls at once": self.jobs,
            },
            measured=measured,
        )
