"""The fix/break ledger: what memory changed, question by question, and what of it holds across seeds."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from msgspec import Struct

from sqlcrystal.errors import DataError
from sqlcrystal.measurement.outcomes import PairedOutcomes, paired
from sqlcrystal.measurement.rows import JudgedQuestion
from sqlcrystal.types import CardId

Key = tuple[int, str]
"""A seed and a question."""

UNEVALUABLE = ("unevaluable", "gold error", "gold timeout")
"""Kinds of verdict that say nothing about an answer: wrong in accuracies, as in the paper, and out of paired tests."""


class Answered(JudgedQuestion, Protocol):
    """One question answered once, whatever record holds it."""

    @property
    def difficulty(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def sql(self) -> str | None: ...
    @property
    def cards(self) -> tuple[CardId, ...]: ...
    @property
    def wording(self) -> int: ...


@dataclass(frozen=True)
class Pair:
    """The same question and seed before and after one change."""

    before: Answered
    after: Answered

    @property
    def key(self) -> Key:
        """The seed and the question."""
        return self.after.seed, self.after.question

    @property
    def asked(self) -> str:
        """The question, told apart from its paraphrases."""
        return f"{self.after.question} in words {self.after.wording}" if self.after.wording else self.after.question

    @property
    def evaluable(self) -> bool:
        """Whether both sides could be judged at all."""
        return self.before.kind not in UNEVALUABLE and self.after.kind not in UNEVALUABLE

    @property
    def verdict(self) -> str:
        """What the change did: fix, break, or nothing."""
        if self.before.right == self.after.right:
            return "same"
        return "fix" if self.after.right else "break"


def pair_up(before: Iterable[Answered], after: Iterable[Answered]) -> tuple[Pair, ...]:
    """Pair answers by seed, question and its wording; questions answered on one side only are left out."""
    before_by_key = {(row.seed, row.question, row.wording): row for row in before}
    keyed = (((row.seed, row.question, row.wording), row) for row in after)
    return tuple(Pair(before_by_key[key], row) for key, row in keyed if key in before_by_key)


def fixes(pairs: Iterable[Pair]) -> tuple[Pair, ...]:
    """The pairs the change fixed."""
    return tuple(pair for pair in pairs if pair.verdict == "fix")


def breaks(pairs: Iterable[Pair]) -> tuple[Pair, ...]:
    """The pairs the change broke."""
    return tuple(pair for pair in pairs if pair.verdict == "break")


def to_outcomes(pairs: Sequence[Pair]) -> PairedOutcomes:
    """What the statistics work on: the pairs that could be judged on both sides."""
    if not pairs:
        raise DataError("no question was answered under both arms")
    judged = [pair for pair in pairs if pair.evaluable]
    rows = (
        (pair.after.database, pair.asked, str(pair.after.seed), int(pair.before.right), int(pair.after.right))
        for pair in judged
    )
    return paired(rows, unevaluable=len(pairs) - len(judged))


class Stability(Struct, frozen=True, kw_only=True):
    """Fixes and breaks that repeat in every seed where their question is held out, at least twice, against churn."""

    stable_fixes: tuple[str, ...]
    stable_breaks: tuple[str, ...]
    churn_fixes: int
    churn_breaks: int
    both: tuple[str, ...]
    """Questions fixed under one seed and broken under another."""
    repeated: int
    """Questions held out under at least two seeds: only these can be stable."""


def stability(pairs: Iterable[Pair]) -> Stability:
    """Tell reproducible fixes and breaks from those of one seed."""
    verdicts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for pair in pairs:
        verdicts[pair.after.question][pair.verdict] += 1

    def always(kind: str) -> tuple[str, ...]:
        return tuple(sorted(question for question, counts in verdicts.items() if counts[kind] == counts.total() >= 2))

    def events(kind: str, stable: tuple[str, ...]) -> int:
        return sum(counts[kind] for question, counts in verdicts.items() if question not in stable)

    fixed, broken = always("fix"), always("break")
    return Stability(
        stable_fixes=fixed,
        stable_breaks=broken,
        churn_fixes=events("fix", fixed),
        churn_breaks=events("break", broken),
        both=tuple(sorted(question for question, counts in verdicts.items() if counts["fix"] and counts["break"])),
        repeated=sum(counts.total() >= 2 for counts in verdicts.values()),
    )
