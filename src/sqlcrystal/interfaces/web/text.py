"""Anybody's text made safe to look at: marks that hide or turn text are spelt, SQL is coloured, cells stay verbatim."""

import math
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from markupsafe import Markup, escape

from sqlcrystal.escaping import visible
from sqlcrystal.types import Cell, Table

CELL_WIDTH = 40
GROUPED_FROM, LEAST, MOST = 10_000, 1e-6, 1e15
_FUNCTIONS = {"count": "Count", "sum": "Sum", "avg": "Average", "min": "Least", "max": "Most"}
_CALL = re.compile(r"(?P<name>count|sum|avg|min|max)\((?P<distinct>distinct\s+)?(?P<of>\*|[\w.\"`]+)\)", re.IGNORECASE)
PHONE_WIDTH = 38
_WORDS = (
    "ALL|AND|ANY|AS|ASC|BETWEEN|BY|CASE|CAST|COLLATE|CROSS|DESC|DISTINCT|ELSE|END|EXCEPT|"
    "EXISTS|FILTER|FROM|FULL|GROUP|HAVING|ILIKE|IN|INNER|INTERSECT|INTO|IS|JOIN|LATERAL|"
    "LEFT|LIKE|LIMIT|NATURAL|NOT|NULL|NULLS|OFFSET|ON|OR|ORDER|OUTER|OVER|PARTITION|RIGHT|"
    "SELECT|THEN|UNION|USING|VALUES|WHEN|WHERE|WINDOW|WITH"
)
_TOKENS = (
    r"(?P<c>--[^\n]*|/\*.*?\*/)|(?P<s>'(?:[^']|'')*')|(?P<q>\"[^\"]*\"|`[^`]*`)|(?P<n>\b\d+(?:\.\d+)?\b)"
    rf"|(?P<k>\b(?:{_WORDS})\b)"
)
_FLAGS = re.IGNORECASE | re.DOTALL
_PLAIN = re.compile(_TOKENS, _FLAGS)
_NAME = re.compile(r"[A-Za-z_]\w*")


def coloured(sql: str, marks: Sequence[str] = ()) -> Markup:
    """SQL as escaped HTML with its keywords, strings, numbers and comments coloured, and some texts marked."""
    text, parts, at = visible(sql), [], 0
    for found in _pattern(marks).finditer(text):
        parts.append(escape(text[at : found.start()]))
        kind = found.lastgroup
        shape = "<mark>{1}</mark>" if kind == "m" else "{1}" if kind == "q" else '<span class="{0}">{1}</span>'
        parts.append(Markup(shape).format(kind, found[0]))
        at = found.end()
    parts.append(escape(text[at:]))
    return Markup("").join(parts)


def with_marks(text: str, marks: Sequence[str]) -> Markup:
    """A text as escaped HTML with some of its parts marked."""
    if not marks:
        return escape(visible(text))
    either = re.compile("|".join(re.escape(visible(mark)) for mark in sorted(marks, key=len, reverse=True)))
    shown, parts, at = visible(text), [], 0
    for found in either.finditer(shown):
        parts += [escape(shown[at : found.start()]), Markup("<mark>{}</mark>").format(found[0])]
        at = found.end()
    return Markup("").join([*parts, escape(shown[at:])])


def _pattern(marks: Sequence[str]) -> re.Pattern[str]:
    if not marks:
        return _PLAIN
    either = "|".join(rf"(?<!\w){re.escape(visible(mark))}(?!\w)" for mark in marks)
    return re.compile(rf"(?P<m>{either})|{_TOKENS}", _FLAGS)


def literals_holding(sql: str, values: Sequence[str]) -> list[str]:
    """The literals of a query that hold one of these values, as they stand in it."""
    wanted = [value.casefold() for value in values]
    literals = [found[0] for found in _PLAIN.finditer(sql) if found.lastgroup in {"s", "n"}]
    return [literal for literal in dict.fromkeys(literals) if any(value in literal.casefold() for value in wanted)]


