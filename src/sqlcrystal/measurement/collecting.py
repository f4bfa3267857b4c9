"""Yield and cost of collecting: first attempts, repairs, votes, further passes, and its checks as detectors."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from sqlcrystal.measurement.outcomes import JudgedQuestion, RepairedQuestion


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
    """Tell how many first attempts are right."""
    return Share(sum(row.first_right for row in rows), len(rows))


def repair_yield(rows: Sequence[Collected]) -> Share:
    """Tell how many of the first-attempt failures the source mended."""
    failed = [row for row in rows if not row.first_right]
    return Share(sum(row.right for row in failed), len(failed))


def vote_precision(rows: Sequence[Collected]) -> Share:
    """Tell how many of the candidates that a vote elected are right: each round elects one, a right one is the last."""
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


# ── trigger and gate as detectors ────────────────────────────────────────────────────────────────────────────────────


class Watched(JudgedQuestion, RepairedQuestion, Protocol):
    """One question whose repair the engine alone began and ended."""

    @property
    def accepted(self) -> bool: ...
    @property
    def calls(self) -> int: ...


class Detector(Struct, frozen=True, kw_only=True):
    """The trigger over all questions, and the gate over those it rang for."""

    n: int
    sensitivity: Share
    """Wrong first attempts that the trigger rang for."""
    false_alarms: Share
    """Right first attempts that it rang for all the same."""
    precision: Share
    """Of what it rang for, what was wrong."""
    accepted: Share
    """Of what it rang for, what the gate accepted a candidate of."""
    accepted_right: Share
    """Of what the gate accepted, what is right."""
    shared: Share
    """Of the repairs that an oracle makes of the same questions, those that the gate accepted right, too."""
    broken: int
    """Right first attempts that an accepted candidate replaced with a wrong one."""
    first: Share
    reached: Share
    calls: float


def detector(rows: Sequence[Watched], by_oracle: Sequence[Watched] = ()) -> Detector | None:
    """Count what trigger and gate did, beside an oracle's repair where there is one; a repair that began has rounds."""
    if not rows:
        return None
    rang = [row for row in rows if row.rounds]
    wrong = [row for row in rows if not row.first_right]
    accepted = [row for row in rang if row.accepted]
    return Detector(
        n=len(rows),
        sensitivity=Share(sum(not row.first_right for row in rang), len(wrong)),
        false_alarms=Share(sum(row.first_right for row in rang), len(rows) - len(wrong)),
        precision=Share(sum(not row.first_right for row in rang), len(rang)),
        accepted=Share(len(accepted), len(rang)),
        accepted_right=Share(sum(row.right for row in accepted), len(accepted)),
        shared=_shared(rows, accepted, by_oracle),
        broken=sum(row.first_right and not row.right for row in accepted),
        first=Share(sum(row.first_right for row in rows), len(rows)),
        reached=Share(sum(row.right for row in rows), len(rows)),
        calls=sum(row.calls for row in rows) / len(rows),
    )


def _shared(rows: Sequence[Watched], accepted: Sequence[Watched], by_oracle: Sequence[Watched]) -> Share:
    asked = {(row.seed, row.question) for row in rows}
    repaired = {(row.seed, row.question) for row in by_oracle if row.right and not row.first_right} & asked
    made = {(row.seed, row.question) for row in accepted if row.right}
    return Share(len(repaired & made), len(repaired))


# ── what a collection takes ──────────────────────────────────────────────────────────────────────────────────────────
