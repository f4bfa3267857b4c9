"""What a result may weigh, and how rows are gathered within it and turned into plain cells."""

import datetime
import json
from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import chain, islice
from typing import Any

from sqlcrystal.types import Cell, Row

MAX_BYTES = 64 * 2**20
_PLAIN = frozenset({bool, int, float, str, type(None)})
_LONG = frozenset({str, bytes, bytearray, memoryview})
_BATCH = 16
"""Rows between two looks at the caps: what a result may overshoot them by."""


class TooLarge(Exception):
    """A result that outgrew its row or byte cap while it streamed."""


def collect(rows: Iterable[Sequence[Any]], max_rows: int) -> tuple[Row, ...]:
    """Gather rows as they come, weighing each about as it lies in memory, and stop at the first cap."""
    kept: list[Any] = []
    size = 0
    kinds: set[type] = set()
    stream = iter(rows)
    while batch := list(islice(stream, _BATCH)):
        kept += batch
        cells = list(chain.from_iterable(batch))
        kinds.update(map(type, cells))
        # Text counts in characters: close enough for a cap, and much faster than exact sizes.
        size += 64 * len(batch) + 32 * len(cells) + sum([len(cell) for cell in cells if type(cell) in _LONG])
        if size > MAX_BYTES:
            raise TooLarge(f"the result exceeds {MAX_BYTES} bytes")
        if len(kept) > max_rows:
            raise TooLarge(f"the result exceeds {max_rows} rows")
    if kinds <= _PLAIN:
        return tuple(kept)
    return tuple([tuple([cell if type(cell) in _PLAIN else plain(cell) for cell in row]) for row in kept])


def plain(value: Any) -> Cell:
    """A driver's value as a cell: numbers stay numbers, dates become ISO text, binaries x'…', the rest JSON or text."""
    match value:
        case Decimal():
            cell: Cell = int(value) if value.is_finite() and value.as_tuple().exponent == 0 else float(value)
        case bytes() | bytearray() | memoryview():
            cell = f"x'{bytes(value).hex()}'"
        case datetime.datetime():
            cell = value.isoformat(sep=" ")
        case datetime.date() | datetime.time():
            cell = value.isoformat()
        case datetime.timedelta():
            cell = _duration(value)
        case list() | tuple() | dict():
            cell = json.dumps(value, default=plain)
        case _:
            cell = str(value)
    return cell


def _duration(value: datetime.timedelta) -> str:
    """A time span as [-]HH:MM:SS, the way SQL writes it."""
    sign = "-" if value < datetime.timedelta() else ""
    span = abs(value)
    minutes, seconds = divmod(span.days * 86_400 + span.seconds, 60)
    fraction = f".{span.microseconds:06d}" if span.microseconds else ""
    return f"{sign}{minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}{fraction}"
