"""One unit through the pipeline: retrieve → solve → execute → score, and for a collection repair → admit → write."""

from functools import cache
from typing import NamedTuple

from msgspec.structs import replace

from sqlcrystal import assembly, pipeline
from sqlcrystal.config import StudyFile
from sqlcrystal.consumption.memory import NoMemory
from sqlcrystal.errors import ModelRejected
from sqlcrystal.ledger.folder import line_of
from sqlcrystal.ledger.records import Outcome
from sqlcrystal.measurement.confidence import traits
from sqlcrystal.protocols import LanguageModel
from sqlcrystal.single_flight import SingleFlight
from sqlcrystal.solving.following import PastTurn, Reading, Rewriter
from sqlcrystal.solving.prompt import unread_tokens
from sqlcrystal.study.design import SETTINGS, PlannedArm, gate_of
from sqlcrystal.study.memories import BankedEpisode, FinishedCollections, Memories, Performed
from sqlcrystal.study.units import Unit
from sqlcrystal.study.world import (
    REPEATED,
    Attempts,
    Cards,
    Efforts,
    MemoryWithout,
    Readings,
    RememberedSolver,
    RememberedSource,
    RememberedWriter,
    World,
    as_asked,
)
from sqlcrystal.types import Attempt, CardId, Question, Sampling
from sqlcrystal.writing.diff_writers import modes

SINGLE_SHOT = "single-shot"
DEFAULT_SOURCE = "T3-look"
"""The repair of held-out answers for arms whose cards come from a log, which has none to offer."""
# Arms share most of their cards, and telling modes apart is slower than all else that is not a call.
_modes = cache(modes)


class UnitWork(NamedTuple):
    """The start of a unit's prompt (its database, then its cards), and a name that units share which ask alike."""

    prefix: tuple[str, ...]
    name: tuple[object, ...]


class Flip(NamedTuple):
    """An answer that memory fixed or broke: the card that is left out next, the SQL and verdict with all cards."""

    card: CardId
    sql: str | None
    right: bool


