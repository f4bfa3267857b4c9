"""The folder of a run: one study's, one process's at a time, with its logs; and its results exported as tables."""

import csv
import hashlib
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import quote

import msgspec
from filelock import FileLock, Timeout
from msgspec import Struct

from sqlcrystal.bank import Entry
from sqlcrystal.config import PLACES, StudyFile
from sqlcrystal.config.study import KEPT_STUDY
from sqlcrystal.errors import ConfigError, DataError
from sqlcrystal.escaping import csv_cell
from sqlcrystal.ledger.records import BankedCard, Ledger, Manifest, Outcome, read_ledger, write_whole
from sqlcrystal.models.recording import request_key
from sqlcrystal.pipeline import Answer, Lesson
from sqlcrystal.scoring.verdicts import RULES
from sqlcrystal.timestamps import timestamp
from sqlcrystal.types import Admission, Card, Completion, Message, Question, Round, Sampling

RECORDING = "recording.sqlite"
LOCK = "run.lock"
GROWING = ("arm", "arms", "contrast", "seeds", "reruns", "rule")
"""Keys that a study may change from one run to the next: more arms, seeds and contrasts read the same recording."""


@contextmanager
def claimed(folder: Path, study: StudyFile) -> Iterator[None]:
    """The folder for the length of a block; refused while another process has it, or if another study lives there."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise DataError(
            f"--out: another process is running a study in {folder}; wait for it, or choose another"
        ) from None
    try:
        _refuse_another(folder, study)
        write_whole(folder / KEPT_STUDY, msgspec.json.format(msgspec.json.encode(study), indent=2))
        yield
    finally:
        lock.release()


def _refuse_another(folder: Path, study: StudyFile) -> None:
    try:
        before = msgspec.json.decode((folder / KEPT_STUDY).read_bytes())
    except (FileNotFoundError, msgspec.DecodeError):
        return
    now = msgspec.to_builtins(study)
    changed = [key for key in now if key in before and _identity(key, before[key]) != _identity(key, now[key])]
    if changed:
        differences = "; ".join(f"{key} was {before[key]!r} and is {now[key]!r}" for key in changed[:3])
        raise DataError(f"--out: {folder} holds another study ({differences}); choose another folder")


def _identity(key: str, value: Any) -> Any:
    """Tell what of a key tells one study from another: nothing of where files lie, or of what may grow."""
    if key == "default" and isinstance(value, dict):
        return {name: part for name, part in value.items() if name not in ("settings", "seeds")}
    if key in ("model", "benchmark", "embedder"):
        return value.get("name") if isinstance(value, dict) else value
    return None if key in (*PLACES, *GROWING) else value


class LoggedCall(Struct, frozen=True, kw_only=True):
    """A call; `prompt` counts into the line's prompts, `key` is its address in the recording."""

    key: str
    prompt: int
    sampling: Sampling
    completion: Completion


class LoggedRound(Struct, frozen=True, kw_only=True):
    """One round of a repair, without its calls."""

    sql: str | None
    accepted: bool
    execution: Any = None
    probes: tuple[Any, ...] = ()


class LogLine(Struct, frozen=True, kw_only=True):
    """All there is to know of one answer; the last line of a question counts."""

    question: str
    database: str
    text: str
    sql: str | None
    right: bool
    prompts: tuple[tuple[Message, ...], ...]
    calls: tuple[LoggedCall, ...]
    retrieved: tuple[tuple[str, float, str], ...] = ()
    rounds: tuple[LoggedRound, ...] = ()


def line_of(
    outcome: Outcome, question: Question, answer: Answer | None, lesson: Lesson | None, *, digest: str
) -> LogLine:
    """The log line of one question; prompts that several calls share are written once."""
    calls = [*(answer.attempt.calls if answer else ()), *(lesson.calls if lesson else ())]
    prompts = tuple(dict.fromkeys(call.messages for call in calls))
    places = {messages: place for place, messages in enumerate(prompts)}
    return LogLine(
        question=question.id,
        database=question.database,
        text=question.text,
        sql=outcome.sql,
        right=outcome.right,
        prompts=prompts,
        calls=tuple(
            LoggedCall(
                key=request_key(digest, call.messages, call.sampling),
                prompt=places[call.messages],
                sampling=call.sampling,
                completion=call.completion,
            )
            for call in calls
        ),
        retrieved=tuple(
            (neighbour.card.id, neighbour.score, neighbour.card.text)
            for neighbour in (answer.retrieved if answer else ())
        ),
        rounds=tuple(_logged(spent) for spent in (lesson.effort.rounds if lesson else ())),
    )


def _logged(spent: Round) -> LoggedRound:
    """A round without the clock, so that the same run writes the same bytes."""
    return LoggedRound(
        sql=spent.sql,
        accepted=spent.accepted,
        execution=_timeless(spent.execution),
        probes=tuple({"sql": probe.sql, "execution": _timeless(probe.execution)} for probe in spent.probes),
    )


