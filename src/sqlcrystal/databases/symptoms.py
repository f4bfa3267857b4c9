"""Signs by which the engine shows a query that is probably wrong: they need neither gold nor a person.

An error, no rows, nothing but NULL or zero, or a literal that its column does not hold. A right answer may be empty,
and a wrong one may show nothing at all, so a symptom is a reason to look again, never a verdict.
"""

from collections.abc import Iterator
from typing import NamedTuple

from sqlglot import exp

from sqlcrystal.databases.layout import layout_of, owner_of
from sqlcrystal.databases.parsing import Unparsable, grammar, parse
from sqlcrystal.protocols import Database
from sqlcrystal.types import Execution, Failure

SECONDS_TO_LOOK = 5.0


def symptoms(sql: str | None, database: Database) -> tuple[str, ...]:
    """A sentence for each symptom; none for a query that looks sound."""
    if sql is None:
        return ("There is no SQL.",)
    execution = database.execute(sql)
    shown = shown_by_the_result(execution)
    if isinstance(execution, Failure):
        return shown
    return (*shown, *strange_values(sql, database))


def shown_by_the_result(execution: Execution) -> tuple[str, ...]:
    """A sentence for each symptom that the result alone shows, to anybody who looks at it."""
    if isinstance(execution, Failure):
        return (f"It fails: {execution.message}",)
    if not execution.rows:
        return ("It returns no rows.",)
    if all(cell is None or cell == 0 for row in execution.rows for cell in row):
        return ("It returns nothing but NULL or zero.",)
    return ()


class StrangeLiteral(NamedTuple):
    """A value that a query compares a column with for equality, and the column of this table never holds."""

    table: str
    column: exp.Column
    literal: exp.Literal

    def sentence(self, dialect: str) -> str:
        """Say so."""
        return f"{self.table}.{self.column.name} never holds {self.literal.sql(grammar(dialect))}."


def strange_values(sql: str, database: Database) -> Iterator[str]:
    """Write a sentence for each value that a query looks for in vain."""
    try:
        query = parse(sql, database.dialect)
    except Unparsable:
        return
    yield from (strange.sentence(database.dialect) for strange in strange_literals(query, database))


def strange_literals(query: exp.Expr, database: Database) -> Iterator[StrangeLiteral]:
    """Find the values that a query looks for in vain, as nodes of its tree."""
    layout = layout_of(database.schema(), database.dialect)
    for column, literal in dict.fromkeys(_equalities(query)):
        owner = owner_of(column, layout)
        if owner is not None and not _holds(database, owner, column, literal):
            yield StrangeLiteral(owner, column, literal)


def _equalities(query: exp.Expr) -> Iterator[tuple[exp.Column, exp.Literal]]:
    """Find bare columns with the literals they must equal: not those of NOT IN, nor expressions over columns."""
    for node in query.find_all(exp.EQ, exp.In):
        if _is_negated(node):
            continue
        column, values = node.this, node.expressions if isinstance(node, exp.In) else [node.expression]
        if isinstance(column, exp.Literal) and isinstance(node, exp.EQ):
            column, values = node.expression, [node.this]
        if isinstance(column, exp.Column):
            yield from ((column, value) for value in values if isinstance(value, exp.Literal))


def _is_negated(node: exp.Expr) -> bool:
    """Tell whether a NOT of the same query stands above a test, which then asks for the values that are left."""
    above = node.find_ancestor(exp.Not, exp.Select)
    return isinstance(above, exp.Not)


def _holds(database: Database, table: str, column: exp.Column, literal: exp.Literal) -> bool:
    """Tell whether some row has the value; a look that fails or takes too long shows nothing, and accuses nobody."""
    look = exp.select("1").from_(exp.to_identifier(table)).where(exp.column(column.this.copy()).eq(literal.copy()))
    answer = database.execute(look.limit(1).sql(grammar(database.dialect)), timeout=SECONDS_TO_LOOK, max_rows=1)
    return isinstance(answer, Failure) or bool(answer.rows)
