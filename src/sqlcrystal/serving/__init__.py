"""Serving: the loop of a data team (ask, verify, keep) on the same stages that studies measure."""

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
