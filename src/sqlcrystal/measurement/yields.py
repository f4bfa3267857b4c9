"""What collecting yields: how precise a vote is, what exploring alone reaches, what a second pass adds."""

from collections.abc import Collection, Iterable
from typing import Protocol

from msgspec import Struct


class Collected(Protocol):
    """One collection question, whatever record holds it."""

    @property
    def seed(self) -> int: ...
    @property
    def question(self) -> str: ...
    @property
    def right(self) -> bool: ...
    @property
    def first_right(self) -> bool: ...
    @property
    def rounds(self) -> int: ...


class Share(Struct, frozen=True, kw_only=True):
    """So many of so many."""

    part: int
    whole: int

    @property
    def percent(self) -> float | None:
        """None of nothing."""
        return 100 * self.part / self.whole if self.whole else None


class Headroom(Struct, frozen=True, kw_only=True):
    """On the same collection questions: right at first, right after one method, right after repair."""

    n: int
    floor: int
    reached: int
    repaired: int

    @property
    def percent(self) -> float | None:
        """How much of what repair adds the method reaches; None where repair adds nothing."""
        room = self.repaired - self.floor
        return 100 * (self.reached - self.floor) / room if room > 0 else None


def vote_precision(rows: Iterable[Collected]) -> Share:
    """Of the candidates that a vote elected, one a round, how many the oracle would pass."""
    failing = [row for row in rows if not row.first_right]
    return Share(part=sum(row.right for row in failing), whole=sum(row.rounds for row in failing))


def explored(*, exploring: Iterable[Collected], repairing: Iterable[Collected]) -> Headroom:
    """What looking at the database before answering reaches of the headroom that repair has on the same questions."""
    repairs = {(row.seed, row.question): row for row in repairing}
    both = [(row, repairs[row.seed, row.question]) for row in exploring if (row.seed, row.question) in repairs]
    return Headroom(
        n=len(both),
        floor=sum(repair.first_right for _, repair in both),
        reached=sum(row.right for row, _ in both),
        repaired=sum(repair.right for _, repair in both),
    )


def second_pass(*, once: Collection[object], twice: Collection[object]) -> Share:
    """How many cards a bank of two passes has that the bank of one has not."""
    return Share(part=len(set(twice) - set(once)), whole=len(set(twice)))
