"""PostgreSQL's values as Python has them; as the server writes them where Python has no such value.

Python knows no infinite date, no year before Christ and no 24:00:00, and JSON may be nested deeper than it can read.
"""

from typing import Any

from psycopg.abc import Loader
from psycopg.pq import Format

from sqlcrystal.databases.limits import plain

MAX_PARSED = 1_000_000
"""Longer values stay text: as Python objects, arrays and documents take many times the memory."""
_NAMES = (
    "date time timetz timestamp timestamptz interval numeric json jsonb daterange tsrange tstzrange datemultirange "
    "tsmultirange tstzmultirange numrange nummultirange int4range int8range int4multirange int8multirange inet cidr"
)


_INFINITE = frozenset({b"infinity", b"-infinity"})


def read_leniently(connection: Any) -> None:
    """Let values that Python cannot hold, and long ones, come as text."""
    types = connection.adapters.types
    for name in _NAMES.split():
        info = types.get(name)
        if info is None:
            continue
        for oid in filter(None, (info.oid, info.array_oid)):
            inner = connection.adapters.get_loader(oid, Format.TEXT)
            if inner is not None:
                connection.adapters.register_loader(oid, _lenient(inner))
    for info in types:
        if info.array_oid and info.name not in _NAMES.split():
            inner = connection.adapters.get_loader(info.array_oid, Format.TEXT)
            if inner is not None:
                connection.adapters.register_loader(info.array_oid, _lenient(inner))


def _lenient(inner: type[Loader]) -> type[Loader]:
    """A loader that falls back to the server's own words."""

    class Lenient(Loader):
        format = Format.TEXT

        def __init__(self, oid: int, context: Any = None) -> None:
            self._inner = inner(oid, context)

        def load(self, data: Any) -> Any:
            if len(data) <= MAX_PARSED and bytes(data) not in _INFINITE:
                try:
                    return _storable(self._inner.load(data))
                except Exception:
                    pass
            return bytes(data).decode(errors="replace")

    return Lenient


def _storable(value: Any) -> Any:
    """The value, unless it is text with half a character in it, as JSON can spell, or an integer beyond 64 bits."""
    if isinstance(value, str):
        value.encode()
    return plain(value) if type(value) is int else value
