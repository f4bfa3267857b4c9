"""A benchmark: questions with gold, where their databases are, and the splits. Gold lives here and nowhere else."""

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sqlcrystal.errors import ConfigError, DataError
from sqlcrystal.types import Question


class Case(Struct, frozen=True, kw_only=True):
    """A question with its gold SQL; `wrong` holds plausible queries known to be wrong, where a benchmark keeps them."""

    question: Question
    sql: str
    wrong: tuple[str, ...] = ()
    paraphrases: tuple[str, ...] = ()
    """The same question in other words: it has the same gold."""
    known: bool = False
    """True if an earlier study asked it, so that a new one does not start blind."""

    @property
    def earlier(self) -> tuple[Question, ...]:
        """Give the questions before it in its dialogue; most questions stand alone."""
        return ()

    @property
    def opening(self) -> Question:
        """Give the question that its dialogue begins with: itself, where it is no dialogue's."""
        return self.earlier[0] if self.earlier else self.question


class LaterTurn(Case, frozen=True, kw_only=True):
    """A question that goes on from others, which are to be answered before it.

    A type of its own, so that the digest of a benchmark without dialogues stays as it was.
    """

    earlier: tuple[Question, ...]


class Benchmark(Struct, frozen=True, kw_only=True):
    """Cases, and for each database a file path or SQLAlchemy URL; `missing` names the databases that have neither."""

    name: str
    cases: tuple[Case, ...]
    locations: dict[str, str]
    missing: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    """Databases that were missing, and whose questions were left out because they might be."""
    instances: dict[str, tuple[str, ...]] = {}
    """Further instances of each database, for the rule `instances`; empty until they are asked for."""

    @property
    def databases(self) -> tuple[str, ...]:
        """Every database that has a question, in the order they first appear."""
        return tuple(dict.fromkeys(case.question.database for case in self.cases))

    @property
    def digest(self) -> str:
        """A name for exactly these questions; gold is part of it and cannot be read from it."""
        return hashlib.sha256(msgspec.json.encode([self.name, self.cases])).hexdigest()

    def first(self, limit: int) -> "Benchmark":
        """At most so many questions of each database, the first ones."""
        by_database: dict[str, list[Case]] = {}
        for case in self.cases:
            by_database.setdefault(case.question.database, []).append(case)
        return replace(self, cases=tuple(case for members in by_database.values() for case in members[:limit]))

    def only(self, databases: Collection[str]) -> "Benchmark":
        """The part of the benchmark that asks these databases."""
        for name in databases:
            if name not in self.databases:
                raise ConfigError.unknown("database", name, self.databases)
        return replace(
            self,
            cases=tuple(case for case in self.cases if case.question.database in databases),
            missing=tuple(name for name in self.missing if name in databases),
        )

    def available(self, *, skip_missing: bool) -> "Benchmark":
        """The part whose databases are here; raises when some are not, unless they may be skipped."""
        if not self.missing:
            return self
        if not skip_missing:
            listed = ", ".join(self.missing)
            count = len(self.missing)
            raise DataError(
                f"--data: {count} of {len(self.databases)} databases of {self.name} are missing: {listed};"
                " pass --skip-missing to leave their questions out"
            )
        here = [name for name in self.databases if name not in self.missing]
        if not here:
            raise DataError(f"--data: none of the databases of {self.name} is there: {', '.join(self.missing)}")
        return replace(self.only(here), skipped=self.missing)


def make_benchmark(name: str, cases: list[Case], locations: dict[str, str]) -> Benchmark:
    """A benchmark over the databases found, naming those that were not."""
    if not cases:
        raise DataError(f"{name}: the file holds no questions")
    needed = dict.fromkeys(case.question.database for case in cases)
    return Benchmark(
        name=name,
        cases=tuple(cases),
        locations={database: locations[database] for database in needed if database in locations},
        missing=tuple(database for database in needed if database not in locations),
    )


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
