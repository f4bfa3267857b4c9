"""Values for parameters that a log left out: a query that compares a column gets the value the column holds most."""

from sqlglot import exp

from sqlcrystal.databases.layout import layout_of, owner_of
from sqlcrystal.databases.parsing import Unparsable, grammar, parse, written
from sqlcrystal.protocols import Database
from sqlcrystal.types import Cell, Failure

ROWS_WANTED = 10
"""The value of a bound LIMIT."""
SECONDS_TO_LOOK = 5.0
_OUTSIDE = (exp.Placeholder, exp.Parameter, exp.SessionParameter)


def with_values(sql: str, database: Database) -> str | None:
    """Write the query with values its columns hold; None where one of its parameters is compared with no column."""
    try:
        query = parse(sql, database.dialect)
        layout = layout_of(database.schema(), database.dialect)
        for node in list(query.find_all(*_OUTSIDE)):
            value = _limit(node) or _held(node, database, layout)
            if value is None:
                return None
            node.replace(value)
        return written(query, database.dialect, comments=False)
    except Unparsable:
        return None


def _limit(node: exp.Expr) -> exp.Expr | None:
    if isinstance(node.parent, exp.Offset):
        return exp.Literal.number(0)
    return exp.Literal.number(ROWS_WANTED) if isinstance(node.parent, exp.Limit | exp.Fetch) else None


def _held(node: exp.Expr, database: Database, layout: dict[str, tuple[str, ...]]) -> exp.Expr | None:
    """Give the commonest value of the column that a parameter is compared with."""
    test = node.parent
    if not isinstance(test, exp.EQ | exp.NEQ | exp.GT | exp.GTE | exp.LT | exp.LTE | exp.In | exp.Between | exp.Like):
        return None
    column = next((side for side in test.iter_expressions() if isinstance(side, exp.Column)), None)
    owner = owner_of(column, layout) if column is not None else None
    if column is None or owner is None:
        return None
    named = exp.column(column.this.copy())
    look = exp.select(named).from_(exp.to_identifier(owner)).where(named.copy().is_(exp.null()).not_())
    look = look.group_by(named.copy()).order_by(exp.Count(this=exp.Star()).desc(), named.copy()).limit(1)
    result = database.execute(look.sql(grammar(database.dialect)), timeout=SECONDS_TO_LOOK)
    return None if isinstance(result, Failure) or not result.rows else _literal(result.rows[0][0])


def _literal(value: Cell) -> exp.Expr:
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    return exp.Literal.number(value) if isinstance(value, int | float) else exp.Literal.string(str(value))
