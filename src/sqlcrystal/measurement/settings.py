"""The settings kept apart: P_0, P_M and P_K on held-out questions; replay, retention and the floor on banked ones.

Accuracy is over all questions, an unevaluable one counting as wrong; the evaluable-only figure always stands beside it.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

from msgspec import Struct

from sqlcrystal.errors import DataError
from sqlcrystal.measurement.flips import UNEVALUABLE
from sqlcrystal.measurement.outcomes import JudgedQuestion
from sqlcrystal.measurement.ratio import CrystallizationRatio, HeldOut, SeedCounts, crystallization_ratio


class AnsweredQuestion(JudgedQuestion, Protocol):
    """An answer as accuracies need it: right at last, right at first, how it ended, and what every rule says."""

    @property
    def first_right(self) -> bool:
        """Tell whether the first attempt was right."""
        ...

    @property
    def kind(self) -> str:
        """Tell how it ended."""
        ...

    @property
    def rules(self) -> dict[str, bool]:
        """Tell what every rule says."""
        ...


class Accuracy(Struct, frozen=True, kw_only=True):
    """Right answers over all questions, and over those that could be judged; None over no question at all."""

    n: int
    right: int
    evaluable: int

    @property
    def percent(self) -> float | None:
        """Over all questions."""
        return 100 * self.right / self.n if self.n else None

    @property
    def percent_evaluable(self) -> float | None:
        """Over the evaluable ones."""
        return 100 * self.right / self.evaluable if self.evaluable else None


class Settings(Struct, frozen=True, kw_only=True):
    """Everything measured of one memory, in its separate settings; `by_rule` repeats P_0 and P_M under every rule."""

    floor: Accuracy
    memory: Accuracy
    repaired: Accuracy
    replay: Accuracy
    retention: Accuracy
    rerun: Accuracy
    seeds: tuple[SeedCounts, ...]
    ratio: CrystallizationRatio | None
    by_rule: dict[str, tuple[Accuracy, Accuracy]]


def accuracy(answers: Iterable[AnsweredQuestion], *, rule: str | None = None, first: bool = False) -> Accuracy:
    """Count right answers: by the headline rule or a named one, of the final SQL or the first attempt."""
    listed = list(answers)
    bits = [
        outcome.first_right if first else outcome.right if rule is None else outcome.rules[rule] for outcome in listed
    ]
    judged = sum(outcome.kind not in UNEVALUABLE for outcome in listed)
    return Accuracy(n=len(listed), right=sum(bits), evaluable=judged)


def measure(
    *,
    floor: Sequence[AnsweredQuestion],
    memory: Sequence[AnsweredQuestion],
    repaired: Sequence[AnsweredQuestion] = (),
    replay: Sequence[AnsweredQuestion] = (),
    retention: Sequence[AnsweredQuestion] = (),
    rerun: Sequence[AnsweredQuestion] = (),
) -> Settings:
    """The settings of one memory against its floor; the ratio needs the repair pass, and is None without it."""
    rules = sorted({rule for outcome in floor for rule in outcome.rules})
    counts = seed_counts(floor=floor, memory=memory, repaired=repaired) if repaired else ()
    return Settings(
        floor=accuracy(floor),
        memory=accuracy(memory),
        repaired=accuracy(repaired),
        replay=accuracy(replay),
        retention=accuracy(retention),
        rerun=accuracy(rerun),
        seeds=counts,
        ratio=crystallization_ratio(seeds=counts) if counts else None,
        by_rule={rule: (accuracy(floor, rule=rule), accuracy(memory, rule=rule)) for rule in rules},
    )


def seed_counts(
    *, floor: Sequence[AnsweredQuestion], memory: Sequence[AnsweredQuestion], repaired: Sequence[AnsweredQuestion]
) -> tuple[SeedCounts, ...]:
    """Per seed, the counts the ratio is made of."""
    return tuple(
        SeedCounts(
            n=sum(outcome.seed == seed for outcome in floor),
            floor=_right(floor, seed),
            memory=_right(memory, seed),
            repaired=_right(repaired, seed),
            repair_floor=sum(outcome.first_right for outcome in repaired if outcome.seed == seed),
        )
        for seed in dict.fromkeys(outcome.seed for outcome in floor)
    )


def held_out(
    *, floor: Sequence[AnsweredQuestion], memory: Sequence[AnsweredQuestion], repaired: Sequence[AnsweredQuestion]
) -> list[HeldOut]:
    """The three passes side by side, question by question, for the ratio's interval."""
    tables = [
        {(outcome.seed, outcome.database, outcome.question): outcome for outcome in answers}
        for answers in (floor, memory, repaired)
    ]
    if not tables[0].keys() == tables[1].keys() == tables[2].keys():
        raise DataError("held-out: the floor, memory and repair passes do not answer the same questions")
    return [
        HeldOut(
            database=key[1],
            question=key[2],
            seed=str(key[0]),
            floor=outcome.right,
            memory=tables[1][key].right,
            repair_floor=tables[2][key].first_right,
            repaired=tables[2][key].right,
        )
        for key, outcome in tables[0].items()
    ]


def _right(answers: Sequence[AnsweredQuestion], seed: int) -> int:
    return sum(outcome.right for outcome in answers if outcome.seed == seed)
