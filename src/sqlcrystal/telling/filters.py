"""The filters of a query, one by one, in a form in which two queries share them; and whether a question says them."""

from collections.abc import Iterator

from msgspec import Struct
from sqlglot import exp

from sqlcrystal.databases.layout import Layout, owner_of
from sqlcrystal.databases.parsing import Unparsable, parse_all, written
from sqlcrystal.telling.conditions import conjuncts
from sqlcrystal.telling.names import meet, stems, words
from sqlcrystal.telling.terms import words_of

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
