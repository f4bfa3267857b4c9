"""What collecting yields: first attempts, repairs, votes, exploration, and a second pass over what is left."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from sqlcrystal.measurement.rows import RepairedQuestion


class Collected(RepairedQuestion, Protocol):
    """One collection question, whatever record holds it."""

    @property
    def seed(self) -> int: ...
    @property
    def question(self) -> str: ...


class Share(Struct, frozen=True):
    """So many of so many."""

    part: int
    whole: int

    @property
    def percent(self) -> float | None:
        """The share; None of nothing."""
        return 100 * self.part / self.whole if self.whole else None


def first_try(rows: Sequence[Collected]) -> Share:
    """How many first attempts are right."""
    return Share(sum(row.first_right for row in rows), len(rows))


def repair_yield(rows: Sequence[Collected]) -> Share:
    """How many of the first-attempt failures the source mended."""
    failed = [row for row in rows if not row.first_right]
    return Share(sum(row.right for row in failed), len(failed))


def vote_precision(rows: Sequence[Collected]) -> Share:
    """How many of the candidates that a vote elected are right: each round elects one, a right one is the last."""
    failed = [row for row in rows if not row.first_right]
    return Share(sum(row.right for row in failed), sum(row.rounds for row in failed))


def headroom_reached(rows: Sequence[Collected], repaired: Sequence[Collected]) -> Share:
    """Of what repair adds on collection questions, how much another way of answering adds on the same questions."""
    repaired_keys = {(row.seed, row.question) for row in repaired}
    shared = [row for row in rows if (row.seed, row.question) in repaired_keys]
    asked = {(row.seed, row.question) for row in shared}
    base = [row for row in repaired if (row.seed, row.question) in asked]
    return Share(_gained(shared), _gained(base))


def _gained(rows: Sequence[Collected]) -> int:
    return sum(row.right for row in rows) - sum(row.first_right for row in rows)


def later_pass(rows: Sequence[Collected], first: Sequence[Collected]) -> list[Collected]:
    """The rows of a further pass: those of questions that the first pass, under its own arm or this one, had asked.

    A ledger may hold both passes under one arm, or the further pass alone; a question that the first pass solved is
    asked in that pass only, which tells the two apart.
    """
    solved = {(row.seed, row.question) for row in first if row.first_right}
    both = any((row.seed, row.question) in solved for row in rows)
    seen: set[tuple[int, str]] = set()
    later = []
    for row in rows:
        key = (row.seed, row.question)
        if not both or key in seen:
            later.append(row)
        seen.add(key)
    return later
