"""Serving: the loop of a data team (ask, verify, keep) on the same stages that studies measure.

Names are loaded when they are first asked for: a command that answers one question should not wait for the others.
"""

from typing import TYPE_CHECKING

from sqlcrystal.first_use import on_first_use

if TYPE_CHECKING:
    from sqlcrystal.serving.answers import Event, Offer, ServedAnswer, UsedCard
    from sqlcrystal.serving.asynchronous import AsyncCrystal
    from sqlcrystal.serving.banking import Ruling
    from sqlcrystal.serving.crystal import Crystal, DatabaseState
    from sqlcrystal.serving.verdicts import Correction, Rejection

__all__ = [
    "AsyncCrystal",
    "Correction",
    "Crystal",
    "DatabaseState",
    "Event",
    "Offer",
    "Rejection",
    "Ruling",
    "ServedAnswer",
    "UsedCard",
]

__getattr__ = on_first_use(
    __name__,
    {
        "answers": ("Event", "Offer", "ServedAnswer", "UsedCard"),
        "asynchronous": ("AsyncCrystal",),
        "banking": ("Ruling",),
        "crystal": ("Crystal", "DatabaseState"),
        "verdicts": ("Correction", "Rejection"),
    },
)
