"""The parts of an answered question that every measurement needs; the ledger's outcomes fit."""

from typing import Protocol


class JudgedQuestion(Protocol):
    """One question, asked under a seed, and whether the final SQL is right."""

    @property
    def seed(self) -> int: ...
    @property
    def question(self) -> str: ...
    @property
    def database(self) -> str: ...
    @property
    def right(self) -> bool: ...


class RepairedQuestion(Protocol):
    """One question before and after repair, and how many rounds that took."""

    @property
    def right(self) -> bool: ...
    @property
    def first_right(self) -> bool: ...
    @property
    def rounds(self) -> int: ...
