"""Repair without an oracle as a detector: what the trigger rings for, and what the gate lets through."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from sqlcrystal.measurement.collecting import Share
from sqlcrystal.measurement.rows import JudgedQuestion, RepairedQuestion


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
