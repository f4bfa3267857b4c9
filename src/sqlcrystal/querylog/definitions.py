"""Readers of definitions that a team has already: a CSV."""

import csv
import io
from collections.abc import Iterator

from msgspec import Struct

from sqlcrystal.errors import DataError
from sqlcrystal.types import Definition

MOST_ROWS = 10_000
SEPARATOR = ";"
"""Between the synonyms of a term, and between its tables."""
COLUMNS = ("database", "term", "synonyms", "meaning", "sql", "tables")
_OTHER_NAMES = {"description": "meaning", "definition": "meaning", "expression": "sql", "table": "tables"}


class Defined(Struct, frozen=True, kw_only=True):
    """A definition as a file holds it, with its line and, where the file says it, its database."""

    definition: Definition
    line: int
    database: str = ""


def read_definitions(text: str, name: str) -> Iterator[Defined]:
    """Read a table of definitions; a broken one is refused whole, by the line that is wrong."""
    try:
        rows = csv.reader(io.StringIO(text.replace("\0", ""), newline=""), strict=True)
        columns = _columns(next(rows, []), name)
        for count, row in enumerate((row for row in rows if any(cell.strip() for cell in row)), start=1):
            if count > MOST_ROWS:
                raise DataError(f"{name}: more than {MOST_ROWS:,} definitions")
            if len(row) > len(columns):
                raise DataError(f"{name}:{rows.line_num}: more cells than columns")
            cells = dict(zip(columns, (cell.strip() for cell in row), strict=False))
            yield _defined(cells, rows.line_num)
    except csv.Error as error:
        raise DataError(f"{name}: not a table ({error})") from None


def _columns(header: list[str], name: str) -> list[str]:
    plain = [cell.strip().casefold() for cell in header]
    columns = [_OTHER_NAMES.get(cell, cell) for cell in plain]
    for needed in ("term", "sql"):
        if needed not in columns:
            raise DataError(f"{name}: no column {needed!r}; the columns are {', '.join(COLUMNS)}")
    if unknown := [cell for cell in columns if cell not in COLUMNS]:
        raise DataError(f"{name}: unknown column {unknown[0][:40]!r}; choose from {', '.join(COLUMNS)}")
    if len(set(columns)) < len(columns):
        raise DataError(f"{name}: a column stands twice")
    return columns


def _defined(cells: dict[str, str], line: int) -> Defined:
    definition = Definition(
        term=cells.get("term", ""),
        sql=cells.get("sql", ""),
        tables=_several(cells.get("tables", "")),
        synonyms=_several(cells.get("synonyms", "")),
        meaning=cells.get("meaning", ""),
    )
    return Defined(definition=definition, line=line, database=cells.get("database", ""))


def _several(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(SEPARATOR) if part.strip())
