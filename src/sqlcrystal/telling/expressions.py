"""The SQL expression of a definition: read as one, given its tables, and asked for to see that it runs."""

from collections.abc import Iterable

from sqlglot import exp

from sqlcrystal.databases.layout import Layout
from sqlcrystal.databases.parsing import Unparsable, language, parse, parse_all, tokenize, written
from sqlcrystal.errors import UserError
from sqlcrystal.types import Definition

_OUTSIDE = (exp.Placeholder, exp.Parameter, exp.SessionParameter)


_ONE = "sql: give one expression, such as status = 'A' AND closed IS NULL, and no whole query"
ASKS_NO_ROW = " WHERE 1 = 0"


def statement_of(definition: Definition, dialect: str) -> str:
    """Write the query that shows whether a definition runs: it asks for no row."""
    tables = ", ".join(_quoted(table, dialect) for table in definition.tables)
    return f"SELECT {definition.sql} FROM {tables}{ASKS_NO_ROW}"


def without_remarks(sql: str, dialect: str) -> str:
    """Write a query anew, as every reader of it would."""
    return written(parse(sql, dialect), dialect, comments=False)


def expression(sql: str, dialect: str) -> str:
    """Read one expression, on one line and without remarks; a query, a list or a piece of one is refused."""
    text = sql.strip()
    query = f"SELECT {text}"
    try:
        trees = parse_all(query, dialect)
        select = trees[0] if len(trees) == 1 else None
        if not isinstance(select, exp.Select) or {part for part, held in select.args.items() if held} != {
            "expressions"
        }:
            raise UserError(_ONE)
        chosen = select.expressions[0]
        if len(select.expressions) > 1 or isinstance(chosen, exp.Star | exp.Alias) or chosen.find(*_OUTSIDE):
            raise UserError("sql: give one expression without a name of its own, parameters or *")
        remarked = any(token.comments for token in tokenize(query, dialect))
        return written(chosen, dialect, comments=False) if remarked or "\n" in text else text
    except Unparsable as error:
        raise UserError(f"{_ONE} ({error.failure.kind}: {error.failure.message})") from None


def tables_in(sql: str, dialect: str, layout: Layout) -> tuple[str, ...]:
    """Find the tables whose columns an expression names: by their names before a column, or as the only one with it."""
    try:
        columns = [*parse_all(f"SELECT {sql}", dialect)[0].find_all(exp.Column)]  # type: ignore[union-attr]
    except Unparsable:
        return ()
    by_name = {table.casefold(): table for table in layout}
    found: dict[str, None] = {}
    for column in columns:
        named = by_name.get(column.table.casefold()) if column.table else _only_holder(column.name, layout)
        if named is not None:
            found[named] = None
    return tuple(found)


def spelled(tables: Iterable[str], layout: Layout) -> tuple[str, ...]:
    """Spell tables as the schema does; one that it does not have is refused with those it has."""
    known = {table.casefold(): table for table in layout}
    for table in tables:
        if table.casefold() not in known:
            shown = ", ".join(list(layout)[:30])
            raise UserError(f"tables: the database has no {table[:60]!r}; choose from {shown}")
    return tuple(dict.fromkeys(known[table.casefold()] for table in tables))


def _only_holder(column: str, layout: Layout) -> str | None:
    holders = [table for table, columns in layout.items() if column.casefold() in map(str.casefold, columns)]
    return holders[0] if len(holders) == 1 else None


def _quoted(table: str, dialect: str) -> str:
    parts = (exp.to_identifier(part, quoted=True) for part in table.split("."))
    return ".".join(part.sql(language(dialect)) for part in parts)
