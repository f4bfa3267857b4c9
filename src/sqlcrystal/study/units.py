"""From a design and its splits to the list of units: every piece of work a study consists of, and what it waits for."""

from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum

from msgspec import Struct
from msgspec.structs import replace

from sqlcrystal.benchmarks.cases import Case
from sqlcrystal.benchmarks.split import Split
from sqlcrystal.study.design import Design, PlannedArm, matched_arm
from sqlcrystal.study.setting import SETTINGS, Setting
from sqlcrystal.types import Question


class Collection(Struct, frozen=True):
    """Names a collection and the bank it fills: what makes the cards, from which split, after which of its passes."""

    source: str
    admission: str
    writer: str
    seed: int
    passes: int
    after: int


class Unit(Struct, frozen=True, kw_only=True):
    """One question of one arm, setting, seed and repetition; a unit of a collection fills a bank."""

    arm: str
    setting: str
    seed: int
    question: Question
    """In the words in which it is asked."""
    wording: int = 0
    """Which paraphrase these words are, from 1 on; 0 is the question itself."""
    repetition: int = 0
    needs: tuple[Collection, ...] = ()
    fills: Collection | None = None


class Batch(Struct, frozen=True, kw_only=True):
    """The units of one arm in one setting, over all its seeds: complete as a whole, or left out."""

    arm: str
    setting: str
    units: tuple[Unit, ...]
    told: bool = True
    """Whether its outcomes are reported; a collection that asks nothing new of the model is another arm's."""

    @property
    def label(self) -> str:
        """How reports name what is left out."""
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
    """Every collection that an arm's memory rests on: its own, and that of the arm whose card counts it is cut to."""
    if not planned.remembers:
        return ()
    other = matched_arm(planned.arm.bank)
    return (collection_of(planned, seed), *((collection_of(design.arm(other), seed),) if other else ()))


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
        cases = splits[seed].held_out if setting.asks == "held-out" else splits[seed].learn
        for repetition in repetitions:
            for wording, question in _worded(cases, setting):
                yield replace(unit, question=question, wording=wording, repetition=repetition, needs=needs)


def _worded(cases: Sequence[Case], setting: Setting) -> Iterator[tuple[int, Question]]:
    """Give the questions as they are asked: in their own words, or in those of each paraphrase."""
    for case in cases:
        if not setting.reworded:
            yield 0, case.question
        for number, text in enumerate(case.paraphrases if setting.reworded else (), 1):
            yield number, replace(case.question, text=text)


def _collection(planned: PlannedArm, unit: Unit, split: Split) -> Iterator[Unit]:
    """The passes over the questions to learn from; a further pass waits for the one before it."""
    for number in range(1, planned.arm.passes + 1):
        needs = (collection_of(planned, unit.seed, number - 1),) if number > 1 else ()
        fills = collection_of(planned, unit.seed, number)
        yield from (
            replace(unit, question=case.question, repetition=number - 1, needs=needs, fills=fills)
            for case in split.learn
        )


def _turn(design: Design, planned: PlannedArm, setting: str) -> Turn:
    again = SETTINGS[setting].repeats and SETTINGS[setting].asks == "held-out"
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
