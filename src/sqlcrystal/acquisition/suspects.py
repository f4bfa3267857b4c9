"""What a wrong query leans on: columns whose real values should be looked at, and columns that stand elsewhere."""

from collections.abc import Iterator
from typing import NamedTuple

from sqlglot import exp

from sqlcrystal.databases.layout import homes_of, layout_of, owner_of, tables_in
from sqlcrystal.databases.parsing import Unparsable, grammar, parse

MOST_SUSPECTS = 4


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
    layout, tables = layout_of(schema, dialect), tables_in(query)
    probes = [
        exp.select(exp.to_identifier(column.name)).distinct().from_(exp.to_identifier(owner)).sql(grammar(dialect))
        for column in _leant_on(query)
        if (owner := owner_of(column, tables, layout) or next(iter(homes_of(column, layout)), None))
    ]
    misplaced = [
        f"{column.name} is a column of {', '.join(homes_of(column, layout))}, not of {table}."
        for column in query.find_all(exp.Column)
        if (table := tables.get(column.table.lower(), "") or _only(tables)) in layout
        and not owner_of(column, tables, layout)
        and homes_of(column, layout)
    ]
    return Suspects(tuple(dict.fromkeys(probes))[:MOST_SUSPECTS], tuple(dict.fromkeys(misplaced)))


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


def _only(tables: dict[str, str]) -> str:
    return next(iter(tables.values())) if len(tables) == 1 else ""
