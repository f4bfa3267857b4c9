"""From a design and its splits to the list of units: every piece of work a study consists of, and what it waits for."""

from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum

from msgspec import Struct
from msgspec.structs import replace

from sqlcrystal.benchmarks.cases import Case, Split
from sqlcrystal.study.design import SETTINGS, TRIAL, Design, PlannedArm, Setting, matched_arm, trial_arm
from sqlcrystal.types import Question


class Collection(Struct, frozen=True):
    """Names a collection and the bank it fills: what makes the cards, from which split, after which of its passes."""

    source: str
    admission: str
    writer: str
    seed: int
    passes: int
    after: int
    tried_by: str = ""
    """The arm on whose collection questions its cards were tried one by one; empty before that."""


class Unit(Struct, frozen=True, kw_only=True):
    """One question of one arm, setting, seed and repetition; a unit of a collection fills a bank."""

    arm: str
    setting: str
    seed: int
    question: Question
    """In the words in which it is asked."""
    earlier: tuple[Question, ...] = ()
    """The turns of its dialogue that it is read after."""
    wording: int = 0
    """The paraphrase that these words are, from 1 on; 0 is the question itself."""
    repetition: int = 0
    leaves_out: int = 0
    """The card of its window that it does without, from 1 on; 0 is none."""
    needs: tuple[Collection, ...] = ()
    fills: Collection | None = None

    @property
    def collects(self) -> bool:
        """Tell whether repair, admission and a card follow the answer."""
        return self.setting == "collection"


class Batch(Struct, frozen=True, kw_only=True):
    """The units of one arm in one setting, over all its seeds: complete as a whole, or left out."""

    arm: str
    setting: str
    units: tuple[Unit, ...]
    told: bool = True
    """True if its outcomes are reported; a collection that asks nothing new of the model is another arm's."""

    @property
    def label(self) -> str:
        """Tell how reports name what is left out."""
        return f"{self.arm}/{self.setting}" if self.arm else "first attempts"


class Turn(IntEnum):
    """The order of the work: what the headline needs comes first."""

    ATTEMPTS = 0
    FLOOR = 1
    DEFAULT_COLLECTION = 2
    REPAIR = 3
    DEFAULT = 4
    CONFIRMATORY = 5
    REPEATED = 6
    EXPLORATORY = 7
    EXPLORATORY_REPEATED = 8


def batches(design: Design, splits: Mapping[int, Split], *, reruns: int = 1) -> list[Batch]:
    """All the work of a study, in the order it should be done; a bank's collection before what needs it."""
    turns = [(Turn.ATTEMPTS, _attempts(splits))]
    collected: set[Collection] = set()
    for planned in design.arms:
        settings = [*(["collection"] if planned.remembers else []), *planned.settings]
        for name in settings:
            units = tuple(_units(design, planned, name, splits, reruns))
            if name == "collection":
                units = tuple(unit for unit in units if unit.fills not in collected)
                collected |= {unit.fills for unit in units if unit.fills is not None}
            told = name != "collection" or design.collects(planned)
            if units:
                turns.append(
                    (_turn(design, planned, name), Batch(arm=planned.name, setting=name, units=units, told=told))
                )
    return [batch for _, batch in sorted(turns, key=lambda entry: entry[0])]


def collection_of(planned: PlannedArm, seed: int, after: int | None = None) -> Collection:
    """The collection that an arm's memory rests on, after all of its passes or after so many."""
    arm = planned.arm
    return Collection(arm.source, arm.admission, arm.writer, seed, arm.passes, after or arm.passes)


def collections_needed(design: Design, planned: PlannedArm, seed: int) -> tuple[Collection, ...]:
    """Every collection that an arm's memory rests on: its own, and another arm's for its card counts or its trial."""
    if not planned.remembers:
        return ()
    if trial := trial_arm(planned.arm.bank):  # it has the same cards, so that its needs begin with our own
        other = design.arm(trial)
        return (*collections_needed(design, other, seed), trial_of(other, seed))
    matched = matched_arm(planned.arm.bank)
    return (collection_of(planned, seed), *((collection_of(design.arm(matched), seed),) if matched else ()))


