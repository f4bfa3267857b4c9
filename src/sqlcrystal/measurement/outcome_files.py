"""Paired outcomes from files: anybody's PAIRS.csv, or two files that `sqlcrystal score --out` wrote."""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from sqlcrystal.errors import DataError
from sqlcrystal.measurement.flips import UNEVALUABLE
from sqlcrystal.measurement.outcomes import NO_SEED, PairedOutcomes, paired

PAIR_COLUMNS = ("database", "question", "a", "b")
"""A column `seed` may stand beside them."""
SCORE_COLUMNS = ("question_id", "database", "verdict", "kind")

Line = tuple[int, dict[str, str]]


def read_outcomes(files: Sequence[Path]) -> PairedOutcomes:
    """Read one file of pairs, or pair two score files question by question."""
    if len(files) == 1:
        return read_pairs(files[0])
    if len(files) == 2:
        return pair_scores(files[0], files[1])
    raise DataError(f"{len(files)} files; give one file of pairs, or two that `sqlcrystal score --out` wrote")


def read_pairs(path: Path) -> PairedOutcomes:
    """Read PAIRS.csv; every defect is one line naming the row."""
    return paired(
        (
            row["database"],
            row["question"],
            row.get("seed") or NO_SEED,
            _bit(path, line, row, "a"),
            _bit(path, line, row, "b"),
        )
        for line, row in _rows(path, PAIR_COLUMNS)
    )


def pair_scores(a: Path, b: Path) -> PairedOutcomes:
    """Pair the verdicts of two score files; both must hold the same questions."""
    first, second = _scores(a), _scores(b)
    for mine, others, path in ((first, second, b), (second, first, a)):
        absent = [key for key in mine if key not in others]
        if absent:
            database, question = absent[0]
            more = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
            raise DataError(f"{path}: has no question {question!r} of database {database!r}{more}, which the other has")
    judged = [key for key in first if first[key] is not None and second[key] is not None]
    return paired(
        (
            (database, question, NO_SEED, first[database, question] or 0, second[database, question] or 0)
            for database, question in judged
        ),
        unevaluable=len(first) - len(judged),
    )


def _scores(path: Path) -> dict[tuple[str, str], int | None]:
    """Right or wrong by database and question; None where gold itself failed."""
    scores: dict[tuple[str, str], int | None] = {}
    for line, row in _rows(path, SCORE_COLUMNS):
        key = row["database"], row["question_id"]
        if key in scores:
            hint = "; it holds several prediction files: score each into its own" if row.get("predictions") else ""
            raise DataError(f"{path}, line {line}: question {key[1]!r} of database {key[0]!r} appears twice{hint}")
        scores[key] = None if row["kind"] in UNEVALUABLE else _bit(path, line, row, "verdict")
    return scores


def _rows(path: Path, needed: Sequence[str]) -> Iterator[Line]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except (UnicodeDecodeError, IsADirectoryError, PermissionError) as error:
        raise DataError(f"{path}: cannot be read as UTF-8 text ({error})") from None
    reader = csv.DictReader(text.splitlines(keepends=True))
    columns = reader.fieldnames or ()
    missing = [column for column in needed if column not in columns]
    if missing:
        raise DataError(f"{path}: missing column {', '.join(missing)}; needed: {', '.join(needed)}{_hint(columns)}")
    for row in reader:
        yield reader.line_num, row


def _hint(columns: Sequence[str]) -> str:
    """What somebody meant who gave the other kind of file."""
    if set(SCORE_COLUMNS) <= set(columns):
        return ". This is a file of `sqlcrystal score --out`: give a second one to compare it with"
    if set(PAIR_COLUMNS) <= set(columns):
        return ". This is a file of pairs: give it alone"
    return ""


def _bit(path: Path, line: int, row: dict[str, str], column: str) -> int:
    value = (row[column] or "").strip()
    if value not in ("0", "1"):
        raise DataError(f"{path}, line {line}: {column} is {value!r}; choose from 0, 1")
    return int(value)
