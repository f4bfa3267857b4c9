"""How a database process and its parent talk: length-prefixed messages on a pipe."""

from typing import IO

import msgspec


class Request(msgspec.Struct, frozen=True):
    """One statement to run."""

    sql: str
    timeout: float
    max_rows: int


def read(stream: IO[bytes]) -> bytes:
    """The next message; empty when the other side has gone."""
    header = stream.read(4)
    return stream.read(int.from_bytes(header, "big")) if len(header) == 4 else b""


def write(stream: IO[bytes], message: bytes) -> None:
    """Send one message."""
    stream.write(len(message).to_bytes(4, "big") + message)
    stream.flush()
