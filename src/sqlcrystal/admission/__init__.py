"""Admission: which signal lets an episode become a card."""

from sqlcrystal.admission.assertion import Assertion
from sqlcrystal.admission.benchmark import Judge, Noisy, Oracle, Ungated
from sqlcrystal.admission.confirmation import UserConfirmation
from sqlcrystal.admission.engine import EngineSignal
from sqlcrystal.admission.external import ExternalCheck

__all__ = [
    "Assertion",
    "EngineSignal",
    "ExternalCheck",
    "Judge",
    "Noisy",
    "Oracle",
    "Ungated",
    "UserConfirmation",
]