class Logs:
    """The log files of a run folder; a line that a file holds already is not written again."""

    def __init__(self, folder: Path) -> None:
        """Use a folder; files are opened when they are first written to."""
        self._folder = folder
        self._lock = Lock()
        self._known: dict[str, set[bytes]] = {}

    def append(self, name: str, line: LogLine) -> None:
        """Write a line to the named log at once, so that only a line in the making can be lost."""
        encoded = msgspec.json.encode(line) + b"\n"
        mark = hashlib.blake2b(encoded, digest_size=16).digest()
        path = self._folder / f"{quote(name, safe='=+,@ ')}.jsonl"
        with self._lock:
            if name not in self._known:
                self._known[name] = _mend(path)
            if mark in self._known[name]:
                return
            with path.open("ab") as stream:
                stream.write(encoded)
            self._known[name].add(mark)


def _mend(path: Path) -> set[bytes]:
    """The marks of a log's whole lines; a last line that a kill tore is cut off."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        return set()
    marks = set()
    whole = 0
    with path.open("rb+") as stream:
        for line in stream:
            if line.endswith(b"\n"):
                marks.add(hashlib.blake2b(line, digest_size=16).digest())
                whole += len(line)
        stream.truncate(whole)
    return marks


def _timeless(execution: object) -> Any:
    document = msgspec.to_builtins(execution)
    if isinstance(document, dict):
        document.pop("seconds", None)
    return document


RESULTS_CSV = "results.csv"
RESULTS_PARQUET = "results.parquet"
LISTS = ("cards", "scores", "round_calls", "traits")
PLAIN = tuple(name for name in Outcome.__struct_fields__ if name not in ("rules", *LISTS))
COLUMNS = (
    "version",
    "study",
    "digest",
    "model",
    *PLAIN,
    *(f"rule {rule}" for rule in RULES),
    *LISTS,
)


def write_results(ledger: Ledger, folder: Path) -> list[Path]:
    """Write the CSV, and the Parquet file where pyarrow is installed; each whole or not at all."""
    written = [write_whole(folder / RESULTS_CSV, _as_csv(ledger))]
    if find_spec("pyarrow") is not None:
        written.append(write_whole(folder / RESULTS_PARQUET, _as_parquet(ledger)))
    return written


def load_writers() -> None:
    """Load what writing takes: part of a second that a run would otherwise spend at its end, with nothing to ask."""
    if find_spec("pyarrow") is not None:
        import pyarrow.parquet  # noqa: F401


def _rows(manifest: Manifest, outcomes: Sequence[Outcome]) -> Iterator[list[Any]]:
    for outcome in outcomes:
        yield [
            manifest.version,
            manifest.study,
            manifest.digest,
            manifest.model,
            *(getattr(outcome, name) for name in PLAIN),
            *(outcome.rules.get(rule) for rule in RULES),
            *(list(getattr(outcome, name)) for name in LISTS),
        ]


def _as_csv(ledger: Ledger) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in _rows(ledger.manifest, ledger.outcomes):
        writer.writerow([_cell(value) for value in row])
    return text.getvalue().encode()


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, list):
        return csv_cell(" ".join(map(str, value)))
    return csv_cell(value) if isinstance(value, str) else value


def _as_parquet(ledger: Ledger) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = list(zip(*_rows(ledger.manifest, ledger.outcomes), strict=True)) or [()] * len(COLUMNS)
    kinds = {
        "cards": pa.list_(pa.string()),
        "scores": pa.list_(pa.float64()),
        "round_calls": pa.list_(pa.int64()),
        "traits": pa.list_(pa.float64()),
        "sql": pa.string(),
    }
    kinds["first_sql"] = kinds["other_sql"] = pa.string()
    arrays = [pa.array(values, type=kinds.get(name)) for name, values in zip(COLUMNS, columns, strict=True)]
    sink = io.BytesIO()
    pq.write_table(pa.table(dict(zip(COLUMNS, arrays, strict=True))), sink)
    return sink.getvalue()


def banked_entries(folder: Path, *, arm: str, seed: int) -> list[Entry]:
    """Every card that the arm banked under the seed; each keeps the signal that admitted it and names its study.

    A ledger does not keep fingerprints, so every card is run again before it is served for the first time.
    """
    ledger = read_ledger(folder)
    arms = sorted({card.arm for card in ledger.cards})
    if not arms:
        raise DataError(f"{folder}: the study banked no cards")
    if arm not in arms:
        raise ConfigError.unknown("--arm", arm, arms)
    seeds = sorted({card.seed for card in ledger.cards if card.arm == arm})
    if seed not in seeds:
        raise ConfigError.unknown("--seed", str(seed), [str(known) for known in seeds])
    writer = next((listed.writer for listed in ledger.manifest.arms if listed.name == arm), arm)
    at = timestamp()
    return [
        Entry(card=_card(card, ledger, writer=writer, at=at))
        for card in ledger.cards
        if card.arm == arm and card.seed == seed
    ]


def _card(card: BankedCard, ledger: Ledger, *, writer: str, at: str) -> Card:
    study = ledger.manifest.study
    return Card(
        id=card.id,
        database=card.database,
        question=Question(id=card.question_id, database=card.database, text=card.question),
        sql=card.sql,
        text=card.text,
        writer=writer,
        source=card.source,
        admission=Admission(signal=card.signal, by=f"study {study}", at=at, detail=f"arm {card.arm}, seed {card.seed}"),
        fingerprint="",
        tokens=card.tokens,
    )
