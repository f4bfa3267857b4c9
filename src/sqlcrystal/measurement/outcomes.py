"""Answered questions as every measurement needs them, and paired outcomes: the same questions under two arms."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sqlcrystal.errors import DataError


class JudgedQuestion(Protocol):
    """One question, asked under a seed, and whether the final SQL is right."""

    @property
    def seed(self) -> int: ...
    @property
    def question(self) -> str: ...
    @property
    def database(self) -> str: ...
    @property
    def right(self) -> bool: ...


class RepairedQuestion(Protocol):
    """One question before and after repair, and how many rounds that took."""

    @property
    def right(self) -> bool: ...
    @property
    def first_right(self) -> bool: ...
    @property
    def rounds(self) -> int: ...


NO_SEED = ""
"""The seed of outcomes that know none."""


@dataclass(frozen=True)
class QuestionTable:
    """Sums per unique question, the unit of the second bootstrap stage: a question's seeds stay together."""

    database: NDArray[np.int64]
    values: NDArray[np.float64]
    names: tuple[str, ...]

    @cached_property
    def totals(self) -> NDArray[np.float64]:
        """Per-database column sums, one row per database."""
        sums = np.zeros((len(self.names), self.values.shape[1]))
        np.add.at(sums, self.database, self.values)
        return sums


def question_table(databases: Sequence[str], questions: Sequence[str], columns: NDArray[np.float64]) -> QuestionTable:
    """Add up the columns of every (database, question), whatever the seed."""
    names = tuple(sorted(set(databases)))
    code = {name: index for index, name in enumerate(names)}
    index_of: dict[tuple[str, str], int] = {}
    slots = np.array([index_of.setdefault(key, len(index_of)) for key in zip(databases, questions, strict=True)])
    values = np.zeros((len(index_of), columns.shape[1]))
    np.add.at(values, slots, columns)
    return QuestionTable(np.array([code[database] for database, _ in index_of], dtype=np.int64), values, names)


@dataclass(frozen=True)
class PairedOutcomes:
    """One entry per question and seed: right (1), wrong (0) or a score between them, under arm a and under arm b."""

    databases: tuple[str, ...]
    questions: tuple[str, ...]
    seeds: tuple[str, ...]
    a: NDArray[np.float64]
    b: NDArray[np.float64]
    unevaluable: int = 0
    """Pairs left out because one side could not be judged at all; they count as wrong in accuracies, not here."""

    def __len__(self) -> int:
        return len(self.databases)

    @cached_property
    def differences(self) -> QuestionTable:
        """The difference b - a in points and the pairs of each question: few distinct rows, which resample fast."""
        columns = np.stack([100 * (self.b - self.a), np.ones(len(self))], axis=1).astype(float)
        return question_table(self.databases, self.questions, columns)

    @property
    def fixed(self) -> int:
        """Tell how many pairs are wrong under a and right under b, or of other scores better."""
        return int(np.sum(self.b > self.a))

    @property
    def broke(self) -> int:
        """Tell how many pairs are right under a and wrong under b, or of other scores worse."""
        return int(np.sum(self.b < self.a))


def paired(rows: Iterable[tuple[str, str, str, float, float]], *, unevaluable: int = 0) -> PairedOutcomes:
    """Build outcomes from (database, question, seed, a, b) rows."""
    listed = list(rows)
    if not listed and unevaluable:
        raise DataError(f"no paired outcomes: none of {unevaluable} questions could be judged under both arms")
    if not listed:
        raise DataError("no paired outcomes: the table is empty")
    databases, questions, seeds, a, b = zip(*listed, strict=True)
    keys = list(zip(databases, questions, seeds, strict=True))
    if len(set(keys)) != len(keys):
        twice, _ = Counter(keys).most_common(1)[0]
        raise DataError(f"the pair database={twice[0]} question={twice[1]} seed={twice[2]} appears twice")
    score_a, score_b = np.array(a, dtype=np.float64), np.array(b, dtype=np.float64)
    return PairedOutcomes(databases, questions, seeds, score_a, score_b, unevaluable)


@dataclass(frozen=True)
class ArmScores:
    """The scores of two arms or more on the same questions; None where one is declared missing."""

    arms: tuple[str, ...]
    """The first is what the others are compared with."""
    keys: tuple[tuple[str, str, str], ...]
    """Database, question and seed."""
    scores: dict[str, tuple[float | None, ...]]

    def pair(self, a: str, b: str) -> PairedOutcomes:
        """Two of the arms; pairs of which a side is missing are left out and counted."""
        sides = zip(self.keys, self.scores[a], self.scores[b], strict=True)
        known = [(*key, first, second) for key, first, second in sides if first is not None and second is not None]
        return paired(known, unevaluable=len(self.keys) - len(known))
