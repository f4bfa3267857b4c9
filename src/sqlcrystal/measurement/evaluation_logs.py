"""Scores from logs of other evaluators: Inspect's `.eval` and `.json`, and lm-evaluation-harness's `samples_….jsonl`.

Read from their documented formats, without either package. Of an `.eval` file only members that Python's zipfile can
unpack are read; `inspect log convert --to json` writes the others anew.
"""

import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec

from sqlcrystal.errors import ConfigError, DataError
from sqlcrystal.measurement.outcomes import NO_SEED

LOG_SUFFIXES = (".eval", ".json", ".jsonl")
CLUSTER_FIELDS = ("database", "db_id", "db")
"""Where a sample names its database, unless the caller says which field does."""
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
            raise DataError(f"{path}: sample {sample.question!r} appears twice{_hint(sample)}")
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


def _hint(sample: Sample) -> str:
    if sample.fields.get("filter"):
        return "; a task with several filters writes a line for each: keep the lines of one filter"
    return ""
