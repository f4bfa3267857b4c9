"""Anybody's text made safe to look at: marks that hide or turn text are spelt, SQL is coloured, cells stay verbatim."""

import re
from difflib import SequenceMatcher
from typing import NamedTuple

from markupsafe import Markup, escape

from sqlcrystal.outgoing import visible
from sqlcrystal.types import Cell

CELL_WIDTH = 40
_WORDS = (
    "ALL|AND|ANY|AS|ASC|BETWEEN|BY|CASE|CAST|COLLATE|CROSS|DESC|DISTINCT|ELSE|END|EXCEPT|"
    "EXISTS|FILTER|FROM|FULL|GROUP|HAVING|ILIKE|IN|INNER|INTERSECT|INTO|IS|JOIN|LATERAL|"
    "LEFT|LIKE|LIMIT|NATURAL|NOT|NULL|NULLS|OFFSET|ON|OR|ORDER|OUTER|OVER|PARTITION|RIGHT|"
    "SELECT|THEN|UNION|USING|VALUES|WHEN|WHERE|WINDOW|WITH"
)
_TOKENS = re.compile(
    r"(?P<c>--[^\n]*|/\*.*?\*/)|(?P<s>'(?:[^']|'')*')|(?P<q>\"[^\"]*\"|`[^`]*`)|(?P<n>\b\d+(?:\.\d+)?\b)"
    rf"|(?P<k>\b(?:{_WORDS})\b)",
    re.IGNORECASE | re.DOTALL,
)


def coloured(sql: str) -> Markup:
    """SQL as escaped HTML with its keywords, strings, numbers and comments marked."""
    text, parts, at = visible(sql), [], 0
    for found in _TOKENS.finditer(text):
        parts.append(escape(text[at : found.start()]))
        kind = found.lastgroup
        parts.append(escape(found[0]) if kind == "q" else Markup('<span class="{}">{}</span>').format(kind, found[0]))
        at = found.end()
    parts.append(escape(text[at:]))
    return Markup("").join(parts)


class ShownCell(NamedTuple):
    """A cell as the table shows it: what is seen at once, the whole where that was cut, and null, empty or number."""

    text: str
    rest: str = ""
    kind: str = ""


def show_cell(value: Cell) -> ShownCell:
    """Verbatim: no rounding, no separators; NULL and empty are words, a long text opens."""
    if value is None:
        return ShownCell("NULL", kind="null")
    if isinstance(value, int | float):
        return ShownCell(str(value), kind="number")
    if value == "":
        return ShownCell("empty", kind="empty")
    text = visible(value)
    return ShownCell(text[:CELL_WIDTH], rest=text) if len(text) > CELL_WIDTH else ShownCell(text)


class DiffLine(NamedTuple):
    """One line of a diff: its class, its sign, what a screen reader says, and the text."""

    kind: str
    sign: str
    spoken: str
    text: str


def changed_lines(before: str, after: str) -> list[DiffLine]:
    """A unified diff of two texts, whole."""
    old, new = visible(before).splitlines(), visible(after).splitlines()
    lines: list[DiffLine] = []
    for tag, start, end, new_start, new_end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            lines += [DiffLine("same", "", "", line) for line in old[start:end]]
            continue
        lines += [DiffLine("del", "-", "removed: ", line) for line in old[start:end]]
        lines += [DiffLine("add", "+", "added: ", line) for line in new[new_start:new_end]]
    return lines


def pretty_sql(sql: str, dialect: str) -> str:
    """SQL laid out for people; as it is where it cannot be read."""
    from sqlcrystal.databases.parsing import Unparsable, grammar, parse

    try:
        return parse(sql, dialect).sql(grammar(dialect), pretty=True)
    except Unparsable:
        return sql


def short_literals(sql: str) -> list[str]:
    """The text literals of a query, each once: what a person checks first when nothing came back."""
    return list(dict.fromkeys(found[0] for found in _TOKENS.finditer(sql) if found.lastgroup == "s"))[:8]
