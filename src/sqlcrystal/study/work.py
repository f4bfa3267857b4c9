"""The work of a study, one question at a time: attempts, repairs, cards, banks and answers, none of it done twice."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from sqlcrystal import assembly, pipeline
from sqlcrystal.bank import FrozenBank
from sqlcrystal.benchmarks.split import Split, split
from sqlcrystal.config import StudyFile
from sqlcrystal.consumption import Mispaired, counts_of, fraction, matched, mispair, own_cards
from sqlcrystal.errors import ModelRejected
from sqlcrystal.protocols import Check, Embedder, LanguageModel, Retriever, Watch, ignore
from sqlcrystal.study.design import FRACTION, MATCHED, Design, PlannedArm, gate_of
from sqlcrystal.study.ledger import Arm
from sqlcrystal.study.world import World, key_of
from sqlcrystal.types import Attempt, Card, Completion, Episode, Message, Question, Retrieved, Round, Sampling
from sqlcrystal.writing import estimate_tokens
from sqlcrystal.writing.verbatim import render

Value = TypeVar("Value")
SINGLE_SHOT = "single-shot"


class Asked(Struct, frozen=True):
    """One model call as it was sent and answered."""

    messages: tuple[Message, ...]
    sampling: Sampling
    completion: Completion


class Answered(Struct, frozen=True, kw_only=True):
    """One question answered: the attempt, what was retrieved for it, and every call; no attempt if it was refused."""

    question: Question
    attempt: Attempt | None
    retrieved: tuple[Retrieved, ...] = ()
    calls: tuple[Asked, ...] = ()


class Trajectory(Struct, frozen=True, kw_only=True):
    """What a source made of an attempt, round by round."""

    episode: Episode | None
    rounds: tuple[Round, ...]
    calls: tuple[Asked, ...]


class Collected(Struct, frozen=True, kw_only=True):
    """One collection question: its attempt, the repair if one was due, and the card if one was admitted."""

    answered: Answered
    trajectory: Trajectory | None = None
    card: Card | None = None
    writing: tuple[Asked, ...] = ()


class Served(Struct, frozen=True):
    """An arm's memory for one seed: what is searched, what is shown, and how it is searched."""

    bank: FrozenBank
    shown: FrozenBank
    retriever: Retriever


class Metered:
    """A model that keeps what one question cost it."""

    def __init__(self, model: LanguageModel) -> None:
        """Count from zero."""
        self.name, self.digest, self.slots = model.name, model.digest, model.slots
        self._model = model
        self.calls: list[Asked] = []

    def chat(self, messages: Sequence[Message], *, sampling: Sampling) -> Completion:
        """Ask, and keep the call."""
        completion = self._model.chat(messages, sampling=sampling)
        self.calls.append(Asked(tuple(messages), sampling, completion))
        return completion

    def close(self) -> None:
        """Leave the model open: others ask it too."""


