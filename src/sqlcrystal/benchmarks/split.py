"""The paper's 70/30 split, and folds: per database, seeded, the same whatever the order of the questions."""

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from msgspec import Struct

from sqlcrystal.benchmarks.cases import Case

HELD_OUT = 0.3
SEEDS = (42, 7, 13)


Dialogue = tuple[Case, ...]
"""The cases that are drawn together: the turns of a dialogue, or one question that stands alone."""


class Split(Struct, frozen=True):
    """Cases to learn from and cases to test on; no case is in both."""

    learn: tuple[Case, ...]
    held_out: tuple[Case, ...]


def split(cases: Iterable[Case], *, seed: int, held_out: float = HELD_OUT) -> Split:
    """Hold out round(0.3 n) cases of each database.

    The draw ranks cases by a hash of seed, database and question text, so neither order nor position ids matter, and
    word-for-word repeats of a question rank side by side; ids only break ties between them. A dialogue is drawn whole,
    by the question that it begins with.
    """
    return _divided(_ranked(cases, seed), lambda place, size: place < round(held_out * size))


def split_into_folds(cases: Iterable[Case], *, folds: int, seed: int) -> dict[int, Split]:
    """Make one split for each fold, numbered from 1, so that every case is held out in exactly one of them."""
    ranked = _ranked(cases, seed)
    return {number: _divided(ranked, partial(_is_in_fold, number - 1, folds)) for number in range(1, folds + 1)}


def _is_in_fold(fold: int, folds: int, place: int, _size: int) -> bool:
    return place % folds == fold


def splits_of(cases: Iterable[Case], *, seeds: Sequence[int], folds: int = 0) -> dict[int, Split]:
    """Make the splits of a study by number: one for each seed, or the folds of its one seed."""
    cases = tuple(cases)
    if folds:
        return split_into_folds(cases, folds=folds, seed=seeds[0])
    return {seed: split(cases, seed=seed) for seed in seeds}


def _ranked(cases: Iterable[Case], seed: int) -> list[list[Dialogue]]:
    """Order the dialogues of each database by the draw."""
    by_opening: dict[tuple[str, str], list[Case]] = {}
    for case in cases:
        by_opening.setdefault(case.opening.key, []).append(case)
    by_database: dict[str, list[Dialogue]] = {}
    for turns in by_opening.values():
        by_database.setdefault(turns[0].question.database, []).append(tuple(turns))
    return [sorted(by_database[name], key=lambda turns: _rank(turns[0], seed)) for name in sorted(by_database)]


def _divided(ranked: list[list[Dialogue]], is_held_out: Callable[[int, int], bool]) -> Split:
    """Hold out the cases whose place in the draw, of so many, is chosen."""
    learn: list[Case] = []
    test: list[Case] = []
    for members in ranked:
        chosen = {place for place in range(len(members)) if is_held_out(place, len(members))}
        drawn = [(case, place in chosen) for place, turns in enumerate(members) for case in turns]
        test += sorted((case for case, held_out in drawn if held_out), key=_reading_order)
        learn += sorted((case for case, held_out in drawn if not held_out), key=_reading_order)
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
