"""The tables a query reads, and the name of a column of it in words."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from msgspec import Struct
from sqlglot import exp

from sqlcrystal.databases.engines import engine_of
from sqlcrystal.databases.layout import Layout, SchemaKeys, keys_of, layout_of, read_directly
from sqlcrystal.telling.words import plural, singular, words

ALL_ROWS = "rows"
Inner: TypeAlias = Callable[[exp.Expr, "QueryScope"], str]
"""Tells a query within a query."""


class Untold(Exception):
    """Something in a query that no rule speaks of: better no sentence than half of one."""


class Known(Struct, frozen=True):
    """The known facts of the schema that a query reads; without one, names are taken at their word."""

    dialect: str
    layout: Layout = {}
    keys: SchemaKeys = SchemaKeys()

    @classmethod
    def of(cls, schema: str, dialect: str) -> "Known":
        """Read the columns and keys that a schema declares."""
        return cls(dialect, layout_of(schema, dialect), keys_of(schema, dialect)) if schema else cls(dialect)


class RowSource(Struct, frozen=True):
    """A table, or a query in its place, by the name it has in the query."""

    alias: str
    table: str
    """Empty for a query in brackets."""
    noun: str
    """One of its rows."""

    @property
    def many(self) -> str:
        """Its rows."""
        return plural(self.noun)


class Mention(Struct, frozen=True):
    """A filter or a join with the very words that tell it."""

    words: str
    node: exp.Expr
    sources: tuple[RowSource, ...]
    """A filter's, or the only one that a join adds."""


class QueryScope:
    """The sources of one SELECT, within those of the query around it."""

    def __init__(self, select: exp.Select, known: Known, inner: Inner, around: "QueryScope | None" = None) -> None:
        """Name every source; of a table that stands twice, each by its alias."""
        self.select, self.known, self.around = select, known, around
        self.inner = inner
        self.mentions: list[Mention] = [] if around is None else around.mentions
        read = [_source(node) for node in read_directly(select)]
        twice = {source.noun for place, source in enumerate(read) if source.noun in [s.noun for s in read[:place]]}
        self.sources = [
            RowSource(source.alias, source.table, f"{source.noun} {source.alias}") if source.noun in twice else source
            for source in read
        ]
        self.counted = self.subject
        """The rows that a count counts."""

    @property
    def subject(self) -> str:
        """The rows that are read, by the noun of the only table there is."""
        return self.sources[0].many if len(self.sources) == 1 else ALL_ROWS

    def column(self, column: exp.Column) -> str:
        """Name a column: with its table's noun where several are read and the name does not say it."""
        only(column, "this", "table", "db", "catalog")
        if isinstance(column.this, exp.Star):
            return "columns"
        name = words(column.name)
        if not column.table:
            return self._without_noun(name, self.sources[0]) if len(self.sources) == 1 else name
        source, outer = self._found(column.table.lower())
        if source is None:
            return f"{words(column.table)} {name}"
        if outer:
            same = any(own.noun == source.noun for own in self.sources)
            return f"{'outer ' if same else ''}{source.noun} {name}"
        if len(self.sources) == 1:
            return self._without_noun(name, source)
        parts = name.lower().split()
        said = parts[0] in source.noun.lower().split() or source.noun.lower() in name.lower()
        return name if said or (len(parts) > 1 and self._is_alone(column)) else f"{source.noun} {name}"

    def _without_noun(self, name: str, source: RowSource) -> str:
        """Say "name" rather than "singer name" of singers, where no other column is called that."""
        short = name.removeprefix(f"{source.noun} ")
        columns = self.known.layout.get(source.table.lower(), ())
        others = [words(column) for column in columns]
        return short if columns and short not in others and name.count(" ") else name

    def _is_alone(self, column: exp.Column) -> bool:
        """Tell whether no other table that is read has a column of this name."""
        tables = [source.table.lower() for source in self.sources]
        having = [table for table in tables if column.name.lower() in self.known.layout.get(table, ())]
        return len(having) == 1 and all(tables)

    def is_text(self, column: exp.Column) -> bool:
        """Tell whether a name in double quotes is a text here: some engines take one that names no column for that."""
        if not engine_of(self.known.dialect).quoted_names_may_be_text or column.table:
            return False
        if not isinstance(column.this, exp.Identifier) or not column.this.args.get("quoted"):
            return False
        if self.known.layout:
            return not any(column.name.lower() in columns for columns in self.known.layout.values())
        holder = column.parent
        return isinstance(holder, exp.Binary | exp.In | exp.Between) and column.arg_key != "this"

    def _found(self, alias: str) -> tuple[RowSource | None, bool]:
        scope: QueryScope | None = self
        while scope is not None:
            for source in scope.sources:
                if source.alias.lower() == alias:
                    return source, scope is not self
            scope = scope.around
        return None, False


def only(node: exp.Expr, *told: str) -> None:
    """Refuse a node that says more than what a rule tells of it."""
    more = [key for key, value in node.args.items() if value not in (None, False, []) and key not in told]
    if more:
        raise Untold(f"{node.key}: {', '.join(more)}")


def listed(parts: Sequence[str], word: str = "and") -> str:
    """Write a list as people do."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} {word} {parts[-1]}"


def _source(node: exp.Expr) -> RowSource:
    if isinstance(node, exp.Table):
        only(node, "this", "alias", "db", "catalog")
        if not isinstance(node.this, exp.Identifier):
            raise Untold("a function in FROM")
        alias = node.args.get("alias")
        if alias is not None:
            only(alias, "this")
        return RowSource(node.alias_or_name, node.name, singular(words(node.name)))
    if isinstance(node, exp.Subquery):
        only(node, "this", "alias")
        return RowSource(node.alias_or_name, "", words(node.alias) if node.alias else "row")
    raise Untold(f"{node.key} in FROM")
