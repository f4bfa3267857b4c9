"""Files that may be damaged or hostile: streams read within limits, and SQLite files looked through when opened."""

import lzma
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from io import BufferedIOBase, RawIOBase
from pathlib import Path
from typing import BinaryIO

from sqlcrystal.errors import DataError

MAX_LINE = 16 * 2**20
MAX_TOTAL = 2**30
_BLOCK = 2**16
_DICTIONARY = 2**28
"""The memory that a decompressor may take; the strongest setting of xz needs a quarter of it."""


def bounded_lines(
    blocks: Iterable[bytes], *, name: str, max_line: int = MAX_LINE, max_total: int = MAX_TOTAL
) -> Iterator[bytes]:
    """Split a stream into lines without their ends; a line or a file beyond its limit is the file's mistake."""
    rest = b""
    allowance = Allowance(name=name, total=max_total)
    for block in blocks:
        allowance.take(len(block))
        *lines, rest = (rest + block).split(b"\n")
        if len(rest) > max_line or any(len(line) > max_line for line in lines):
            raise DataError(f"{name}: a line is longer than {max_line // 2**20} MB, which is taken for a mistake")
        yield from lines
    if rest:
        yield rest


def blocks_of(stream: BinaryIO | BufferedIOBase | RawIOBase) -> Iterator[bytes]:
    """Read a stream piece by piece."""
    while block := stream.read(_BLOCK):
        yield block


def unpacked(stream: BinaryIO) -> Iterator[bytes]:
    """Unpack an xz stream piece by piece, however large it is as a whole."""
    decompressor = lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=_DICTIONARY)
    while not decompressor.eof:
        packed = stream.read(_BLOCK) if decompressor.needs_input else b""
        if decompressor.needs_input and not packed:
            raise lzma.LZMAError("the file is cut off")
        if block := decompressor.decompress(packed, _BLOCK):
            yield block


class Allowance:
    """The bytes that a file may unpack to in all; taken from piece by piece."""

    def __init__(self, *, name: str, total: int = MAX_TOTAL) -> None:
        """Allow so many bytes."""
        self._name, self._total, self._left = name, total, total

    def take(self, count: int) -> None:
        """Use so many bytes up; more than there are is the file's mistake."""
        self._left -= count
        if self._left < 0:
            raise DataError(f"{self._name}: holds more than {self._total // 2**20} MB, which is taken for a mistake")


def inflated(packed: bytes, *, name: str, max_size: int = MAX_LINE) -> bytes:
    """Unpack a zlib-compressed value of bounded size."""
    decompressor = zlib.decompressobj()
    content = decompressor.decompress(packed, max_size)
    if decompressor.unconsumed_tail:
        raise DataError(f"{name}: a value is larger than {max_size // 2**20} MB, which is taken for a mistake")
    return content


LOOKED_THROUGH = 4 * 2**20
"""A file up to this size is looked through whenever it is opened, which takes some ten milliseconds."""


def is_whole(connection: sqlite3.Connection, path: Path) -> bool:
    """Tell whether a file's pages fit together; a large one is believed, and its damage found where it is read."""
    if not path.exists() or path.stat().st_size > LOOKED_THROUGH:
        return True
    return bool(connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))
