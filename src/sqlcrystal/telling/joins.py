"""The rows that a query reads, in words: a table, and what is joined to each of its rows."""

from sqlglot import exp

from sqlcrystal.databases.layout import from_clause
from sqlcrystal.telling.conditions import condition, conjuncts
from sqlcrystal.telling.names import keyness, words
from sqlcrystal.telling.scope import Mention, QueryScope, RowSource, Untold, listed, only

_SIDES = {"": "", "LEFT": " if there are any", "RIGHT": ", also without the former", "FULL": ", each also alone"}


def joined(scope: QueryScope) -> str:
    """Tell the rows of the first table with what is joined to them."""
    if not scope.sources:
        return ""
    start = from_clause(scope.select)
    assert start is not None
    only(start, "this")
    told = _rows(scope.sources[0], start.this, scope)
    for place, join in enumerate(scope.select.args.get("joins") or (), start=1):
        source = scope.sources[place]
        phrase = _join(join, source, scope.sources[:place], scope)
        scope.mentions.append(Mention(phrase, join, (source,)))
        told = f"{told}{' and' if place > 1 else ''} {phrase}"
    return told


def _rows(source: RowSource, node: exp.Expr, scope: QueryScope) -> str:
    return source.many if source.table else f"the rows of {_bracketed(scope.inner(node, scope))}"


def _bracketed(told: str) -> str:
    return told if told.startswith("(") else f"({told})"


def _join(join: exp.Expr, source: RowSource, before: list[RowSource], scope: QueryScope) -> str:
    only(join, "this", "on", "kind", "side", "using", "method")
    kind, side = str(join.args.get("kind") or "").upper(), str(join.args.get("side") or "").upper()
    if kind not in {"", "INNER", "CROSS", "OUTER"} or side not in _SIDES:
        raise Untold(f"a join of the kind {kind or side}")
    if join.args.get("method"):
        if str(join.args["method"]).upper() != "NATURAL":
            raise Untold("a join by a method")
        return f"with {_rows(source, join.this, scope)} that agree in all columns of the same name{_SIDES[side]}"
    using = join.args.get("using")
    if using:
        named = listed([words(each.name) for each in using])
        return f"with {_rows(source, join.this, scope)} of the same {named}{_SIDES[side]}"
    on = join.args.get("on")
    if on is None:
        return f"combined with every one of {_rows(source, join.this, scope)}"
    tests = conjuncts(on)
    keys = [test for test in tests if _other(test, source, before) is not None]
    relation = _relation(keys[0], source, before, scope) if len(keys) == 1 and source.table else ""
    rest = [test for test in tests if not relation or test is not keys[0]]
    told = relation or f"with {_rows(source, join.this, scope)}"
    more = f" where {' and '.join(condition(test, scope) for test in rest)}" if rest else ""
    return f"{told}{_SIDES[side]}{more}"


def _relation(test: exp.Expr, source: RowSource, before: list[RowSource], scope: QueryScope) -> str:
    """Tell a join on a key by what it means; nothing where the names and the schema say no such thing."""
    other = _other(test, source, before)
    assert other is not None
    near = next(each for each in before if each.alias.lower() == other.table.lower())
    own = test.this if test.expression is other else test.expression
    here, there = _keyness(own.name, source, scope), _keyness(other.name, near, scope)
    same = words(own.name) == words(other.name)
    if here > there:
        role = "" if same else _role(other.name, source)
        return f"with their {source.noun}{role}"
    if there > here:
        role = "" if same else _role(own.name, near)
        return f"with each of their {source.many}{role}"
    if same:
        return f"with {source.many} of the same {words(own.name)}"
    return ""


def counted(scope: QueryScope) -> str:
    """Tell which rows a count over joined tables counts, where the declared keys leave no doubt."""
    joins = scope.select.args.get("joins") or ()
    if not joins or not all(source.table for source in scope.sources):
        return scope.subject
    counted = scope.sources[0]
    for place, join in enumerate(joins, start=1):
        source, before, on = scope.sources[place], scope.sources[:place], join.args.get("on")
        other = _other(on, source, before) if on is not None else None
        if other is None or join.args.get("side"):
            return scope.subject
        near = next(each for each in before if each.alias.lower() == other.table.lower())
        own = on.this if on.expression is other else on.expression
        if _declared(source, scope) == {own.name.lower()}:
            continue
        if near is not counted or _declared(near, scope) != {other.name.lower()}:
            return scope.subject
        counted = source
    return counted.many


def _declared(source: RowSource, scope: QueryScope) -> set[str]:
    return {name.lower() for table, name in scope.known.keys.primary if table.lower() == source.table.lower()}


def _role(column: str, table: RowSource) -> str:
    """Tell by which column another table is referred to, where the name says more than the table's."""
    return "" if keyness(column, table.table) else f" (by {words(column)})"


def _keyness(column: str, source: RowSource, scope: QueryScope) -> int:
    declared = _declared(source, scope)
    return 2 * (declared == {column.lower()}) if declared else keyness(column, source.table)


def _other(test: exp.Expr, source: RowSource, before: list[RowSource]) -> exp.Column | None:
    """Find the column of an earlier table that an equality compares with one of the table that is joined."""
    if not isinstance(test, exp.EQ):
        return None
    sides = (test.this, test.expression)
    earlier = {each.alias.lower() for each in before}
    for one, other in (sides, sides[::-1]):
        if isinstance(one, exp.Column) and isinstance(other, exp.Column) and one.table.lower() == source.alias.lower():
            return other if other.table.lower() in earlier else None
    return None