class Workshop:
    """Does each piece of work once, whichever arms and seeds need it; safe to use from many threads."""

    def __init__(
        self, study: StudyFile, plan: Design, world: World, model: LanguageModel, embedder: Callable[[], Embedder]
    ) -> None:
        """Split the questions by every seed; nothing is asked yet."""
        self.study = study
        self.design = plan
        self.world = world
        self.model = model
        self.embedder = embedder
        self.splits: dict[int, Split] = {seed: split(world.benchmark.cases, seed=seed) for seed in study.seeds}
        self._done: dict[tuple[object, ...], object] = {}

    # ── answering ────────────────────────────────────────────────────────────────────────────────────────────────────

    def attempt(self, question: Question, *, solver: str = SINGLE_SHOT, run: int = 0) -> Answered:
        """The answer without memory, which no seed changes."""
        key = ("attempt", solver, run, *key_of(question))
        return self._once(key, lambda: self._solve(question, solver, run))

    def answer(self, planned: PlannedArm, question: Question, seed: int, *, own: bool, run: int = 0) -> Answered:
        """The answer with the arm's memory; `own` lets the question see cards that came from itself."""
        found = self.retrieved(planned, question, seed, own=own)
        if not found:
            return self.attempt(question, solver=planned.arm.solver, run=run)
        cards = self.shown(found)
        key = ("answer", planned.arm.solver, run, *key_of(question), tuple(card.text for card in cards))
        answered = self._once(key, lambda: self._solve(question, planned.arm.solver, run, cards))
        return Answered(question=question, attempt=answered.attempt, retrieved=found, calls=answered.calls)

    def retrieved(self, planned: PlannedArm, question: Question, seed: int, *, own: bool) -> tuple[Retrieved, ...]:
        """What the arm's memory holds for a question, best first; nothing for an arm without memory."""
        if not planned.remembers:
            return ()

        def retrieve() -> tuple[Retrieved, ...]:
            served = self.served(planned, seed)
            exclude = None if own else own_cards(question, served.bank)
            return tuple(served.retriever.retrieve(question, served.bank, k=planned.arm.k, exclude=exclude))

        return self._once(("retrieved", planned.arm, seed, own, *key_of(question)), retrieve)

    def shown(self, found: Sequence[Retrieved]) -> list[Card]:
        """The cards in the order in which they stand in the prompt."""
        cards = [one.card for one in found]
        return sorted(cards, key=lambda card: key_of(card.question)) if self.study.card_order == "stable" else cards

    def _solve(self, question: Question, solver: str, run: int, cards: Sequence[Card] = ()) -> Answered:
        model = Metered(self.model)
        sampling = Sampling(temperature=0.0, max_tokens=self.study.max_tokens, index=run)
        database = self.world.database(question.database)
        try:
            made = assembly.solver(solver, model=model, database=database, sampling=sampling)
            attempt = made.solve(question, cards)
        except ModelRejected:
            # The same prompt would be refused again, so the question is unevaluable rather than waiting for a retry.
            return Answered(question=question, attempt=None, calls=tuple(model.calls))
        return Answered(question=question, attempt=attempt, calls=tuple(model.calls))

    # ── repairing ────────────────────────────────────────────────────────────────────────────────────────────────────

    def repair(self, source: str, answered: Answered, *, accept_any: bool = False) -> Trajectory | None:
        """What the source makes of an answer; None when there is no attempt to start from, or no gold to judge by."""
        attempt = answered.attempt
        if attempt is None or not self.world.evaluable(attempt.question):
            return None
        gate = pipeline.Gate(attempt, self.world.check_of(attempt.question), accept_any=accept_any)
        key = ("repair", source, accept_any, *key_of(attempt.question), attempt.call.messages)
        return self._once(key, lambda: self._repair(source, attempt, gate))

    def _repair(self, source: str, attempt: Attempt, check: Check) -> Trajectory | None:
        model = Metered(self.model)
        database = self.world.database(attempt.question.database)
        rounds: list[Round] = []
        try:
            made = assembly.source(source, model=model, database=database, budget=self.study.budget)
            episode = made.acquire(attempt, check, watch=rounds.append)
        except ModelRejected:
            episode = None
        return Trajectory(episode=episode, rounds=tuple(rounds), calls=tuple(model.calls))

    # ── collecting ───────────────────────────────────────────────────────────────────────────────────────────────────

    def collect(self, arm: Arm, question: Question, seed: int) -> Collected:
        """One question of the collection pass: attempt, repair, verify, write."""
        return self._learn(arm, self.attempt(question), seed)

    def collect_again(self, planned: PlannedArm, question: Question, seed: int) -> Collected:
        """One question of a further pass, answered with what the passes before it banked."""
        before = after_passes(planned, planned.arm.passes - 1)
        return self._learn(planned.arm, self.answer(before, question, seed, own=False), seed)

    def _learn(self, arm: Arm, answered: Answered, seed: int) -> Collected:
        gate, rate = gate_of(arm.admission)
        trajectory = self.repair(arm.source, answered, accept_any=gate == "ungated")
        attempt = answered.attempt
        if attempt is None or trajectory is None:
            return Collected(answered=answered, trajectory=trajectory)
        key = ("learn", arm.source, arm.admission, arm.writer, seed if rate else None, *key_of(attempt.question))

        def learn() -> Collected:
            model = Metered(self.model)
            database = self.world.database(attempt.question.database)
            try:
                learned = pipeline.learn(
                    attempt,
                    source=Recalled(arm.source, trajectory),
                    check=self.world.check_of(attempt.question),
                    verifier=assembly.gate(gate, judge=self.world.right, rate=rate, seed=seed),
                    writer=assembly.writer(arm.writer, database=database, model=model),
                    keep=lambda _card, _episode: None,
                )
            except ModelRejected:  # an episode too long for the writer's model stays without a card
                return Collected(answered=answered, trajectory=trajectory, writing=tuple(model.calls))
            return Collected(answered=answered, trajectory=trajectory, card=learned.card, writing=tuple(model.calls))

        return self._once((*key, attempt.call.messages), learn)

    def collection(self, planned: PlannedArm, seed: int) -> list[Collected]:
        """The whole collection of an arm, in file order, a further pass after the one before it."""
        passes = [[self.collect(planned.arm, case.question, seed) for case in self.splits[seed].learn]]
        for number in range(2, planned.arm.passes + 1):
            now = after_passes(planned, number)
            passes.append(
                [self.collect_again(now, one.answered.question, seed) for one in passes[-1] if self.missed(one)]
            )
        return [one for collected in passes for one in collected]

    def missed(self, collected: Collected) -> bool:
        """Whether a question is still without a right answer and without a card."""
        attempt = collected.answered.attempt
        wrong = attempt is None or attempt.sql is None or not self.world.right(attempt.question, attempt.sql)
        return wrong and collected.card is None

    # ── memory ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def served(self, planned: PlannedArm, seed: int) -> Served:
        """The arm's memory for one seed."""
        return self._once(("served", planned.arm, seed), lambda: self._serve(planned, seed))

    def _serve(self, planned: PlannedArm, seed: int) -> Served:
        arm = planned.arm
        bank = FrozenBank(one.card for one in self.collection(planned, seed) if one.card is not None)
        if part := FRACTION.fullmatch(arm.bank):
            bank = fraction(bank, float(part[1]), seed=seed)
        elif cut := MATCHED.fullmatch(arm.bank):
            other = self.served(self.design.arm(cut[1]), seed).bank
            bank = matched(bank, counts_of(other), draw=int(cut[2]), seed=seed)
        retriever = self._retriever(arm.retriever, seed)
        if arm.correspondence == "permuted":
            mispairing = mispair(bank, seed=seed, render=render, count_tokens=estimate_tokens)
            return Served(bank, mispairing.bank, Mispaired(retriever, mispairing))
        return Served(bank, bank, retriever)

    def _retriever(self, name: str, seed: int) -> Retriever:
        def make() -> Retriever:
            reach = assembly.Reach(
                embedder=self.embedder, schema_of=lambda one: self.world.database(one).schema(), seed=seed
            )
            return assembly.retriever(name, reach=reach)

        return self._once(("retriever", name, seed if name == "random" else None), make)

    def _once(self, key: tuple[object, ...], make: Callable[[], Value]) -> Value:
        """The value under a key; units of one phase never share a key, and equal work gives equal values."""
        if key not in self._done:
            self._done[key] = make()
        return self._done[key]  # type: ignore[return-value]


class Recalled:
    """A source that hands out a trajectory made before, so that arms which share it do not repair again."""

    def __init__(self, name: str, trajectory: Trajectory) -> None:
        """Take the trajectory."""
        self.name = name
        self._trajectory = trajectory

    def acquire(self, attempt: Attempt, check: Check, *, watch: Watch = ignore) -> Episode | None:  # noqa: ARG002
        """The episode as it was, with its rounds for the record."""
        for spent in self._trajectory.rounds:
            watch(spent)
        return self._trajectory.episode


def after_passes(planned: PlannedArm, passes: int) -> PlannedArm:
    """The arm as it stands after so many passes."""
    return replace(planned, arm=replace(planned.arm, passes=passes))
