"""The parts of a wrong query to doubt: columns whose values should be looked at, and columns that stand elsewhere."""

from collections.abc import Iterator
from difflib import get_close_matches
from typing import NamedTuple

from sqlglot import exp

from sqlcrystal.databases.layout import Layout, homes_of, join_path, keys_of, layout_of, owner_of, read_around
from sqlcrystal.databases.parsing import Unparsable, grammar, parse

MOST_SUSPECTS = 4
MOST_NEAR = 3


class Suspects(NamedTuple):
    """Probes that would show what the columns hold, and a sentence for each column the query looks for in vain."""

    probes: tuple[str, ...] = ()
    misplaced: tuple[str, ...] = ()


def suspects(sql: str | None, schema: str, dialect: str) -> Suspects:
    """The columns that a query compares with a value, calculates with or sorts by, filters first."""
    try:
        query = parse(sql or "", dialect)
    except Unparsable:
        return Suspects()
    layout = layout_of(schema, dialect)
    probes = [
        exp.select(exp.to_identifier(column.name)).distinct().from_(exp.to_identifier(owner)).sql(grammar(dialect))
        for column in _leant_on(query)
        if (owner := owner_of(column, layout) or next(iter(homes_of(column, layout)), None))
    ]
    sentences = dict.fromkeys(_misplaced(query, schema, dialect))
    return Suspects(tuple(dict.fromkeys(probes))[:MOST_SUSPECTS], tuple(sentences))


def _misplaced(query: exp.Expr, schema: str, dialect: str) -> Iterator[str]:
    """Tell where each column that no table in its reach has stands and how to join that, or which names are near."""
    layout = layout_of(schema, dialect)
    named_here = {alias.alias.lower() for alias in query.find_all(exp.Alias)}
    for column in query.find_all(exp.Column):
        reach = read_around(column)
        readable = reach is not None and bool(reach) and all(table in layout for table in reach)
        if not readable or reach is None or owner_of(column, layout) or isinstance(column.this, exp.Star):
            continue
        if homes := homes_of(column, layout):
            owners, way = ", ".join(homes), _way(query, homes, schema, dialect)
            yield f"{column.name} is a column of {owners}, not of {' or '.join(reach)}{way}."
        elif not column.this.quoted and column.name.lower() not in named_here:  # in quotes SQLite takes it as a text
            yield f"No table has a column {column.name}{_near(column.name, layout)}."


def _way(query: exp.Expr, homes: list[str], schema: str, dialect: str) -> str:
    """Name the keys that join the nearest table with the column to those that are read, if it is not among them."""
    read = list(dict.fromkeys(table.name.lower() for table in query.find_all(exp.Table)))
    if any(home in read for home in homes):
        return ""
    paths = [path for home in homes if (path := join_path(read, home, keys_of(schema, dialect)))]
    shortest = sorted(paths, key=len)[:1]
    return "".join(": join it ON " + " AND ".join(map(str, path)) for path in shortest)


def _near(name: str, layout: Layout) -> str:
    """Find the columns whose names are most like this one."""
    by_column: dict[str, list[str]] = {}
    for table, columns in layout.items():
        for column in columns:
            by_column.setdefault(column, []).append(f"{table}.{column}")
    near = [place for match in get_close_matches(name.lower(), by_column, n=MOST_NEAR) for place in by_column[match]]
    return f"; there is {', '.join(near[:MOST_NEAR])}" if near else ""


def _leant_on(query: exp.Expr) -> Iterator[exp.Column]:
    """Columns beside a literal, then those calculated with or sorted by; join keys and counts are no suspects."""
    for predicate in query.find_all(exp.Predicate):
        if any(_beside(predicate, value) for value in predicate.find_all(exp.Literal, exp.Null)):
            yield from (column for column in predicate.find_all(exp.Column) if _beside(predicate, column))
    for node in query.find_all(exp.AggFunc, exp.Ordered, exp.Binary):
        if not isinstance(node, exp.Predicate | exp.Connector | exp.Count):
            yield from node.find_all(exp.Column)


def _beside(predicate: exp.Expr, node: exp.Expr) -> bool:
    """Whether the node belongs to this comparison and not to one inside a subquery of it."""
    return node.find_ancestor(exp.Predicate) is predicate
