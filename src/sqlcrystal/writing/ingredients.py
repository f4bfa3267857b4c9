"""One ingredient of a verbatim card each: which part of a solved question helps the next one?

The paper leaves open whether it is names, values, joins, the shape of the SQL or the mere form of a prompt with
examples. Each writer here keeps one of them and nothing of the others; the placebo keeps only form and length.
"""

import hashlib
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from itertools import count
from typing import ClassVar

from sqlglot import exp

from sqlcrystal.databases.layout import layout_of, spelled_layout
from sqlcrystal.databases.parsing import grammar
from sqlcrystal.types import Episode
from sqlcrystal.writing.card import (
    CardWriter,
    DatabaseCardWriter,
    Verbatim,
    estimate_tokens,
    fence_sql,
    one_line,
    render_pair,
)
from sqlcrystal.writing.diff import parse, plain

NONE = "(none)"
NAME_MASK, VALUE_MASK = "_", "?"
THINGS = (
    *("harbour", "lantern", "meadow", "violin", "kettle", "glacier", "puppet", "saddle", "cactus", "marble", "falcon"),
    *("biscuit", "compass", "thimble", "anchor", "pebble", "trumpet", "walnut", "ribbon", "canoe", "tunnel", "pillow"),
    *("acorn", "bonnet"),
)
COLOURS = ("amber", "crimson", "ivory", "violet", "teal", "ochre", "scarlet", "umber")


class Ingredient(DatabaseCardWriter):
    """A card of what one look at the solved query's syntax tree finds."""

    def render(self, episode: Episode) -> str:
        """Write the ingredient, or that there is none."""
        tree = parse(episode.sql, self.database.dialect)
        return (self.pick(plain(tree)) if tree is not None else "") or NONE

    def spelled(self, name: str) -> str:
        """Spell a name as the schema does: trees are compared in lower case."""
        layout = spelled_layout(self.database.schema(), self.database.dialect)
        names = (*layout, *(column for columns in layout.values() for column in columns))
        return next((known for known in names if known.lower() == name), name)

    @abstractmethod
    def pick(self, query: exp.Query) -> str:
        """Take the ingredient out of a query whose columns name their tables."""


class Values(Ingredient):
    """The literals that rows are chosen by, each with its column."""

    name: ClassVar[str] = "W0-values"
    header: ClassVar[str] = "[Values in the final SQL of similar solved questions]"
    summary: ClassVar[str] = "the values of the corrected query with their columns"

    def pick(self, query: exp.Query) -> str:
        """Give a line for each column and literal of one comparison."""
        pairs = [
            f"{self.spelled(column.name)}: {literal.sql(grammar(self.database.dialect))}"
            for test in query.find_all(exp.Predicate)
            if (column := next(iter(_of(test, exp.Column)), None))
            for literal in _of(test, exp.Literal)
            if literal.find_ancestor(exp.Func, exp.Predicate) is test
        ]
        return "\n".join(dict.fromkeys(pairs))


class Joins(Ingredient):
    """The conditions that join tables."""

    name: ClassVar[str] = "W0-joins"
    header: ClassVar[str] = "[Joins in the final SQL of similar solved questions]"
    summary: ClassVar[str] = "the joins of the corrected query"

    def pick(self, query: exp.Query) -> str:
        """Give a line for each pair of columns that tables are joined on."""
        pairs = [
            " = ".join(f"{self.spelled(column.table)}.{self.spelled(column.name)}" for column in (left, right))
            for test in query.find_all(exp.EQ, exp.In)
            if isinstance(left := test.this, exp.Column) and isinstance(right := _other_side(test), exp.Column)
            if left.table and right.table and left.table != right.table
        ]
        return "\n".join(dict.fromkeys(pairs))


