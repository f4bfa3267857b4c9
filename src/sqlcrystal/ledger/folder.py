"""A run's folder belongs to one study, and to one process at a time."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from filelock import FileLock, Timeout

from sqlcrystal.config import PLACES, StudyFile
from sqlcrystal.config.bundled import KEPT_STUDY
from sqlcrystal.errors import DataError
from sqlcrystal.ledger.records import write_whole

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
