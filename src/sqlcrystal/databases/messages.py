"""How a database process and its parent talk: messages on a pipe, each with its length, and a fuse for a late one."""

import signal
from typing import IO

import msgspec

from sqlcrystal.types import Execution, Failure, Rows

GRACE_SECONDS = 0.25
"""How long after its time a statement may still end by itself before its process is ended."""
OUTSIDE = "database: "
"""Begins the message of a failure that is not the statement's: the database itself cannot be read."""
_EXECUTION: msgspec.msgpack.Decoder[Rows | Failure] = msgspec.msgpack.Decoder(Rows | Failure)


class Request(msgspec.Struct, frozen=True):
    """One statement to run."""

    sql: str
    timeout: float
    max_rows: int
    inspection: bool = False
    pivot: bool = False
    location: str = ""


def read(stream: IO[bytes]) -> bytes:
    """The next message; empty when the other side has gone."""
    header = stream.read(4)
    if len(header) < 4:
        return b""
    size = int.from_bytes(header, "big")
    message = stream.read(size)
    return message if len(message) == size else b""


def write(stream: IO[bytes], message: bytes) -> None:
    """Send one message."""
    stream.write(len(message).to_bytes(4, "big") + message)
    stream.flush()


def decode(message: bytes) -> Execution:
    """What a process answered."""
    return _EXECUTION.decode(message)


def light_fuse(seconds: float) -> None:
    """Let the system end this process after so long, should the parent that would end it be gone; zero puts it out."""
    if hasattr(signal, "setitimer"):  # Windows has none; there the parent alone ends it
        signal.setitimer(signal.ITIMER_REAL, seconds)