class Performer:
    """Performs units from many threads; equal work is done once, by stages that remember."""

    def __init__(self, study: StudyFile, world: World, model: LanguageModel, memories: Memories) -> None:
        """Nothing is asked yet."""
        self.study, self.world, self.model, self.memories = study, world, model, memories
        self.design = memories.design
        self._attempts: Attempts = SingleFlight(errors=REPEATED)
        self._efforts: Efforts = SingleFlight(errors=REPEATED)
        self._cards: Cards = SingleFlight(errors=REPEATED)
        self._readings: Readings = SingleFlight(errors=REPEATED)
        self._turns: SingleFlight[Unit, PastTurn] = SingleFlight(errors=REPEATED)

    def asking(self, model: LanguageModel) -> "Performer":
        """A performer over the same world and memories that asks another model, and has done nothing yet."""
        return Performer(self.study, self.world, model, self.memories)

    def perform(self, unit: Unit, finished: FinishedCollections) -> Performed | None:
        """One unit; None when it has no row, as for a question whose card is not in the bank after all."""
        if not self._is_asked(unit, finished):
            return None
        flip = self.flip(unit, finished) if unit.leaves_out else None
        if unit.leaves_out and flip is None:
            return None
        try:
            if SETTINGS[unit.setting].serves:
                served = self._serve(unit, self._memory(unit, finished), finished)
                settled = self._settle(unit, served.answer, pipeline.Lesson(effort=served.effort), None)
                return replace(settled, outcome=self._told(settled.outcome, unit.question, served))
            share = self._log_share(unit)
            if share is not None:
                answer = self._logged(unit, share)
            else:
                answer = self._answer(unit, self._memory(unit, finished), finished)
        except ModelRejected:  # the same prompt would be refused again, so the question is unevaluable
            if not unit.arm:
                raise
            return self._settle(unit, None, None, flip)
        return self._settle(unit, answer, self._learn(unit, answer), flip) if unit.arm else None

    def flip(self, unit: Unit, finished: FinishedCollections) -> Flip | None:
        """The answer with the whole window, if it is right where the one without memory is wrong, or the reverse."""
        memory, oracle, rule = self._whole_memory(unit, finished), self.world.oracle, self.study.rule
        card = MemoryWithout(memory, unit.leaves_out).left_out(unit.question)
        if card is None or not oracle.evaluable(unit.question):
            return None
        try:
            sqls = [self._answer(unit, seen, finished).attempt.sql for seen in (NoMemory(), memory)]
        except ModelRejected:
            return None
        before, after = (oracle.judge(unit.question, sql).rules[rule] for sql in sqls)
        return Flip(card, sqls[1], after) if before != after else None

    def work(self, unit: Unit, finished: FinishedCollections) -> UnitWork:
        """Tell what a unit will ask, known before it is asked."""
        if unit.earlier:  # how it will read, and so its cards, is known once the turns before it are answered
            return UnitWork((unit.question.database,), (unit,))
        memory = self._memory(unit, finished)
        cards = memory.arrange(memory.recall(unit.question)) if self._is_asked(unit, finished) else ()
        prefix = (unit.question.database, *(card.text for card in cards))
        gate = self._gate(unit)
        repair = (self._source_name(unit), *gate) if gate else ()
        asked = (*as_asked(self._explained(unit, unit.question)), self._solver_name(unit), self._sample(unit, memory))
        return UnitWork(prefix, (*prefix, *asked, *repair))

    # ── the stages ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _answer(self, unit: Unit, memory: pipeline.Memory, finished: FinishedCollections) -> pipeline.Answer:
        database = self.world.database(unit.question.database)
        reading = self._read(unit, memory, finished)
        question = self._explained(unit, reading.question)
        answer = pipeline.answer(question, memory=memory, solver=self._solver(unit, memory), database=database)
        return _with_calls(reading, answer)

    def _explained(self, unit: Unit, question: Question) -> Question:
        """Put the study's definitions beside a question, where its arm shows them; no collection is made with them."""
        shown = bool(unit.arm) and not unit.collects and self._planned(unit).arm.definitions
        return pipeline.explain(question, self.world.meant(question)) if shown else question

    def _read(self, unit: Unit, memory: pipeline.Memory, finished: FinishedCollections) -> Reading:
        """Read a unit's question after the turns before it, each read and answered as the unit's arm would."""
        turns = []
        for place, question in enumerate(unit.earlier):
            before = replace(unit, question=question, earlier=unit.earlier[:place], fills=None)
            answered = self._turns.get(before, lambda before=before: self._turn(before, finished))  # type: ignore[misc]
            turns.append(answered)
        key = (self._sample(unit, memory), as_asked(unit.question), tuple(turns))
        sampling = Sampling(max_tokens=self.study.max_tokens, index=self._sample(unit, memory))
        rewriter = Rewriter(self.model, sampling=sampling)
        return self._readings.get(key, lambda: pipeline.read(unit.question, turns, rewriter=rewriter))

    def _turn(self, unit: Unit, finished: FinishedCollections) -> PastTurn:
        """Tell an earlier turn as later ones see it: as it was read, with the SQL of its first attempt."""
        try:
            attempt = self._answer(unit, self._memory(unit, finished), finished).attempt
        except ModelRejected:
            return PastTurn(unit.question.text)
        return PastTurn(attempt.question.text, attempt.sql)

    def _serve(self, unit: Unit, memory: pipeline.Memory, finished: FinishedCollections) -> pipeline.Served:
        """Answer as the service does, by its own code and its own source of repairs."""
        database = self.world.database(unit.question.database)
        reading = self._read(unit, memory, finished)
        served = pipeline.serve(
            self._explained(unit, reading.question),
            memory=memory,
            solver=self._solver(unit, memory),
            source=self._source(unit, "engine"),
            database=database,
            sound=self._regime(unit, "engine").accept,
        )
        return replace(served, answer=_with_calls(reading, served.answer))

    def _logged(self, unit: Unit, share: float) -> pipeline.Answer:
        """Give a log's entry instead of an answer: a query, and no word of the question that it was written for."""
        unasked = Question(id=unit.question.id, database=unit.question.database, text="")
        return pipeline.Answer(attempt=Attempt(question=unasked, calls=(), sql=self.world.logged(unit.question, share)))

    def _learn(self, unit: Unit, answer: pipeline.Answer) -> pipeline.Lesson | None:
        """Tell what repair makes of an answer, and in a collection its card; None where repair is not to be had."""
        gate = self._gate(unit)
        if gate is None or not self.world.oracle.evaluable(unit.question):
            return None
        arm = self._planned(unit).arm
        database = self.world.database(unit.question.database)
        logged = answer.attempt.sql or "" if self._log_share(unit) is not None else ""
        regime, source = self._regime(unit, *gate, logged=logged), self._source(unit, gate[0])
        if not unit.collects:
            return pipeline.Lesson(
                effort=pipeline.repair(answer.attempt, trigger=regime.trigger, source=source, accept=regime.accept)
            )
        writer = assembly.writer(arm.writer, database=database, model=self.model)
        return pipeline.learn(
            answer.attempt,
            trigger=regime.trigger,
            source=source,
            accept=regime.accept,
            verifier=regime.verifier,
            writer=RememberedWriter(writer, self._cards, name=arm.writer),
        )

    def _regime(self, unit: Unit, name: str, rate: float = 0.0, logged: str = "") -> assembly.Regime:
        database = self.world.database(unit.question.database)
        bench = assembly.Bench(unit.question, database, self.world.oracle.right, rate, unit.seed, logged)
        return assembly.regime(name, bench=bench)

    def _source(self, unit: Unit, regime: str) -> RememberedSource:
        shown = self._solver(unit, NoMemory()).shown(unit.question)
        sampling = Sampling(max_tokens=self.study.max_tokens)
        source = assembly.source(
            self._source_name(unit), model=self.model, database=shown, budget=self.study.budget, sampling=sampling
        )
        return RememberedSource(source, self._efforts, regime=regime, schema=shown.schema())

    def _source_name(self, unit: Unit) -> str:
        """Name the source of repairs: the service's own where that is measured; a log only fills a bank."""
        name = self._planned(unit).arm.source
        if SETTINGS[unit.setting].serves:
            return assembly.SERVED_SOURCES["allowed"]
        return DEFAULT_SOURCE if assembly.log_share(name) is not None and not unit.collects else name

    def _log_share(self, unit: Unit) -> float | None:
        """Give the share of wrong and stale queries, if a unit of a collection starts from a log."""
        return assembly.log_share(self._planned(unit).arm.source) if unit.collects else None

    def _memory(self, unit: Unit, finished: FinishedCollections) -> pipeline.Memory:
        memory = self._whole_memory(unit, finished)
        return MemoryWithout(memory, unit.leaves_out) if unit.leaves_out else memory

    def _whole_memory(self, unit: Unit, finished: FinishedCollections) -> pipeline.Memory:
        setting = SETTINGS[unit.setting]
        if setting.memory == "none" or not unit.needs:
            return NoMemory()
        own, after = setting.memory == "own", unit.needs[0].after
        return self.memories.of(self._planned(unit), unit.seed, finished, own=own, after=after)

    def _is_asked(self, unit: Unit, finished: FinishedCollections) -> bool:
        """Tell if the unit has a question to ask: one that is banked, or in a further pass one still without a card."""
        if SETTINGS[unit.setting].asks == "banked":
            served = self.memories.served(self._planned(unit), unit.seed, finished)
            return any(card.question.key == unit.question.key for card in served.searched.cards(unit.question.database))
        if unit.collects and unit.needs:
            return unit.question.key in finished[unit.needs[0]].missed
        return True

    def _gate(self, unit: Unit) -> tuple[str, float] | None:
        """Tell who says that repair is due and done, and how noisily; None where nothing is repaired."""
        admission = self._planned(unit).arm.admission if unit.collects else SETTINGS[unit.setting].repairs
        return gate_of(admission) if admission else None

    def _solver(self, unit: Unit, memory: pipeline.Memory) -> RememberedSolver:
        name, repetition = self._solver_name(unit), self._sample(unit, memory)
        database = self.world.database(unit.question.database)
        sampling = Sampling(max_tokens=self.study.max_tokens, index=repetition)
        solver = assembly.solver(name, model=self.model, database=database, sampling=sampling)
        return RememberedSolver(solver, self._attempts, name=name, repetition=repetition)

    def _solver_name(self, unit: Unit) -> str:
        """A bank is always collected single-shot, whatever answers from it."""
        return self._planned(unit).arm.solver if unit.arm and not unit.collects else SINGLE_SHOT

    def _sample(self, unit: Unit, memory: pipeline.Memory) -> int:
        """Tell which reply to the same prompt is meant; a further pass of a collection asks for none of its own."""
        setting = SETTINGS[unit.setting]
        if unit.collects:
            return 0
        if (
            self.study.bare_per_seed
            and isinstance(memory, NoMemory)
            and setting.asks == "held-out"
            and not setting.repairs
        ):
            # Repair keeps the replies from 0 on, so that its first attempts are asked apart from every seed's answers.
            return (1 + self.study.splits.index(unit.seed)) * (1 + self.study.reruns) + unit.repetition
        return unit.repetition

    def _planned(self, unit: Unit) -> PlannedArm:
        return self.design.arm(unit.arm)

    # ── what came of it ──────────────────────────────────────────────────────────────────────────────────────────────

    def _settle(
        self, unit: Unit, answer: pipeline.Answer | None, lesson: pipeline.Lesson | None, flip: Flip | None
    ) -> Performed:
        outcome = self._outcome(unit, answer, lesson)
        if flip is not None:
            outcome = replace(outcome, without=flip.card, first_sql=flip.sql, first_right=flip.right)
        line = line_of(outcome, unit.question, answer, lesson, digest=self.model.digest)
        first_sql, banked = outcome.first_sql, self._banked(lesson)
        wrong = first_sql is None or not self.world.oracle.right(unit.question, first_sql)
        return Performed(outcome=outcome, line=line, banked=banked, missed=wrong and banked is None)

    def _banked(self, lesson: pipeline.Lesson | None) -> BankedEpisode | None:
        """The card with the failure modes of its repair; a first-try success was not repaired."""
        if lesson is None or lesson.card is None:
            return None
        episode = lesson.effort.episode
        if episode is None or not episode.rounds:
            return BankedEpisode(lesson.card)
        dialect = self.world.database(lesson.card.database).dialect
        return BankedEpisode(lesson.card, _modes(episode.attempt.sql, episode.sql, dialect))

    def _final_sql(self, unit: Unit, first_sql: str | None, lesson: pipeline.Lesson | None) -> str | None:
        """The last candidate, or else the attempt's; where the engine decides, what it refused replaces nothing."""
        if lesson is None:
            return first_sql
        if SETTINGS[unit.setting].serves:
            return pipeline.standing(lesson.effort, self.world.database(unit.question.database))
        by_engine = self._gate(unit) == gate_of("engine")
        candidate = lesson.effort.episode if by_engine else lesson.effort.last_candidate
        return candidate.sql if candidate is not None else first_sql

    def _told(self, outcome: Outcome, question: Question, served: pipeline.Served) -> Outcome:
        """Add what only the answer as people get it has: how sure it is, its second reading, what a cache spares."""
        calls = (*served.answer.attempt.calls, *(call for spent in served.effort.rounds for call in spent.calls))
        other = served.other
        return replace(
            outcome,
            traits=traits(served, self.world.database(question.database)),
            other_sql=other,
            other_right=other is not None and self.world.oracle.judge(question, other).rules[self.study.rule],
            read_tokens=unread_tokens(calls),
        )

    def _outcome(self, unit: Unit, answer: pipeline.Answer | None, lesson: pipeline.Lesson | None) -> Outcome:
        oracle, rule = self.world.oracle, self.study.rule
        first_sql = answer.attempt.sql if answer else None
        sql = self._final_sql(unit, first_sql, lesson)
        first, final = (oracle.judge(unit.question, query) if answer else oracle.unjudged for query in (first_sql, sql))
        rounds = lesson.effort.rounds if lesson else ()
        calls = [*(answer.attempt.calls if answer else ()), *(lesson.calls if lesson else ())]
        retrieved = answer.retrieved if answer else ()
        return Outcome(
            arm=unit.arm,
            setting=unit.setting,
            seed=unit.seed,
            question=unit.question.id,
            database=unit.question.database,
            difficulty=unit.question.difficulty,
            right=final.rules[rule],
            first_right=first.rules[rule],
            rules=final.rules,
            kind=final.named(rule),
            sql=sql,
            first_sql=first_sql,
            cards=tuple(neighbour.card.id for neighbour in retrieved),
            scores=tuple(neighbour.score for neighbour in retrieved),
            calls=len(calls),
            rounds=len(rounds),
            probes=sum(len(spent.probes) for spent in rounds),
            prompt_tokens=sum(call.completion.prompt_tokens for call in calls),
            completion_tokens=sum(call.completion.completion_tokens for call in calls),
            seconds=round(sum(call.completion.seconds for call in calls), 6),
            accepted=lesson is not None and bool(rounds) and lesson.effort.episode is not None,
            round_calls=tuple(len(spent.calls) for spent in rounds),
            run=unit.repetition if SETTINGS[unit.setting].repeats else 0,
            wording=unit.wording,
            runtime=" + ".join(dict.fromkeys(call.completion.runtime for call in calls if call.completion.runtime)),
        )


def _with_calls(reading: Reading, answer: pipeline.Answer) -> pipeline.Answer:
    """Count the call that read a question as the answer's: it counts in every cost."""
    if not reading.calls:
        return answer
    return replace(answer, attempt=replace(answer.attempt, calls=(*reading.calls, *answer.attempt.calls)))
