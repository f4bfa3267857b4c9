"""The calls and the cost of a study, before it is run: the same units, walked against the recording.

What cannot be known yet is guessed from a few rates: the study's own where it has enough, and the plan says so.
"""

import tempfile
from collections.abc import Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from sqlcrystal import assembly
from sqlcrystal.config import StudyFile
from sqlcrystal.errors import DataError, RecordingMiss
from sqlcrystal.ledger.records import read_ledger
from sqlcrystal.models.recorded import Peeking
from sqlcrystal.planning.power import Foresight, foresee
from sqlcrystal.protocols import Embedder, LanguageModel
from sqlcrystal.study.design import SETTINGS, gate_of
from sqlcrystal.study.memories import CollectionProgress
from sqlcrystal.study.opening import Opened, open_study
from sqlcrystal.study.report.facts import Facts
from sqlcrystal.study.units import Batch, Unit
from sqlcrystal.writing.card import estimate_tokens

WRONG_SHARE = 0.5
YIELD = 0.3
ROUNDS_USED = 0.85
FLIP_SHARE = 0.15
"""Of the questions that memory answers, those it fixes or breaks, where neither recording nor pilot tells."""
CALLS_IN_CONTEXT = 2
"""Of a question that follows others in a dialogue: one to read it, one to answer it."""
CARD_TOKENS = 90
COMPLETION_TOKENS = 70
SECONDS_PER_TOKEN = 0.0045
"""Of a call's prompt tokens plus ten times its completion tokens: the embedded 1.5B model on two cores."""
COMPLETION_WEIGHT = 10
BATCHED = "batched"
"""The beginning of the runtime's name, and the kind, of the model that writes all replies together."""
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
    foresight: Foresight


class Walked(Struct, frozen=True, kw_only=True):
    """The part of one batch: recorded calls, the lengths of the prompts still to be sent, and guessed calls."""

    batch: Batch
    recorded: int
    missing: list[int]
    guessed: float
    leaving_out: int
    """Calls without one card, each sent only if memory changed the answer, which is not known yet."""


class FlipShare(Struct, frozen=True, kw_only=True):
    """The share of answers that memory fixes or breaks, and the source it is known from."""

    share: float
    source: str

    @classmethod
    def counted(cls, flips: int, answers: int, source: str) -> "FlipShare":
        """Take the share that was seen."""
        return cls(share=flips / answers, source=f"{source}: {flips} of {answers}")


class UsualCall(Struct, frozen=True, kw_only=True):
    """The usual length of a call's prompt and reply and the time of a token, measured or assumed."""

    measured: bool
    prompt_tokens: float
    completion_tokens: float
    seconds_per_token: float


def plan_study(
    study: StudyFile,
    recording: Path | None = None,
    *,
    model: LanguageModel | None = None,
    embedder: Embedder | None = None,
    pilot: Path | None = None,
) -> StudyPlan:
    """Plan a study; `recording` is the run's own, if it was begun. Nothing is asked and nothing is written.

    `pilot` is the folder of another run: it tells how many answers memory changes, where the recording does not.
    """
    begun = (str(recording),) if recording is not None and recording.is_file() else ()
    reading = replace(study, recordings=(*begun, *study.recordings))
    with (
        tempfile.TemporaryDirectory() as scratch,
        open_study(reading, Path(scratch) / "none.sqlite", model=model, embedder=embedder) as opened,
    ):
        return Planner(opened, flips=pilot_flips(pilot) if pilot else None).plan()


def pilot_flips(folder: Path) -> FlipShare:
    """Count the answers that memory changed in another run."""
    pairs = Facts(read_ledger(folder)).headline
    if not pairs:
        raise DataError(
            f"{folder}: no question is answered with and without memory yet, so there is nothing to plan by"
        )
    return FlipShare.counted(
        sum(pair.before.right != pair.after.right for pair in pairs), len(pairs), f"pilot {folder}"
    )


