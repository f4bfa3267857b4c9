"""Which table has which columns, read from the DDL that a database gives of itself."""

from functools import lru_cache
from typing import TypeAlias

from sqlglot import exp

from sqlcrystal.databases.parsing import MAX_SCHEMA, Unparsable, parse_all

Layout: TypeAlias = dict[str, tuple[str, ...]]
"""The columns of every table; usually in lower case, since an unquoted name means the same in any case."""


@lru_cache(maxsize=64)
def layout_of(schema: str, dialect: str) -> Layout:
    """The layout of a schema; empty if its DDL cannot be read."""
    return {
        table.lower(): tuple(column.lower() for column in columns)
        for table, columns in spelled_layout(schema, dialect).items()
    }


@lru_cache(maxsize=64)
def spelled_layout(schema: str, dialect: str) -> Layout:
    """The same with every name as the schema spells it, as it must stand in quotes."""
    try:
        statements = parse_all(schema, dialect, max_characters=MAX_SCHEMA)
    except Unparsable:
        return {}
    return {
        table.name: tuple(column.name for column in made.find_all(exp.ColumnDef))
        for made in statements
        if isinstance(made, exp.Create) and (table := made.find(exp.Table))
    }


def tables_in(query: exp.Expr) -> dict[str, str]:
    """The tables that a query reads, by the name it knows them under."""
    return {table.alias_or_name.lower(): table.name.lower() for table in query.find_all(exp.Table)}


def owner_of(column: exp.Column, tables: dict[str, str], layout: Layout) -> str | None:
    """The table of the query that has the column, if any does."""
    named = [tables.get(column.table.lower(), "")] if column.table else tables.values()
    return next((table for table in named if column.name.lower() in layout.get(table, ())), None)


def homes_of(column: exp.Column, layout: Layout) -> list[str]:
    """Every table of the schema that has a column of this name."""
    return [table for table, columns in layout.items() if column.name.lower() in columns]
