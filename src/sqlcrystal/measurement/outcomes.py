"""Paired outcomes: the same questions answered under two arms, read from anybody's CSV file."""

import csv
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sqlcrystal.errors import DataError

COLUMNS = ("database", "question", "seed", "a", "b")


@dataclass(frozen=True)
class PairedOutcomes:
    """One entry per question and seed: right (1) or wrong (0) under arm a and under arm b."""

    databases: tuple[str, ...]
    questions: tuple[str, ...]
    seeds: tuple[str, ...]
    a: NDArray[np.int64]
    b: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.databases)

    @property
    def fixed(self) -> int:
        """How many pairs are wrong under a and right under b."""
        return int(np.sum((self.a == 0) & (self.b == 1)))

    @property
    def broke(self) -> int:
        """How many pairs are right under a and wrong under b."""
        return int(np.sum((self.a == 1) & (self.b == 0)))


def paired(rows: Iterable[tuple[str, str, str, int, int]]) -> PairedOutcomes:
    """Build outcomes from (database, question, seed, a, b) rows."""
    listed = list(rows)
    if not listed:
        raise DataError("no paired outcomes: the table is empty")
    databases, questions, seeds, a, b = zip(*listed, strict=True)
    keys = list(zip(databases, questions, seeds, strict=True))
    if len(set(keys)) != len(keys):
        twice, _ = Counter(keys).most_common(1)[0]
        raise DataError(f"the pair database={twice[0]} question={twice[1]} seed={twice[2]} appears twice")
    return PairedOutcomes(databases, questions, seeds, np.array(a, dtype=np.int64), np.array(b, dtype=np.int64))


def read_pairs(path: Path) -> PairedOutcomes:
    """Read PAIRS.csv; every defect is one line naming the row."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except (UnicodeDecodeError, IsADirectoryError, PermissionError) as error:
        raise DataError(f"{path}: cannot be read as UTF-8 text ({error})") from None
    reader = csv.DictReader(text.splitlines())
    missing = [column for column in COLUMNS if column not in (reader.fieldnames or ())]
    if missing:
        raise DataError(f"{path}: missing column {', '.join(missing)}; needed: {', '.join(COLUMNS)}")
    return paired(_outcome(path, reader.line_num, row) for row in reader)


def _outcome(path: Path, line: int, row: dict[str, str]) -> tuple[str, str, str, int, int]:
    bits: list[int] = []
    for arm in ("a", "b"):
        value = (row[arm] or "").strip()
        if value not in ("0", "1"):
            raise DataError(f"{path}, line {line}: {arm} is {value!r}; choose from 0, 1")
        bits.append(int(value))
    return row["database"], row["question"], row["seed"], bits[0], bits[1]


@dataclass(frozen=True)
class QuestionTable:
    """Sums per unique question, the unit of the second bootstrap stage: a question's seeds stay together."""

    database: NDArray[np.int64]
    values: NDArray[np.float64]
    names: tuple[str, ...]

    @property
    def totals(self) -> NDArray[np.float64]:
        """Per-database column sums, one row per database."""
        sums = np.zeros((len(self.names), self.values.shape[1]))
        np.add.at(sums, self.database, self.values)
        return sums


def question_table(databases: Sequence[str], questions: Sequence[str], columns: NDArray[np.float64]) -> QuestionTable:
    """Add up the columns of every (database, question), whatever the seed."""
    names = tuple(sorted(set(databases)))
    code = {name: index for index, name in enumerate(names)}
    place: dict[tuple[str, str], int] = {}
    slots = np.array([place.setdefault(key, len(place)) for key in zip(databases, questions, strict=True)])
    values = np.zeros((len(place), columns.shape[1]))
    np.add.at(values, slots, columns)
    return QuestionTable(np.array([code[database] for database, _ in place], dtype=np.int64), values, names)
