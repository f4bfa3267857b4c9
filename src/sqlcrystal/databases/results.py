"""Results: gathered within limits on their weight, turned into plain cells, named alike in any order of rows."""

import datetime
import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import chain, islice
from typing import Any

import msgspec

from sqlcrystal.types import Cell, Execution, Row, Rows

MAX_BYTES = 64 * 2**20
OVER_THE_CAP = "the result exceeds"
MAX_MESSAGE = 2000
"""Engines quote the value that they cannot read, however long it is."""
_SCALAR = frozenset({bool, int, float, str, type(None)})
_TEXT = frozenset({str})
_LONG = frozenset({str, bytes, bytearray, memoryview})


class TooLarge(Exception):
    """A result that outgrew its row or byte cap while it streamed."""


def first_line(text: str) -> str:
    """Tell what an engine says of a failure, in one line of bounded length."""
    start = text[: 2 * MAX_MESSAGE].strip()
    line = start.splitlines()[0] if start else ""
    return line if len(line) <= MAX_MESSAGE else line[: MAX_MESSAGE - 1] + "…"


def collect(rows: Iterable[Sequence[Any]], max_rows: int, *, batch: int = 1, wide: bool = False) -> tuple[Row, ...]:
    """Gather rows as they come, weighing each about as it lies in memory, and stop at the first cap.

    `batch` is how many rows may come between two looks at the caps: more than one where a row cannot be large.
    `wide` says that integers may go beyond 64 bits.
    """
    kept: list[Any] = []
    size = 0
    kinds: set[type] = set()
    stream = iter(rows)
    while some := list(islice(stream, batch)):
        kept += some
        cells = list(chain.from_iterable(some))
        met = set(map(type, cells))
        kinds |= met
        size += 64 * len(some) + 32 * len(cells)
        # Text counts in characters: close enough for a cap, and much faster than exact sizes.
        if met <= _TEXT:
            size += sum(map(len, cells))
        elif not met.isdisjoint(_LONG):
            size += sum([len(cell) for cell in cells if type(cell) in _LONG])
        if size > MAX_BYTES:
            raise TooLarge(f"{OVER_THE_CAP} {MAX_BYTES} bytes")
        if len(kept) > max_rows:
            raise TooLarge(f"{OVER_THE_CAP} {max_rows} rows")
    scalar = _SCALAR - {int} if wide else _SCALAR
    if kinds <= scalar:
        return tuple(kept)
    return tuple([tuple([cell if type(cell) in scalar else plain(cell) for cell in row]) for row in kept])


def plain(value: Any) -> Cell:
    """A driver's value as a cell: numbers stay numbers, dates become ISO text, binaries x'…', the rest JSON or text."""
    match value:
        case bool():
            cell: Cell = value
        case int():
            cell = value if -(2**63) <= value < 2**64 else _large(value)
        case Decimal():
            whole = value.is_finite() and value.as_tuple().exponent == 0
            cell = plain(int(value)) if whole and value.adjusted() < 40 else _large(value)
        case bytes() | bytearray() | memoryview():
            cell = f"x'{bytes(value).hex()}'"
        case datetime.datetime():
            cell = value.isoformat(sep=" ")
        case datetime.date() | datetime.time():
            cell = value.isoformat()
        case datetime.timedelta():
            cell = _duration(value)
        case list() | tuple() | dict():
            cell = _nested(value)
        case _:
            cell = str(value)
    return cell


def _large(value: int | Decimal) -> float | str:
    """A number beyond 64 bits as a float, as SQLite has it, or as text when it is beyond that too."""
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if math.isinf(number) and (isinstance(value, int) or value.is_finite()):
        return str(Decimal(value))
    return number


def _nested(value: Any) -> str:
    """A list or a mapping as JSON; as Python writes it where JSON has no word for it."""
    try:
        return json.dumps(value, default=plain)
    except (TypeError, ValueError, RecursionError):
        return str(value)


def _duration(value: datetime.timedelta) -> str:
    """A time span as [-]HH:MM:SS, the way SQL writes it."""
    sign = "-" if value < datetime.timedelta() else ""
    span = abs(value)
    minutes, seconds = divmod(span.days * 86_400 + span.seconds, 60)
    fraction = f".{span.microseconds:06d}" if span.microseconds else ""
    return f"{sign}{minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}{fraction}"


def result_digest(execution: Execution | None) -> str:
    """Name a result by its rows in any order; nothing for SQL that gave none."""
    if not isinstance(execution, Rows):
        return ""
    rows = sorted(msgspec.json.encode(row) for row in execution.rows)
    return hashlib.sha256(b"\n".join([str(len(execution.columns)).encode(), *rows])).hexdigest()[:32]
