"""The common part of every engine's description of its tables."""

import re
from collections.abc import Iterable

from msgspec.structs import replace

from sqlcrystal.types import Table

_WORD = re.compile(r"\w+")


def with_views(tables: Iterable[Table]) -> tuple[Table, ...]:
    """Give the tables, each view with the tables its definition names."""
    described = list(tables)
    names = {table.name.lower(): table.name for table in described if table.kind != "type"}
    for place, table in enumerate(described):
        if table.kind == "view":
            words = dict.fromkeys(word.lower() for word in _WORD.findall(table.definition))
            named = tuple(names[word] for word in words if word in names and names[word] != table.name)
            described[place] = replace(table, references=named)
    return tuple(described)
