"""Scores of arms from files: anybody's CSV, files of `sqlcrystal score --out`, logs of Inspect and of lm-eval.

Read from their documented formats, without either package. Of an `.eval` file only members that Python's zipfile can
unpack are read; `inspect log convert --to json` writes the others anew.
"""

import csv
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import nan
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec

from sqlcrystal.errors import ConfigError, DataError
from sqlcrystal.measurement.flips import UNEVALUABLE
from sqlcrystal.measurement.outcomes import NO_SEED, ArmScores, PairedOutcomes

LOG_SUFFIXES = (".eval", ".json", ".jsonl")
CLUSTER_FIELDS = ("database", "db_id", "db")
"""Fields in which a sample names its database, unless the caller says which field does."""
LETTERS = {"c": 1.0, "p": 0.5, "i": 0.0, "n": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
"""Inspect's letters (correct, partial, incorrect, no answer) and words."""
LogKey: TypeAlias = tuple[str, str, str]
"""Database, question and seed."""


class Sample(NamedTuple):
    """One sample of a log, whichever evaluator wrote it."""

    question: str
    seed: str
    fields: Mapping[str, Any]
    scores: Mapping[str, Any]


def read_log(path: Path, *, cluster: str = "", score: str = "") -> dict[LogKey, float | None]:
    """Read the score of every sample; None where a sample has none, as after an error."""
    samples, task = _samples(path)
    name = _score_name(path, samples, score)
    scores: dict[LogKey, float | None] = {}
    for sample in samples:
        key = _cluster(path, sample, cluster, task), sample.question, sample.seed
        if key in scores:
            raise DataError(f"{path}: sample {sample.question!r} appears twice{_sample_hint(sample)}")
        scores[key] = _number(path, sample, sample.scores.get(name))
    return scores


def _samples(path: Path) -> tuple[list[Sample], str]:
    """The samples of a file and the name of their task."""
    try:
        if path.suffix == ".eval":
            return _inspect(path, _members(path))
        if path.suffix == ".jsonl":
            lines = [msgspec.json.decode(line) for line in path.read_bytes().splitlines() if line.strip()]
            return [_harness(path, line) for line in lines], path.stem
        log = msgspec.json.decode(path.read_bytes())
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise DataError(f"{path}: cannot be read ({error}); `inspect log convert --to json` writes it anew") from None
    except msgspec.DecodeError as error:
        raise DataError(f"{path}: not JSON ({error})") from None
    if not isinstance(log, dict) or not isinstance(log.get("samples"), list):
        raise DataError(f"{path}: holds no samples; give a log of Inspect, or the samples_….jsonl of lm-eval")
    found, _ = _inspect(path, log["samples"])
    return found, str(log.get("eval", {}).get("task", path.stem))


def _members(path: Path) -> Iterator[Any]:
    """The samples of a zipped log, in the order of their names."""
    with zipfile.ZipFile(path) as archive:
        for name in sorted(archive.namelist()):
            if name.startswith("samples/") and name.endswith(".json"):
                yield msgspec.json.decode(archive.read(name))


def _inspect(path: Path, samples: Iterable[Any]) -> tuple[list[Sample], str]:
    found = []
    for sample in samples:
        if not isinstance(sample, dict) or "id" not in sample:
            raise DataError(f"{path}: a sample has no id")
        scores = {name: score.get("value") for name, score in (sample.get("scores") or {}).items()}
        epoch = int(sample.get("epoch", 1))
        fields = sample.get("metadata") or {}
        found.append(Sample(str(sample["id"]), str(epoch), fields, scores))
    if len({sample.seed for sample in found}) == 1:  # one epoch is no seed
        found = [sample._replace(seed=NO_SEED) for sample in found]
    return found, path.stem


def _harness(path: Path, line: Any) -> Sample:
    if not isinstance(line, dict) or "doc_id" not in line:
        raise DataError(f"{path}: a line has no doc_id; give the samples_….jsonl that lm-eval's --log_samples writes")
    doc = line.get("doc")
    named = line.get("metrics") or [key for key, value in line.items() if key in ("acc", "exact_match", "pass@1")]
    fields = {**(doc if isinstance(doc, dict) else {}), "filter": line.get("filter", "")}
    return Sample(str(line["doc_id"]), NO_SEED, fields, {name: line.get(name) for name in named})


def _score_name(path: Path, samples: Iterable[Sample], wanted: str) -> str:
    """The one score that all samples have, or the one that is asked for."""
    names = list(dict.fromkeys(name for sample in samples for name in sample.scores))
    if not names:
        raise DataError(f"{path}: no sample has a score")
    if wanted and wanted not in names:
        raise ConfigError.unknown("--score", wanted, names)
    if not wanted and len(names) > 1:
        raise ConfigError(f"{path}: has several scores; choose one with --score: {', '.join(names)}")
    return wanted or names[0]


def _cluster(path: Path, sample: Sample, wanted: str, task: str) -> str:
    """The database that a sample names; its task where it names none."""
    if wanted and wanted not in sample.fields:
        raise ConfigError(
            f"--cluster: sample {sample.question!r} of {path} has no field {wanted!r}; it has"
            f" {', '.join(sorted(sample.fields)) or 'none'}"
        )
    named = [wanted] if wanted else [field for field in CLUSTER_FIELDS if field in sample.fields]
    return str(sample.fields[named[0]]) if named else task


def _number(path: Path, sample: Sample, value: Any) -> float | None:
    if value is None:
        return None
    number = LETTERS.get(value.lower()) if isinstance(value, str) else value
    if isinstance(number, bool | int | float) and 0 <= number <= 1:
        return float(number)
    raise DataError(f"{path}, sample {sample.question!r}: the score is {value!r}; a score is C, P, I, N or from 0 to 1")


def _sample_hint(sample: Sample) -> str:
    if sample.fields.get("filter"):
        return "; a task with several filters writes a line for each: keep the lines of one filter"
    return ""


KEY_CELLS = ("database", "question", "question_id")
KEY_COLUMNS = KEY_CELLS[:2]
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
        if None in row or None in row.values():
            raise DataError(
                f"{path}, line {reader.line_num}: not as many cells as the {len(columns)} columns have names"
            )
        for key in (name for name in KEY_CELLS if name in needed and not row[name].strip()):
            raise DataError(f"{path}, line {reader.line_num}: {key} is blank; only a score may be")
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
