"""The one place that makes an Admitted: no other module holds the seal."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeAlias

from sqlcrystal.timestamps import timestamp
from sqlcrystal.types import ADMISSION_SEAL, Admission, Admitted, Episode

Clock: TypeAlias = Callable[[], datetime]


def utc_now() -> datetime:
    """Read the clock, in UTC."""
    return datetime.now(UTC)


def admit(episode: Episode, *, signal: str, by: str, clock: Clock, detail: str = "") -> Admitted:
    """Let an episode through, on the record: which signal, by whom, when."""
    admission = Admission(signal=signal, by=by, at=timestamp(clock()), detail=detail)
    return Admitted(episode=episode, admission=admission, seal=ADMISSION_SEAL)
