"""Scores of arms from files: anybody's CSV, files that `sqlcrystal score --out` wrote, or other evaluators' logs."""

import csv
from collections.abc import Iterator, Sequence
from math import nan
from pathlib import Path

from sqlcrystal.errors import ConfigError, DataError
from sqlcrystal.measurement.evaluation_logs import LOG_SUFFIXES, LogKey, read_log
from sqlcrystal.measurement.flips import UNEVALUABLE
from sqlcrystal.measurement.outcomes import NO_SEED, ArmScores, PairedOutcomes

KEY_COLUMNS = ("database", "question")
"""A column `seed` may stand beside them; the others are arms."""
PAIR_COLUMNS = (*KEY_COLUMNS, "a", "b")
SCORE_COLUMNS = ("question_id", "database", "verdict", "kind")

Line = tuple[int, dict[str, str]]


def read_outcomes(files: Sequence[Path]) -> PairedOutcomes:
    """Read one file of pairs, or pair two score files question by question."""
    scores = read_arms(files)
    if len(scores.arms) > 2:
        raise DataError(f"{len(scores.arms)} arms: {', '.join(scores.arms)}; name two of them")
    return scores.pair(*scores.arms)


def read_arms(files: Sequence[Path], arms: Sequence[str] = (), *, cluster: str = "", score: str = "") -> ArmScores:
    """Read one file with a column for each arm, or for each arm a file of `sqlcrystal score --out` or a log.

    `cluster` names the field of a log's samples that holds their database, `score` the score where there are several.
    """
    logs = [path for path in files if path.suffix in LOG_SUFFIXES]
    if (cluster or score) and not logs:
        raise ConfigError("--cluster and --score: only logs of Inspect and lm-eval have them")
    if logs:
        if len(files) < 2 or arms:
            raise DataError(f"{logs[0]}: a log holds one arm; give one file for each arm, two or more")
        return _read_scores(files, cluster=cluster, score=score)
    if len(files) == 1:
        return _read_columns(files[0], arms)
    if not files or arms:
        raise DataError("name arms of one file of pairs, or give two files or more that `sqlcrystal score --out` wrote")
    return _read_scores(files)


def read_pairs(path: Path) -> PairedOutcomes:
    """Read PAIRS.csv; every defect is one line naming the row."""
    scores = _read_columns(path, PAIR_COLUMNS[2:])
    return scores.pair("a", "b")


def _read_columns(path: Path, named: Sequence[str]) -> ArmScores:
    """Read a column for each arm: those named; else a and b; else all that are neither question nor seed."""
    columns = _columns(path)
    others = [name for name in columns if name not in (*KEY_COLUMNS, "seed")]
    usual = {"a", "b"} & set(columns) or len(others) < 2 or not set(KEY_COLUMNS) <= set(columns)
    arms = tuple(named) or (("a", "b") if usual else tuple(others))
    if len(set(arms)) < 2:
        raise DataError(f"arms: {', '.join(arms)}; two different ones are needed")
    rows = list(_rows(path, (*KEY_COLUMNS, *arms)))
    return ArmScores(
        arms=arms,
        keys=tuple((row["database"], row["question"], row.get("seed") or NO_SEED) for _, row in rows),
        scores={arm: tuple(_score(path, line, row, arm) for line, row in rows) for arm in arms},
    )


def _read_scores(files: Sequence[Path], *, cluster: str = "", score: str = "") -> ArmScores:
    """Read a score file or log for each arm; all must hold the same questions."""
    names = tuple(path.name for path in files)
    if len(set(names)) < len(names):
        names = tuple(map(str, files))
    read = {
        name: read_log(path, cluster=cluster, score=score) if path.suffix in LOG_SUFFIXES else _scores(path)
        for name, path in zip(names, files, strict=True)
    }
    if len(read) < len(files):
        raise DataError(f"{', '.join(names)}: a file is compared with itself")
    first = read[names[0]]
    for other, path in zip(names[1:], files[1:], strict=True):
        _check_alike(first, read[other], (files[0], path))
    return ArmScores(
        arms=names,
        keys=tuple(first),
        scores={name: tuple(scores[key] for key in first) for name, scores in read.items()},
    )


Scores = dict[LogKey, float | None]


def _check_alike(first: Scores, second: Scores, paths: tuple[Path, Path]) -> None:
    for mine, others, path in ((first, second, paths[1]), (second, first, paths[0])):
        absent = [key for key in mine if key not in others]
        if absent:
            database, question, seed = absent[0]
            run = f", epoch {seed}," if seed else ""
            more = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
            raise DataError(
                f"{path}: has no question {question!r} of database {database!r}{run}{more}, which the other has"
            )


def _scores(path: Path) -> Scores:
    """Right or wrong by database and question; None where gold itself failed."""
    scores: Scores = {}
    for line, row in _rows(path, SCORE_COLUMNS):
        key = row["database"], row["question_id"], NO_SEED
        if key in scores:
            hint = "; it holds several prediction files: score each into its own" if row.get("predictions") else ""
            raise DataError(f"{path}, line {line}: question {key[1]!r} of database {key[0]!r} appears twice{hint}")
        scores[key] = None if row["kind"] in UNEVALUABLE else _score(path, line, row, "verdict")
    return scores


def _open(path: Path) -> "csv.DictReader[str]":
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except (UnicodeDecodeError, IsADirectoryError, PermissionError) as error:
        raise DataError(f"{path}: cannot be read as UTF-8 text ({error})") from None
    return csv.DictReader(text.splitlines(keepends=True))


def _columns(path: Path) -> Sequence[str]:
    return _open(path).fieldnames or ()


def _rows(path: Path, needed: Sequence[str]) -> Iterator[Line]:
    reader = _open(path)
    columns = reader.fieldnames or ()
    missing = [column for column in needed if column not in columns]
    if missing:
        raise DataError(f"{path}: missing column {', '.join(missing)}; needed: {', '.join(needed)}{_hint(columns)}")
    for row in reader:
        yield reader.line_num, row


def _hint(columns: Sequence[str]) -> str:
    """Tell what somebody meant who gave the other kind of file."""
    if set(SCORE_COLUMNS) <= set(columns):
        return ". This is a file of `sqlcrystal score --out`: give a second one to compare it with"
    if set(PAIR_COLUMNS) <= set(columns):
        return ". This is a file of pairs: give it alone"
    return ""


def _score(path: Path, line: int, row: dict[str, str], column: str) -> float | None:
    """Read a score from 0 to 1; None of a blank cell, which declares it missing."""
    value = (row[column] or "").strip()
    if not value:
        return None
    try:
        score = float(value)
    except ValueError:
        score = nan
    if not 0 <= score <= 1:
        raise DataError(f"{path}, line {line}: {column} is {value!r}; a score is from 0 to 1, or blank where missing")
    return score
