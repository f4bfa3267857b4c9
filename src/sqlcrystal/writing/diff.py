"""The changes of a repair, clause by clause, over syntax trees in which two spellings of one query look the same."""

import re
from collections import Counter
from collections.abc import Iterable

from msgspec import Struct
from sqlglot import exp

from sqlcrystal.databases import parsing
from sqlcrystal.databases.layout import from_clause, read_directly
from sqlcrystal.databases.parsing import grammar

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
    sources = {id(select): _aliased_tables(select) for select in selects}
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


def _aliased_tables(select: exp.Expr) -> dict[str, str]:
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


NOTHING = "(none)"
QUERY = "QUERY"
CLAUSES = (
    "WITH",
    "SET OPERATION",
    "SELECT",
    "FROM",
    "JOIN",
    "WHERE",
    "GROUP BY",
    "HAVING",
    "ORDER BY",
    "LIMIT",
    "OFFSET",
)
NOT_NULL = re.compile(r"\bNOT ((?:\w+|\"[^\"]+\"|`[^`]+`)(?:\.(?:\w+|\"[^\"]+\"|`[^`]+`))*) IS NULL")
BETWEEN = {"WHERE": " AND ", "HAVING": " AND ", "JOIN": " "}


class ClauseDiff(Struct, frozen=True):
    """One clause that differs: the parts only the wrong query has, and the parts only the repaired one has."""

    clause: str
    wrong: str
    fixed: str


def diff(wrong: str | None, fixed: str, dialect: str) -> tuple[ClauseDiff, ...]:
    """Find the clauses that differ, in SQL's order; SQL that cannot be parsed differs as a whole, under QUERY."""
    before, after = parse(wrong, dialect), parse(fixed, dialect)
    if before is None or after is None:
        whole = ClauseDiff(QUERY, _line(wrong or NOTHING), _line(fixed))
        return () if whole.wrong == whole.fixed else (whole,)
    plain = canonical(before, after)
    if isinstance(before, exp.SetOperation) != isinstance(after, exp.SetOperation):
        return (ClauseDiff("SET OPERATION", _line(wrong or NOTHING), _line(fixed)),)
    left, right = parts(before, plain[0]), parts(after, plain[1])
    sources = _sources(plain[0])
    same = ("FROM", "JOIN") if sources is not None and sources == _sources(plain[1]) else ()
    clauses = [clause for clause in CLAUSES if clause not in same]
    changes = [
        change
        for clause in clauses
        if (change := _compare(clause, left.get(clause, []), right.get(clause, []), dialect))
    ]
    return tuple(changes)


Part = tuple[str, exp.Expr]
"""A part of a clause: its canonical text, by which it is compared, and the tree as it was written."""


def parts(written: exp.Query, plain: exp.Query) -> dict[str, list[Part]]:
    """Take every clause of a query into its parts; the two trees have the same shape."""
    keys = _clauses(plain)
    return {
        clause: [(_key(key), node) for key, node in zip(keys[clause], nodes, strict=True)]
        for clause, nodes in _clauses(written).items()
    }


def _clauses(tree: exp.Query) -> dict[str, list[exp.Expr]]:
    """Sort nodes by clause: a select's own clauses, or the branches of a set operation."""
    clauses: dict[str, list[exp.Expr]] = {"WITH": list(_listed(tree, "with_"))}
    if isinstance(tree, exp.SetOperation):
        clauses["SET OPERATION"] = [tree]
    elif isinstance(tree, exp.Select):
        distinct = tree.args.get("distinct")
        start = from_clause(tree)
        clauses["SELECT"] = [*([distinct] if distinct else []), *tree.expressions]
        clauses["FROM"] = [start.this] if start else []
        clauses["JOIN"] = list(tree.args.get("joins") or [])
        clauses["WHERE"] = list(_all_of(_condition(tree, "where")))
        clauses["GROUP BY"] = list(_listed(tree, "group"))
        clauses["HAVING"] = list(_all_of(_condition(tree, "having")))
    clauses["ORDER BY"] = list(_listed(tree, "order"))
    clauses["LIMIT"] = [node.expression for node in [tree.args.get("limit")] if isinstance(node, exp.Limit)]
    clauses["OFFSET"] = [node.expression for node in [tree.args.get("offset")] if isinstance(node, exp.Offset)]
    return clauses


def _sources(tree: exp.Query) -> tuple[Counter[str], Counter[str]] | None:
    """Find what inner joins read and on which conditions, in whatever order; None for other joins."""
    start = from_clause(tree)
    joins = tree.args.get("joins") or []
    if start is None or any(join.side or join.kind or join.args.get("using") for join in joins):
        return None
    read = Counter(node.this.sql() for node in [start, *joins])
    return read, Counter(node.sql() for join in joins for node in _all_of(join.args.get("on")))


def _listed(tree: exp.Expr, key: str) -> Iterable[exp.Expr]:
    clause = tree.args.get(key)
    return clause.expressions if clause is not None else ()


def _condition(tree: exp.Expr, key: str) -> exp.Expr | None:
    clause = tree.args.get(key)
    return clause.this if clause is not None else None


def _all_of(condition: exp.Expr | None) -> Iterable[exp.Expr]:
    """Split a condition into those that must all hold."""
    if condition is None:
        return ()
    return condition.flatten(unnest=False) if isinstance(condition, exp.And) else (condition,)


def _key(node: exp.Expr) -> str:
    """Give the text by which parts are compared; a result column's name and needless parentheses do not count."""
    bare = node.unalias()
    inner = bare.unnest()
    return (bare if isinstance(inner, exp.Connector) else inner).sql()


def _compare(clause: str, left: list[Part], right: list[Part], dialect: str) -> ClauseDiff | None:
    if [key for key, _ in left] == [key for key, _ in right]:
        return None
    only_left, only_right = _only(left, right), _only(right, left)
    if not only_left and not only_right:  # the same parts in another order: that matters where order shows
        if clause not in {"SELECT", "ORDER BY"}:
            return None
        only_left, only_right = left, right
    return ClauseDiff(
        clause,
        _render(clause, only_left, len(left), dialect),
        _render(clause, only_right, len(right), dialect),
    )


def _only(these: list[Part], those: list[Part]) -> list[Part]:
    """Find the parts of these that those lack, counting repeats, in order."""
    left = Counter(key for key, _ in those)
    kept = []
    for key, node in these:
        if left[key]:
            left[key] -= 1
        else:
            kept.append((key, node))
    return kept


def _render(clause: str, shown: list[Part], total: int, dialect: str) -> str:
    """Write the differing parts as SQL; "..." stands for the parts both queries share."""
    if not shown:
        return "..." if total else NOTHING
    nodes = [node for _, node in shown if not isinstance(node, exp.Distinct)]
    text = BETWEEN.get(clause, ", ").join(_written(node, dialect) for node in nodes)
    if len(nodes) < len(shown):
        return f"DISTINCT {text or '...'}"
    gap = "" if text.startswith("(") else " "
    return f"...{gap}{text}" if len(shown) < total else text


def _written(node: exp.Expr, dialect: str) -> str:
    """Write a part as SQL; sqlglot turns IS NOT NULL around, and people do not write it so."""
    return NOT_NULL.sub(r"\1 IS NOT NULL", node.sql(dialect=grammar(dialect)).strip(", "))


def _line(sql: str) -> str:
    return " ".join(sql.split())
