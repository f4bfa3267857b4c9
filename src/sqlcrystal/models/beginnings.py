"""Beginnings of prompts that llama.cpp has read, kept on disk, so that the next command need not read them again.

A schema with its profile takes seconds to read, and the question after it a moment. What is kept is a cache, and may be
deleted at any time. llama.cpp ends the process over a file that is cut short, so each bears the digest of its bytes.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit

from sqlcrystal.models.catalogue import cache_root
from sqlcrystal.types import Message

BeginningOf: TypeAlias = Callable[[Sequence[Message]], Sequence[Message]]
"""Cuts a prompt after the part that other questions share; nothing where it has none."""

LEAST_CHARACTERS = 1_000
"""A shorter beginning is read about as fast as its file."""
KEPT = ".bin"
SECONDS = 60.0
"""For the server in this process to read or write a file."""


def kept_beginnings() -> Path:
    """Tell where beginnings are kept."""
    return cache_root() / "beginnings"


def delete_beginnings() -> int:
    """Delete every beginning, since each may hold any value that a profile shows; tells how many there were."""
    files = list(kept_beginnings().glob("*"))
    for file in files:
        file.unlink(missing_ok=True)
    return len(files)


class KeptBeginnings:
    """The beginnings of one model on this machine; its one slot is filled from them, and they from it."""

    def __init__(self, beginning_of: BeginningOf, *, weights: str, mebibytes: int) -> None:
        """Keep at most so much on disk, of prompts read with these weights by this llama.cpp."""
        self._beginning_of = beginning_of
        self._weights = weights
        self._bytes = mebibytes * 2**20
        self._folder = kept_beginnings()
        self._seen: set[str] = set()

    def fill(self, slot: "Slot", messages: Sequence[Message]) -> Sequence[Message]:
        """Fill the slot with the beginning of a prompt; gives the beginning if it is still to be kept."""
        beginning = self._beginning_of(messages)
        name = self._name(beginning)
        if name in self._seen or sum(len(message.content) for message in beginning) < LEAST_CHARACTERS:
            return ()
        self._seen.add(name)
        with suppress(OSError):  # another process may delete the file meanwhile
            for file in self._folder.glob(f"{name}-*{KEPT}"):
                if file.name == f"{name}-{_digest(file)}{KEPT}" and slot.restore(file):
                    os.utime(file)
                    return ()
                file.unlink(missing_ok=True)
        return beginning

    def keep(self, slot: "Slot", beginning: Sequence[Message]) -> None:
        """Keep the beginning that the slot holds, and drop those that were not used for longest."""
        name = self._name(beginning)
        part = self._folder / f"{name}-{os.getpid()}.part"
        with suppress(OSError):  # a full or read-only disk costs the next command its time, nothing else
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if slot.save(part):
                part.chmod(0o600)
                part.replace(self._folder / f"{name}-{_digest(part)}{KEPT}")
            self._drop_oldest()

    def _name(self, beginning: Sequence[Message]) -> str:
        text = json.dumps([self._weights, *((message.role, message.content) for message in beginning)])
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]

    def _drop_oldest(self) -> None:
        left = self._bytes
        for file in sorted(self._folder.glob(f"*{KEPT}"), key=lambda file: file.stat().st_mtime, reverse=True):
            left -= file.stat().st_size
            if left < 0:
                file.unlink(missing_ok=True)


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()[:32]


class Slot:
    """The slot of a llama.cpp server in this process; its memory is saved and restored over the server's address."""

    def __init__(self, address: str, *, key: str) -> None:
        """Know the address, and the key that the server asks for."""
        self._address = address
        self._key = key

    def save(self, file: Path) -> bool:
        """Write what the slot has read to a file of the server's folder; False where it could not."""
        return self._do("save", file)

    def restore(self, file: Path) -> bool:
        """Read it back; False where the file is of no use."""
        return self._do("restore", file)

    def _do(self, action: str, file: Path) -> bool:
        body = json.dumps({"filename": file.name})
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        with _connected(self._address) as connection:
            try:
                connection.request("POST", f"/slots/0?action={action}", body, headers)
                return connection.getresponse().status == 200
            except (OSError, HTTPException):
                return False


@contextmanager
def _connected(address: str) -> Iterator[HTTPConnection]:
    place = urlsplit(address)
    connection = HTTPConnection(place.hostname or "", place.port, timeout=SECONDS)
    try:
        yield connection
    finally:
        connection.close()