class Planner:
    """Walks the units without asking anything."""

    def __init__(self, opened: Opened, flips: FlipShare | None = None) -> None:
        """Perform with a model that only peeks; `flips` are a pilot's."""
        self._pilot = flips
        self._known_flips: list[bool] = []
        self._leaving_out = 0
        self.opened, self.study = opened, opened.performer.study
        self.work = opened.work
        self.peek = Peeking(opened.model, length=estimate_tokens)
        self.performer = opened.performer.asking(self.peek)
        self._collections = CollectionProgress(unit for batch in self.work for unit in batch.units)
        self._guessed: set[tuple[str, ...]] = set()
        self._unknown: set[tuple[str, str]] = set()

    def plan(self) -> StudyPlan:
        """The whole plan."""
        return self._priced([self._walked(batch) for batch in self.work])

    def _walked(self, batch: Batch) -> Walked:
        recorded, missing, leaving_out = len(self.peek.known), len(self.peek.missing), self._leaving_out
        guessed = sum(self._walk(unit) for unit in batch.units)
        return Walked(
            batch=batch,
            recorded=len(self.peek.known) - recorded,
            missing=[*islice(self.peek.missing.values(), missing, None)],
            guessed=guessed,
            leaving_out=self._leaving_out - leaving_out,
        )

    def _walk(self, unit: Unit) -> float:
        """Perform a unit as far as the recording goes; the calls beyond that are guessed."""
        filled = self._collections.filled
        if any(bank not in filled for bank in unit.needs):
            return self._answers(unit) + self._repairs(unit, WRONG_SHARE)
        if unit.leaves_out and not self._tells_flip(unit):
            self._leaving_out += 1
            return 0.0
        missing, known = len(self.peek.missing), len(self.peek.known)
        try:
            self._collections.keep(unit, self.performer.perform(unit, filled))
        except RecordingMiss:
            if not unit.arm:
                self._unknown.add(unit.question.key)
            share = WRONG_SHARE if unit.question.key in self._unknown else 1.0
            counted = len(self.peek.missing) - missing
            if unit.earlier:  # two calls, the second known once the first is answered
                return max(0.0, CALLS_IN_CONTEXT + self._repairs(unit, share) - counted - len(self.peek.known) + known)
            return max(0.0, self._repairs(unit, share) - counted)
        return 0.0

    def _answers(self, unit: Unit) -> float:
        """A call for each answer; of the questions to learn from, those that will have a card."""
        if unit.leaves_out:
            self._leaving_out += 1
            return 0.0
        calls = CALLS_IN_CONTEXT if unit.earlier else 1
        return float(calls) if SETTINGS[unit.setting].asks == "held-out" else WRONG_SHARE * YIELD

    def _tells_flip(self, unit: Unit) -> bool:
        """Tell whether the recording tells if memory changed the verdict, so that its cards are left out in turn."""
        try:
            flip = self.performer.flip(unit, self._collections.filled)
        except RecordingMiss:
            return False
        if unit.leaves_out == 1:
            self._known_flips.append(flip is not None)
        return True

    @cached_property
    def _flips(self) -> FlipShare:
        """Take what the recording tells if it tells enough, else a pilot, else an assumption."""
        if len(self._known_flips) >= ENOUGH:
            return FlipShare.counted(sum(self._known_flips), len(self._known_flips), "recorded")
        return self._pilot or FlipShare(share=FLIP_SHARE, source="assumed; --truth DIR takes a pilot's")

    def _repairs(self, unit: Unit, share: float) -> float:
        """The calls of one repair and its card, counted once for all arms and seeds that share them."""
        if not unit.arm or not (unit.collects or SETTINGS[unit.setting].repairs):
            return 0.0
        arm = self.performer.design.arm(unit.arm).arm
        takes_first = unit.collects and assembly.REGIMES[gate_of(arm.admission)[0]].takes_first
        database = self.performer.world.database(unit.question.database)
        source = assembly.source(arm.source, model=self.peek, database=database, budget=self.study.budget)
        calls = 0.0
        memory = unit.arm if unit.needs else ""
        if self._first_time(arm.source, memory, *unit.question.key):
            calls += source.calls_in(1.0 if takes_first else max(1.0, self.study.budget * ROUNDS_USED))
        asks = unit.collects and assembly.WRITERS[arm.writer].calls_model
        if asks and self._first_time(arm.source, arm.writer, *unit.question.key):
            calls += YIELD
        return share * calls

    def _first_time(self, *key: str) -> bool:
        fresh = key not in self._guessed
        self._guessed.add(key)
        return fresh

    def _usual_call(self) -> UsualCall:
        """The recording's own where it holds enough replies, else what is assumed."""
        replies = [*self.peek.known.values()]
        measured = len(replies) >= ENOUGH
        weight = sum(reply.prompt_tokens + COMPLETION_WEIGHT * reply.completion_tokens for reply in replies)
        completion = sum(reply.completion_tokens for reply in replies) / len(replies) if measured else COMPLETION_TOKENS
        seconds = sum(reply.seconds for reply in replies) / weight if measured and weight else SECONDS_PER_TOKEN
        lengths = [*self.peek.missing.values()] or [reply.prompt_tokens for reply in replies]
        return UsualCall(
            measured=measured,
            prompt_tokens=sum(lengths) / max(len(lengths), 1),
            completion_tokens=completion,
            seconds_per_token=seconds,
        )

    @cached_property
    def _at_once(self) -> int:
        """Count the calls that pass side by side; of replies written together each tells its share of the time."""
        model = self.study.model
        shared = isinstance(model, dict) and model.get("kind") == BATCHED
        shared |= any(reply.runtime.startswith(BATCHED) for reply in self.peek.known.values())
        return 1 if shared else self.opened.model.slots

    def _work(self, walked: Walked, usual: UsualCall) -> PlannedWork:
        batch, prices = walked.batch, self.study.prices
        planned = self.performer.design.arm(batch.arm) if batch.arm else None
        cards = planned.arm.k if planned and planned.remembers and batch.setting != "collection" else 0
        guessed = walked.guessed + walked.leaving_out * self._flips.share
        prompts = sum(walked.missing) + guessed * (usual.prompt_tokens + cards * CARD_TOKENS)
        completions = (len(walked.missing) + guessed) * usual.completion_tokens
        seconds = usual.seconds_per_token * (prompts + COMPLETION_WEIGHT * completions)
        return PlannedWork(
            arm=batch.arm,
            setting=batch.setting if batch.arm else batch.label,
            recorded=walked.recorded,
            known=len(walked.missing),
            guessed=round(guessed, 1),
            prompt_tokens=round(prompts),
            completion_tokens=round(completions),
            minutes=round(seconds / self._at_once / 60, 2),
            money=round((prompts * prices.prompt + completions * prices.completion) / 1e6, 4),
        )

    def _priced(self, walked: Sequence[Walked]) -> StudyPlan:
        usual = self._usual_call()
        work = [self._work(part, usual) for part in walked]
        return StudyPlan(
            study=self.study.name,
            digest=self.opened.digest,
            model=self.opened.model.name,
            work=tuple(work),
            recorded=sum(part.recorded for part in work),
            calls=round(sum(part.calls for part in work)),
            prompt_tokens=sum(part.prompt_tokens for part in work),
            completion_tokens=sum(part.completion_tokens for part in work),
            minutes=round(sum(part.minutes for part in work), 1),
            money=round(sum(part.money for part in work), 4),
            assumptions={
                "share of first attempts that are wrong, where unknown": WRONG_SHARE,
                "share of wrong ones that repair banks, where unknown": YIELD,
                "share of the repair budget that is used, where unknown": ROUNDS_USED,
                "completion tokens a call": round(usual.completion_tokens, 1),
                "seconds a token (a completion token counts as 10)": round(usual.seconds_per_token, 6),
                "calls whose time passes at once": self._at_once,
                **self._assumed_flips(sum(part.leaving_out for part in walked)),
            },
            measured=usual.measured,
            foresight=foresee(self.opened.splits, folds=bool(self.opened.performer.study.folds)),
        )

    def _assumed_flips(self, leaving_out: int) -> dict[str, float]:
        """Name the share of answers that memory changes and its effect on the calls, where calls depend on it."""
        if not leaving_out:
            return {}
        return {
            f"share of answers that memory fixes or breaks ({self._flips.source})": round(self._flips.share, 4),
            "calls that are added for each 0.05 more of that share": round(0.05 * leaving_out),
        }
