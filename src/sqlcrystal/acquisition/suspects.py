"""The columns a wrong query leans on, as probes that would show what they really hold."""

from collections.abc import Iterator

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlcrystal.solving.dialect import grammar

MOST_SUSPECTS = 3


def suspect_probes(sql: str | None, dialect: str) -> tuple[str, ...]:
    """One probe per column that the query compares with a value, calculates with or sorts by, filters first."""
    try:
        query = sqlglot.parse_one(sql or "", dialect=grammar(dialect))
    except SqlglotError:
        return ()
    tables = {table.alias_or_name: table.name for table in query.find_all(exp.Table)}
    probes = [
        f"SELECT DISTINCT {column.this.sql(dialect=grammar(dialect))} FROM {table}"
        for column in _suspects(query)
        if (table := _table_of(column, tables))
    ]
    return tuple(dict.fromkeys(probes))[:MOST_SUSPECTS]


def _suspects(query: exp.Expr) -> Iterator[exp.Column]:
    """Columns beside a literal first, then those inside a function or an ORDER BY; join keys are no suspects."""
    for predicate in query.find_all(exp.Predicate):
        if predicate.find(exp.Literal, exp.Null):
            yield from predicate.find_all(exp.Column)
    for node in query.find_all(exp.AggFunc, exp.Ordered, exp.Binary):
        if not isinstance(node, exp.Predicate | exp.Connector):
            yield from node.find_all(exp.Column)


def _table_of(column: exp.Column, tables: dict[str, str]) -> str | None:
    """The table a column belongs to, as far as the query says."""
    if column.table:
        return tables.get(column.table)
    return next(iter(tables.values())) if len(tables) == 1 else None
