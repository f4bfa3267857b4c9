"""Acquisition: how test-time computation becomes an episode."""

from sqlcrystal.acquisition.explore import Explore, Exploring
from sqlcrystal.acquisition.look_first import LookFirst
from sqlcrystal.acquisition.one_bit import OneBit
from sqlcrystal.acquisition.origin import FirstTry, Union
from sqlcrystal.acquisition.probe import Probing
from sqlcrystal.acquisition.repair import BUDGET, Repair
from sqlcrystal.acquisition.resample import Resample
from sqlcrystal.acquisition.vote import SelfVote

__all__ = [
    "BUDGET",
    "Explore",
    "Exploring",
    "FirstTry",
    "LookFirst",
    "OneBit",
    "Probing",
    "Repair",
    "Resample",
    "SelfVote",
    "Union",
]
