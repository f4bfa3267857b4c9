"""Readers of definitions that a team has already: a CSV, the words of a dbt project, the comments of a schema."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from sqlcrystal.errors import DataError
from sqlcrystal.querylog.readers import PROJECT, files_of, listed, model_places, model_tables, read_file, yaml_of
from sqlcrystal.types import Definition, Table

MOST_ROWS = 10_000
SEPARATOR = ";"
"""Between the synonyms of a term, and between its tables."""
COLUMNS = ("database", "term", "synonyms", "meaning", "sql", "tables")
_FORMULA = frozenset("=+-@\t")
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


def write_definitions(rows: Iterable[tuple[str, Definition]]) -> str:
    """Write definitions, each with its database, as a table that `read_definitions` reads as it was.

    A cell that a spreadsheet would take for a formula begins with a space, which the reader drops.
    """
    out = io.StringIO(newline="")
    table = csv.writer(out, lineterminator="\n")
    table.writerow(COLUMNS)
    for database, each in rows:
        several = (f"{SEPARATOR} ".join(each.synonyms), each.meaning, each.sql, f"{SEPARATOR} ".join(each.tables))
        table.writerow([f" {cell}" if cell[:1] in _FORMULA else cell for cell in (database, each.term, *several)])
    return out.getvalue()


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


# ── words beside columns ─────────────────────────────────────────────────────────────────────────────────────────────

_CODE = r"['\"`]?(?P<code>[A-Za-z0-9_.+-]{1,12})['\"`]?"
_WORDS = r"\s*(?P<words>[^,;.|()\n]+)"
_TOLD = re.compile(rf"(?<![\w-]){_CODE}\s*(?:=>?|->|→|\bmeans\b|\bis for\b){_WORDS}")
"""A code and its words, as in `A = active, S = suspended`."""
_LISTED = re.compile(rf"(?<![\w-]){_CODE}\s*:{_WORDS}")
"""The same behind a colon, which also stands where prose begins a list: so only where nothing else tells codes."""
_IDENTIFIER = re.compile(r"(?:^|_)(?:id|key|pk|fk|uuid)$", re.IGNORECASE)
MOST_WORDS = 5
LONGEST_MEANING = 300


def told_of_column(table: str, column: str, words: str, accepted: Iterable[object] = ()) -> Iterator[Definition]:
    """Give a definition for each code whose words are told; where none is, one of the column itself."""
    values = [value for value in accepted if isinstance(value, str | int | float)]
    codes = {str(value): value for value in values}
    told = [*(list(_TOLD.finditer(words)) or _LISTED.finditer(words)), *_in_a_row(words, codes)]
    meant = {found["code"]: " ".join(found["words"].split()) for found in told if not codes or found["code"] in codes}
    kept = {code: said for code, said in meant.items() if 0 < len(said.split()) <= MOST_WORDS}
    if kept and (codes or len(kept) > 1):
        for code, said in kept.items():
            yield Definition(term=said, sql=f"{table}.{column} = {_literal(codes.get(code, code))}", tables=(table,))
    elif words.strip() and not _IDENTIFIER.search(column):
        one_of = f"; one of {', '.join(map(str, values))}" if values else ""
        meaning = f"{' '.join(words.split())}{one_of}"[:LONGEST_MEANING]
        term = " ".join(re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", column)).casefold() or column
        yield Definition(term=term, sql=f"{table}.{column}", tables=(table,), meaning=meaning)


def _in_a_row(words: str, codes: Mapping[str, object]) -> Iterator[re.Match[str]]:
    """Find accepted values with their words right behind or in brackets: `C completed, N (no-show)`."""
    for code in codes:
        found = re.search(rf"(?<![\w-])(?P<code>{re.escape(code)})\s+\(?(?P<words>[^,;.|()=:\n]+)", words)
        if found:
            yield found


def _literal(value: object) -> str:
    return str(value) if isinstance(value, int | float) else "'" + str(value).replace("'", "''") + "'"


def comment_definitions(tables: Iterable[Table]) -> Iterator[tuple[str, Definition]]:
    """Read what the owner of a database wrote beside its columns; each with its place."""
    for table in tables:
        for column in table.columns:
            for definition in told_of_column(table.name, column.name, column.comment):
                yield f"{table.name}.{column.name}", definition


def dbt_definitions(folder: Path) -> Iterator[tuple[str, Definition]]:
    """Read the descriptions and accepted values of a dbt project's columns; each with its file."""
    if not (folder / PROJECT).is_file():
        raise DataError(f"{folder}: no {PROJECT} there")
    places = model_places(yaml_of(folder / PROJECT))
    made = model_tables({file: read_file(file) for file in files_of(folder, places, ".sql")})
    for suffix in (".yml", ".yaml"):
        for file in files_of(folder, places, suffix):
            for table, node in _described(yaml_of(file), made):
                for column in listed(node.get("columns")):
                    words, accepted = str(column.get("description") or ""), list(_accepted(column))
                    for definition in told_of_column(table, str(column.get("name", "")), words, accepted):
                        yield str(file.relative_to(folder)), definition


def _described(document: Mapping[str, object], made: Mapping[str, str]) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Give each model and each table of a source with the name that it has in the database."""
    for kind in ("models", "seeds", "snapshots"):
        for model in listed(document.get(kind)):
            name = str(model.get("name", ""))
            yield made.get(name, name), model
    for source in listed(document.get("sources")):
        for table in listed(source.get("tables")):
            yield str(table.get("identifier") or table.get("name", "")), table


def _accepted(column: Mapping[str, object]) -> Iterator[object]:
    for test in (*listed(column.get("tests")), *listed(column.get("data_tests"))):
        given = test.get("accepted_values")
        if isinstance(given, Mapping):
            arguments = given.get("arguments")
            values = (arguments if isinstance(arguments, Mapping) else given).get("values")
            yield from values if isinstance(values, list) else ()
