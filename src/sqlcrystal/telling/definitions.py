"""The SQL of definitions: an expression read as one, with its tables; and filters of queries that may become one."""

from collections.abc import Iterable, Iterator

from msgspec import Struct
from sqlglot import exp

from sqlcrystal.databases.layout import Layout, owner_of
from sqlcrystal.databases.parsing import Unparsable, language, parse, parse_all, tokenize, written
from sqlcrystal.errors import UserError
from sqlcrystal.telling.conditions import conjuncts
from sqlcrystal.telling.words import meet, stems, words, words_of
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


_COMPARING = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.In, exp.Between, exp.Like, exp.ILike, exp.Is)
_CONSTANT = (exp.Literal, exp.Null, exp.Boolean, exp.Neg, exp.Tuple, exp.Paren)


class Filter(Struct, frozen=True):
    """A condition on one column of one table, with constants alone beside it."""

    sql: str
    """Written alike wherever it stands: the column behind its table's name."""
    table: str
    column: str
    values: tuple[str, ...]

    def is_said_by(self, question: str) -> bool:
        """Tell whether a question spells it out: by a word of its values, or where it has none by the column's name."""
        said = words_of(question)
        pieces = {word for value in self.values for word in words_of(value)}
        if pieces:
            return not pieces.isdisjoint(said)
        return meet(stems(words(self.column)), stems(question))


def filters_of(sql: str, dialect: str, layout: Layout) -> tuple[Filter, ...]:
    """List the filters of a query and of those within it; nothing of one that cannot be read."""
    try:
        trees = parse_all(sql, dialect)
        found = {each.sql: each for tree in trees if tree is not None for each in _filters(tree, dialect, layout)}
    except Unparsable:
        return ()
    return tuple(found.values())


def _filters(tree: exp.Expr, dialect: str, layout: Layout) -> Iterator[Filter]:
    for where in tree.find_all(exp.Where):
        for test in conjuncts(where.this):
            plain = test.unnest()
            core = plain.this.unnest() if isinstance(plain, exp.Not) else plain
            columns = [*plain.find_all(exp.Column)]
            if not isinstance(core, _COMPARING) or len(columns) != 1 or plain.find(exp.Query):
                continue
            if isinstance(core.this, exp.Column) and all(isinstance(part, _CONSTANT) for part in _beside(core)):
                table = owner_of(columns[0], layout)
                if table is not None:
                    yield _filter(plain, table, dialect)


def _beside(test: exp.Expr) -> Iterator[exp.Expr]:
    """Give what a column is compared with."""
    for name, part in test.args.items():
        if name != "this" and part is not None:
            yield from part if isinstance(part, list) else [part] if isinstance(part, exp.Expression) else []


def _filter(test: exp.Expr, table: str, dialect: str) -> Filter:
    values = tuple(str(literal.this) for literal in test.find_all(exp.Literal))
    named = test.copy()
    column = named.find(exp.Column)
    assert column is not None
    column.replace(exp.column(column.this.copy(), table=exp.to_identifier(table)))
    return Filter(written(named, dialect, comments=False), table, column.name, values)