def trial_of(planned: PlannedArm, seed: int) -> Collection:
    """Name the arm's collection once its cards were tried on the collection's own questions."""
    return replace(collection_of(planned, seed), tried_by=planned.name)


def _attempts(splits: Mapping[int, Split]) -> Batch:
    """Every question without memory, database by database: what all arms and seeds start from."""
    questions = {
        case.question.key: case.question for split in splits.values() for case in (*split.learn, *split.held_out)
    }
    ordered = sorted(questions.values(), key=lambda question: question.database)
    units = tuple(Unit(arm="", setting="attempt", seed=0, question=question) for question in ordered)
    return Batch(arm="", setting="attempt", units=units, told=False)


def _units(design: Design, planned: PlannedArm, name: str, splits: Mapping[int, Split], reruns: int) -> Iterator[Unit]:
    setting = SETTINGS[name]
    repetitions = range(1, reruns + 1) if setting.repeats else range(1)
    for seed in planned.seeds:
        unit = Unit(arm=planned.name, setting=name, seed=seed, question=Question(id="", database="", text=""))
        if setting.asks == "collection":
            yield from _collection(planned, unit, splits[seed])
            continue
        needs = collections_needed(design, planned, seed)
        fills = trial_of(planned, seed) if name == TRIAL else None
        cases = splits[seed].held_out if setting.asks == "held-out" else splits[seed].learn
        for repetition in repetitions:
            for case, wording, question in _worded(cases, setting):
                asked = replace(
                    unit,
                    question=question,
                    earlier=case.earlier if setting.in_context else (),
                    wording=wording,
                    repetition=repetition,
                    needs=needs,
                    fills=fills,
                )
                yield from _leaving_out(asked, planned.arm.k if setting.leaves_out else 0)


def _worded(cases: Sequence[Case], setting: Setting) -> Iterator[tuple[Case, int, Question]]:
    """Give the questions as they are asked: in their own words, or in those of each paraphrase."""
    for case in cases:
        if not setting.reworded:
            yield case, 0, case.question
        for number, text in enumerate(case.paraphrases if setting.reworded else (), 1):
            yield case, number, replace(case.question, text=text)


def _leaving_out(unit: Unit, cards: int) -> Iterator[Unit]:
    """Give the unit as it is, or once for each card that its window may hold."""
    yield from (replace(unit, leaves_out=place) for place in range(1, cards + 1)) if cards else (unit,)


def _collection(planned: PlannedArm, unit: Unit, split: Split) -> Iterator[Unit]:
    """The passes over the questions to learn from; a further pass waits for the one before it."""
    for number in range(1, planned.arm.passes + 1):
        needs = (collection_of(planned, unit.seed, number - 1),) if number > 1 else ()
        fills = collection_of(planned, unit.seed, number)
        yield from (
            replace(unit, question=case.question, earlier=case.earlier, repetition=number - 1, needs=needs, fills=fills)
            for case in split.learn
        )


def _turn(design: Design, planned: PlannedArm, setting: str) -> Turn:
    asked = SETTINGS[setting]
    again = (asked.repeats or asked.leaves_out) and asked.asks == "held-out"
    if planned.name not in design.confirmed:
        return Turn.EXPLORATORY_REPEATED if again else Turn.EXPLORATORY
    if again or (SETTINGS[setting].repairs and planned.remembers):
        return Turn.REPEATED
    default = design.arm(design.default)
    if not planned.remembers and planned.arm.solver == default.arm.solver:
        return Turn.FLOOR if setting == "transfer" else Turn.REPAIR
    if planned.name == design.default:
        return Turn.DEFAULT_COLLECTION if setting == "collection" else Turn.DEFAULT
    return Turn.CONFIRMATORY