def complained_of(sql: str, message: str) -> list[str]:
    """The name in a query that an engine's message ends with: what it did not know, or where it stopped."""
    names = set(_NAME.findall(sql))
    found = [name for name in _NAME.findall(message) if name in names and not re.fullmatch(_WORDS, name, re.IGNORECASE)]
    return found[-1:]


class ShownCell(NamedTuple):
    """A cell as the table shows it: what is seen at once, the whole where that was cut, and null, empty or number."""

    text: str
    rest: str = ""
    kind: str = ""
    exact: str = ""
    """A number as the database gave it, where it is shown otherwise."""


def show_cell(value: Cell, *, measure: bool = False) -> ShownCell:
    """Show numbers for people with the exact one beside, NULL and empty as words, texts verbatim; a long one opens."""
    if value is None:
        return ShownCell("NULL", kind="null")
    if isinstance(value, int | float):
        shown = number_words(value, measure=measure)
        return ShownCell(shown, kind="number", exact="" if shown == str(value) else str(value))
    if value == "":
        return ShownCell("empty", kind="empty")
    text = visible(value)
    return ShownCell(text[:CELL_WIDTH], rest=text) if len(text) > CELL_WIDTH else ShownCell(text)


def number_words(value: float, *, measure: bool = True) -> str:
    """Four decimals at most, four digits below one, and thousands apart in measures; an id or year stays as it is."""
    if isinstance(value, bool) or not math.isfinite(value):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}" if measure and abs(value) >= GROUPED_FROM else str(value)
    rounded = round(value, 4) if abs(value) >= 1 else float(f"{value:.4g}")
    if rounded and not LEAST <= abs(rounded) < MOST:
        return f"{value:.4g}"
    if rounded == int(rounded):
        return number_words(int(rounded), measure=measure)
    decimals = len(f"{rounded:.12f}".rstrip("0").partition(".")[2])
    return f"{rounded:,.{decimals}f}" if measure and abs(rounded) >= GROUPED_FROM else f"{rounded:.{decimals}f}"


def heading(column: str) -> str:
    """A column's name in words, where a model left a bare function call: COUNT(*) is a count."""
    found = _CALL.fullmatch(column.strip())
    if found is None:
        return column
    words, of = _FUNCTIONS[found["name"].lower()], found["of"].strip()
    different = "different " if found["distinct"] else ""
    return words if of == "*" else f"{words} of {different}{of.rpartition('.')[2]}"


def pretty_sql(sql: str, dialect: str) -> str:
    """SQL laid out for people; as it is where it cannot be read."""
    from sqlcrystal.databases.parsing import Unparsable, parse, written

    try:
        return written(parse(sql, dialect), dialect, pretty=True)
    except Unparsable:
        return sql


def schema_names(tables: Iterable[Table], *, most: int = 2_000) -> list[str]:
    """Every name of a table or column, each once, tables first: what the editor completes."""
    known = list(tables)
    names = [table.name for table in known] + [column.name for table in known for column in table.columns]
    return list(dict.fromkeys(names))[:most]


def lines_on_phone(sql: str) -> int:
    """About how many lines SQL takes where only forty characters stand side by side."""
    return sum(max(1, -(-len(line) // PHONE_WIDTH)) for line in sql.splitlines())


def filtered_on(sql: str, dialect: str) -> list[str]:
    """The literals of a query's conditions, each once: what a person checks first when nothing came back."""
    from sqlglot import exp

    from sqlcrystal.databases.parsing import Unparsable, grammar, parse

    try:
        query = parse(sql, dialect)
    except Unparsable:
        return []
    found = [
        literal.sql(grammar(dialect))
        for literal in query.find_all(exp.Literal)
        if literal.find_ancestor(exp.Where, exp.Having, exp.Join)
    ]
    return list(dict.fromkeys(found))[:8]
