"""SQL as syntax trees in which two spellings of one query look the same."""

from sqlglot import exp

from sqlcrystal.databases import parsing
from sqlcrystal.databases.layout import read_directly

IMPLIED = "implied"


def parse(sql: str | None, dialect: str) -> exp.Query | None:
    """Parse a query; None when there is none to be had."""
    if not sql:
        return None
    try:
        tree = parsing.parse(sql, dialect)
    except parsing.Unparsable:
        return None
    return tree if isinstance(tree, exp.Query) else None


def canonical(left: exp.Query, right: exp.Query) -> tuple[exp.Query, exp.Query]:
    """Copies of two queries without the differences that mean nothing.

    Aliases become table names, names lower case, INNER JOIN a JOIN, equalities sorted; a column keeps its table's name
    only where the two queries together read columns of that name from different tables.
    """
    copies = plain(left), plain(right)
    tables = [{table.name for table in copy.find_all(exp.Table)} for copy in copies]
    for copy, others in zip(copies, reversed(tables), strict=True):
        for column in copy.find_all(exp.Column):
            # A table the other query does not read was replaced as a whole: its columns need not differ for that.
            if column.meta.get(IMPLIED) and column.table not in others:
                column.set("table", None)
    homes: dict[str, set[str]] = {}
    for column in [*copies[0].find_all(exp.Column), *copies[1].find_all(exp.Column)]:
        homes.setdefault(column.name, set()).update({column.table} - {""})
    for copy in copies:
        for column in copy.find_all(exp.Column):
            if len(homes[column.name]) < 2:
                column.set("table", None)
        _sort_equalities(copy)
    return copies


def plain(tree: exp.Query) -> exp.Query:
    """Copy a query so that its columns name their table rather than its alias."""
    copy = tree.copy()
    selects = list(copy.find_all(exp.Select))
    sources = {id(select): _sources(select) for select in selects}
    for column in copy.find_all(exp.Column):
        _resolve(column, sources)
    for select in selects:
        names = list(sources[id(select)].values())
        for table in _tables(select):
            if names.count(table.name.lower()) == 1:
                table.set("alias", None)
    for join in copy.find_all(exp.Join):
        if join.kind == "INNER":
            join.set("kind", None)
    for identifier in copy.find_all(exp.Identifier):
        identifier.set("this", identifier.name.lower())
        identifier.set("quoted", False)
    return copy


def _sort_equalities(tree: exp.Query) -> None:
    for equality in tree.find_all(exp.EQ):
        left, right = equality.this, equality.expression
        if isinstance(left, exp.Column) and isinstance(right, exp.Column) and left.sql() > right.sql():
            equality.set("this", right.copy())
            equality.set("expression", left.copy())


def _tables(select: exp.Expr) -> list[exp.Table]:
    """List the tables a select reads directly."""
    return [table for table in read_directly(select) if isinstance(table, exp.Table)]


def _sources(select: exp.Expr) -> dict[str, str]:
    """Map each alias, or name, to its table's name; both in lower case."""
    return {table.alias_or_name.lower(): table.name.lower() for table in _tables(select)}


def _resolve(column: exp.Column, sources: dict[int, dict[str, str]]) -> None:
    """Name the column's table: that of its alias, or the only table there is."""
    select = column.find_ancestor(exp.Select)
    if not column.table:
        own = sources.get(id(select), {})
        if select is not None and len(own) == 1 and not select.args.get("joins"):
            column.set("table", exp.to_identifier(next(iter(own.values()))))
            column.meta[IMPLIED] = True
        return
    alias = column.table.lower()
    while select is not None:
        own = sources.get(id(select), {})
        if alias in own:
            # A table joined to itself keeps its aliases: there they are the only thing that tells the two apart.
            if list(own.values()).count(own[alias]) == 1:
                column.set("table", exp.to_identifier(own[alias]))
            return
        select = select.find_ancestor(exp.Select)