class Names(Ingredient):
    """The tables and columns that the query reads, in alphabetical order."""

    name: ClassVar[str] = "W0-names"
    header: ClassVar[str] = "[Tables and columns in the final SQL of similar solved questions]"
    summary: ClassVar[str] = "the tables and columns of the corrected query"

    def pick(self, query: exp.Query) -> str:
        """List the tables, then the columns."""
        layout = layout_of(self.database.schema(), self.database.dialect)
        known = {column for columns in layout.values() for column in columns}
        tables = sorted({self.spelled(table.name) for table in query.find_all(exp.Table) if table.name in layout})
        columns = sorted({self.spelled(column.name) for column in query.find_all(exp.Column) if column.name in known})
        return f"Tables: {', '.join(tables)}\nColumns: {', '.join(columns)}"


class Skeleton(Ingredient):
    """The shape of the query: its clauses and functions, names and literals masked."""

    name: ClassVar[str] = "W0-skeleton"
    header: ClassVar[str] = "[Shapes of the final SQL of similar solved questions]"
    summary: ClassVar[str] = "the corrected query, names and values masked"

    def pick(self, query: exp.Query) -> str:
        """Mask every name and every literal of the query."""
        return fence_sql(query.transform(_masked).sql(grammar(self.database.dialect)))


class QuestionOnly(CardWriter):
    """The question without its query."""

    name: ClassVar[str] = "W0-question"
    header: ClassVar[str] = "[Similar solved questions]"
    summary: ClassVar[str] = "the question alone"

    def render(self, episode: Episode) -> str:
        """Write the question."""
        return f"Q: {one_line(episode.question.text)}"


class Placebo(DatabaseCardWriter):
    """A question and a query of the same length about things that the database does not know."""

    name: ClassVar[str] = "W0-placebo"
    header: ClassVar[str] = Verbatim.header
    summary: ClassVar[str] = "a made-up question and query of the same length"

    def render(self, episode: Episode) -> str:
        """Make up a pair, the same for the same episode."""
        schema = self.database.schema().lower()
        things = _draw([word for word in THINGS if word not in schema], episode)
        colours = _draw(COLOURS, episode)
        question = f"Which {next(things)} has {next(colours)} {next(things)}"
        while estimate_tokens(question) < estimate_tokens(one_line(episode.question.text)) - 1:
            question += f" and {next(colours)} {next(things)}"
        sql = f"SELECT {next(things)} FROM {next(things)} WHERE {next(things)} = '{next(colours)}'"
        while estimate_tokens(sql) < estimate_tokens(episode.sql) - 3:
            sql += f" AND {next(things)} = '{next(colours)}'"
        return render_pair(f"{question}?", sql)


def _of(test: exp.Expr, kind: type[exp.Column] | type[exp.Literal]) -> Iterator[exp.Expr]:
    """Find the columns or literals of one comparison, without those of a query or comparison inside it."""
    return (node for node in test.find_all(kind) if node.find_ancestor(exp.Predicate, exp.Select) is test)


def _other_side(test: exp.Expr) -> exp.Expr | None:
    """Give the right side of an equality, or the column that a query inside IN gives."""
    if isinstance(test, exp.EQ):
        right: exp.Expr = test.expression
        return right
    inner = test.args.get("query")
    select = inner.find(exp.Select) if isinstance(inner, exp.Expr) else None
    chosen: list[exp.Expr] = select.selects if select is not None else []
    return chosen[0] if len(chosen) == 1 else None


def _masked(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
        return exp.column(NAME_MASK)
    if isinstance(node, exp.Table):
        return exp.to_table(NAME_MASK)
    if isinstance(node, exp.Identifier):
        return exp.to_identifier(NAME_MASK)
    return exp.Var(this=VALUE_MASK) if isinstance(node, exp.Literal) else node


def _draw(words: Sequence[str], episode: Episode) -> Iterator[str]:
    """Draw words in an order that the episode decides."""
    seed = f"{episode.question.database}\0{episode.question.id}"
    for number in count():
        yield words[int.from_bytes(hashlib.sha256(f"{seed}\0{number}".encode()).digest()[:4], "big") % len(words)]
