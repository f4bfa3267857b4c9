"""Tables with their columns and keys, read from the DDL of a database; which of them a query's column means."""

from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from sqlglot import exp

from sqlcrystal.databases.parsing import MAX_SCHEMA, Unparsable, parse_all

Layout: TypeAlias = dict[str, tuple[str, ...]]
"""The columns of every table; usually in lower case, since an unquoted name means the same in any case."""


class ForeignKey(NamedTuple):
    """A column that refers to a column of another table, all as the schema spells them."""

    table: str
    column: str
    other: str
    other_column: str

    def __str__(self) -> str:
        """Write the condition that joins the two tables."""
        return f"{self.table}.{self.column} = {self.other}.{self.other_column}"


class SchemaKeys(NamedTuple):
    """The declared keys of a schema: columns of primary keys as (table, column), and every foreign key."""

    primary: frozenset[tuple[str, str]] = frozenset()
    foreign: tuple[ForeignKey, ...] = ()

    @property
    def columns(self) -> frozenset[tuple[str, str]]:
        """Every column that is part of a key, in lower case."""
        named = {*self.primary, *((key.table, key.column) for key in self.foreign)}
        return frozenset((table.lower(), column.lower()) for table, column in named)


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
    return {
        name: tuple(column.name for column in made.find_all(exp.ColumnDef)) for name, made in _created(schema, dialect)
    }


@lru_cache(maxsize=64)
def keys_of(schema: str, dialect: str) -> SchemaKeys:
    """Read the keys of a schema, declared with a column or the table; a reference without a column means the key."""
    primary: dict[str, list[str]] = {}
    references: list[tuple[str, list[str], str, list[str]]] = []
    for table, made in _created(schema, dialect):
        for column in made.find_all(exp.ColumnDef):
            if column.find(exp.PrimaryKeyColumnConstraint):
                primary.setdefault(table, []).append(column.name)
            if reference := column.find(exp.Reference):
                references.append((table, [column.name], *_target(reference)))
        for key in made.find_all(exp.PrimaryKey):
            primary.setdefault(table, []).extend(_column_names(key.expressions))
        references.extend(
            (table, _column_names(foreign.expressions), *_target(reference))
            for foreign in made.find_all(exp.ForeignKey)
            if isinstance(reference := foreign.args.get("reference"), exp.Reference)
        )
    by_lower = {table.lower(): columns for table, columns in primary.items()}
    return SchemaKeys(
        frozenset((table, column) for table, columns in primary.items() for column in columns),
        tuple(
            ForeignKey(table, column, other, target)
            for table, columns, other, named in references
            for column, target in zip(columns, named or by_lower.get(other.lower(), []), strict=False)
        ),
    )


def join_path(starts: list[str], goal: str, keys: SchemaKeys) -> list[ForeignKey]:
    """Find the fewest foreign keys that lead from any of the tables to another; none where there is no way."""
    reached: dict[str, list[ForeignKey]] = {table.lower(): [] for table in starts}
    waiting = deque(reached)
    while waiting:
        table = waiting.popleft()
        if table == goal.lower():
            return reached[table]
        for key in keys.foreign:
            ends = (key.table.lower(), key.other.lower())
            if table in ends and (other := ends[1 - ends.index(table)]) not in reached:
                reached[other] = [*reached[table], key]
                waiting.append(other)
    return []


def owner_of(column: exp.Column, layout: Layout) -> str | None:
    """Find the table that a column of a query belongs to; None where none in its reach has it, or it is not known."""
    return next((table for table in read_around(column) or () if column.name.lower() in layout.get(table, ())), None)


def read_around(column: exp.Column) -> list[str] | None:
    """List the tables that a column may belong to, the innermost query's first; None where one is a query itself."""
    tables: list[str] = []
    for select in _selects_around(column):
        sources = _sources(select)
        if column.table:
            if column.table.lower() in sources:
                named = sources[column.table.lower()]
                return None if named is None else [named]
            continue
        for table in sources.values():
            if table is None:
                return None
            tables.append(table)
    return tables


def homes_of(column: exp.Column, layout: Layout) -> list[str]:
    """Every table of the schema that has a column of this name."""
    return [table for table, columns in layout.items() if column.name.lower() in columns]


def from_clause(select: exp.Expr) -> exp.From | None:
    """Give the FROM of a select."""
    clause = select.args.get("from_")
    return clause if isinstance(clause, exp.From) else None


def read_directly(select: exp.Expr) -> list[exp.Expr]:
    """List the tables and subqueries in a select's own FROM and joins."""
    start = from_clause(select)
    return [*([start.this] if start else []), *(join.this for join in select.args.get("joins") or [])]


def _created(schema: str, dialect: str) -> list[tuple[str, exp.Create]]:
    """Read every table that a schema creates, by name; none if the DDL cannot be read."""
    try:
        statements = parse_all(schema, dialect, max_characters=MAX_SCHEMA)
    except Unparsable:
        return []
    return [
        (table.name, made) for made in statements if isinstance(made, exp.Create) and (table := made.find(exp.Table))
    ]


def _target(reference: exp.Reference) -> tuple[str, list[str]]:
    """Read the table that a reference names, and the columns if it names any."""
    named = reference.this
    table = named.find(exp.Table)
    columns = _column_names(named.expressions) if isinstance(named, exp.Schema) else []
    return (table.name if table else named.name), columns


def _column_names(nodes: list[exp.Expr]) -> list[str]:
    return [identifier.name for node in nodes if (identifier := node.find(exp.Identifier))]


def _selects_around(column: exp.Column) -> Iterator[exp.Select]:
    select = column.find_ancestor(exp.Select)
    while select is not None:
        yield select
        select = select.find_ancestor(exp.Select)


def _sources(select: exp.Select) -> dict[str, str | None]:
    """Map names in the query to tables, in lower case; None for a subquery or a common table expression."""
    defined = {cte.alias.lower() for cte in select.root().find_all(exp.CTE)}
    return {
        source.alias_or_name.lower(): source.name.lower()
        if isinstance(source, exp.Table) and source.name.lower() not in defined
        else None
        for source in read_directly(select)
    }
