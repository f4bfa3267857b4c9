"""Serving: the loop of a data team (ask, verify, keep) on the same stages that studies measure.

Names are loaded when they are first asked for: a command that answers one question should not wait for the others.
"""

from importlib import import_module
from typing import TYPE_CHECKING

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

_MODULES = {
    "answers": ("Event", "Offer", "ServedAnswer", "UsedCard"),
    "asynchronous": ("AsyncCrystal",),
    "banking": ("Ruling",),
    "crystal": ("Crystal", "DatabaseState"),
    "verdicts": ("Correction", "Rejection"),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    """The name from its module, on first use."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
