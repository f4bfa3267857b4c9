"""Serving: the loop of a data team (ask, verify, keep) on the same stages that studies measure.

Names are loaded when they are first asked for: a command that answers one question should not wait for the others.
"""

from typing import TYPE_CHECKING

from sqlcrystal.first_use import on_first_use

if TYPE_CHECKING:
    from sqlcrystal.serving.answers import Event, ServedAnswer
    from sqlcrystal.serving.asynchronous import AsyncCrystal
    from sqlcrystal.serving.callers import Caller
    from sqlcrystal.serving.crystal import Crystal
    from sqlcrystal.serving.documents import (
        Correction,
        DatabaseState,
        Offer,
        PastAnswer,
        PossibleReading,
        Proposed,
        Rejection,
        Result,
        Ruling,
        UsedCard,
        WaitingAnswer,
    )

__all__ = [
    "AsyncCrystal",
    "Caller",
    "Correction",
    "Crystal",
    "DatabaseState",
    "Event",
    "Offer",
    "PastAnswer",
    "PossibleReading",
    "Proposed",
    "Rejection",
    "Result",
    "Ruling",
    "ServedAnswer",
    "UsedCard",
    "WaitingAnswer",
]

__getattr__ = on_first_use(
    __name__,
    {
        "answers": ("Event", "ServedAnswer"),
        "asynchronous": ("AsyncCrystal",),
        "callers": ("Caller",),
        "crystal": ("Crystal",),
        "documents": (
            "Correction",
            "DatabaseState",
            "Offer",
            "PastAnswer",
            "PossibleReading",
            "Proposed",
            "Rejection",
            "Result",
            "Ruling",
            "UsedCard",
            "WaitingAnswer",
        ),
    },
)
