"""What a wrong query leans on: columns whose real values should be looked at, and columns that stand elsewhere."""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from sqlglot import exp

from sqlcrystal.databases.parsing import MAX_SCHEMA, Unparsable, grammar, parse, parse_all

MOST_SUSPECTS = 4
Layout = dict[str, tuple[str, ...]]
"""The columns of every table, in lower case: an unquoted name means the same in any case."""


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
    layout = _layout(schema, dialect)
    tables = {table.alias_or_name.lower(): table.name.lower() for table in query.find_all(exp.Table)}
    probes = [
        exp.select(exp.to_identifier(column.name)).distinct().from_(exp.to_identifier(owner)).sql(grammar(dialect))
        for column in _leant_on(query)
        if (owner := _owner(column, tables, layout) or next(iter(_homes(column, layout)), None))
    ]
    misplaced = [
        f"{column.name} is a column of {', '.join(_homes(column, layout))}, not of {table}."
        for column in query.find_all(exp.Column)
        if (table := tables.get(column.table.lower(), "") or _only(tables)) in layout
        and not _owner(column, tables, layout)
        and _homes(column, layout)
    ]
    return Suspects(tuple(dict.fromkeys(probes))[:MOST_SUSPECTS], tuple(dict.fromkeys(misplaced)))


@lru_cache(maxsize=64)
def _layout(schema: str, dialect: str) -> Layout:
    try:
        statements = parse_all(schema, dialect, max_characters=MAX_SCHEMA)
    except Unparsable:
        return {}
    return {
        table.name.lower(): tuple(column.name.lower() for column in made.find_all(exp.ColumnDef))
        for made in statements
        if isinstance(made, exp.Create) and (table := made.find(exp.Table))
    }


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


def _owner(column: exp.Column, tables: dict[str, str], layout: Layout) -> str | None:
    """The table of the query that has the column, if any does."""
    named = [tables.get(column.table.lower(), "")] if column.table else tables.values()
    return next((table for table in named if column.name.lower() in layout.get(table, ())), None)


def _homes(column: exp.Column, layout: Layout) -> list[str]:
    return [table for table, columns in layout.items() if column.name.lower() in columns]


def _only(tables: dict[str, str]) -> str:
    return next(iter(tables.values())) if len(tables) == 1 else ""
