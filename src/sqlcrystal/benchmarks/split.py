"""The paper's 70/30 split: per database, seeded, the same whatever the order of the questions."""

import hashlib
import re
from collections.abc import Iterable

from msgspec import Struct

from sqlcrystal.benchmarks.cases import Case

HELD_OUT = 0.3
SEEDS = (42, 7, 13)


class Split(Struct, frozen=True):
    """Cases to learn from and cases to test on; no case is in both."""

    learn: tuple[Case, ...]
    held_out: tuple[Case, ...]


def split(cases: Iterable[Case], *, seed: int, held_out: float = HELD_OUT) -> Split:
    """Hold out round(0.3 n) cases of each database.

    The draw ranks cases by a hash of seed, database and question text, so neither order nor position ids matter, and
    word-for-word repeats of a question rank side by side; ids only break ties between them.
    """
    by_database: dict[str, list[Case]] = {}
    for case in cases:
        by_database.setdefault(case.question.database, []).append(case)
    learn: list[Case] = []
    test: list[Case] = []
    for database in sorted(by_database):
        ranked = sorted(by_database[database], key=lambda case: _rank(case, seed))
        size = round(held_out * len(ranked))
        test += sorted(ranked[:size], key=_reading_order)
        learn += sorted(ranked[size:], key=_reading_order)
    return Split(learn=tuple(learn), held_out=tuple(test))


def _rank(case: Case, seed: int) -> tuple[bytes, bytes]:
    question = case.question
    words = _digest(seed, question.database, question.text, question.evidence)
    return words, _digest(seed, question.database, question.id, "")


def _digest(seed: int, *parts: str) -> bytes:
    return hashlib.sha256("\0".join((str(seed), *parts)).encode()).digest()


def _reading_order(case: Case) -> tuple[list[tuple[int, str]], str, str]:
    """Ids in the order a person would list them: 2 before 10."""
    pieces = [(int(piece), "") if piece.isdigit() else (0, piece) for piece in re.split(r"(\d+)", case.question.id)]
    return pieces, case.question.text, case.sql
