"""Values in words: columns, aggregates, functions and arithmetic, and how rows are ordered and limited."""

import re
from collections.abc import Callable, Sequence

from sqlglot import exp

from sqlcrystal.databases.parsing import language
from sqlcrystal.telling.scope import QueryScope, Untold, listed, only
from sqlcrystal.telling.words import plural, words

_PERIODS = {
    "%Y": "year",
    "%m": "month",
    "%d": "day of the month",
    "%H": "hour",
    "%M": "minute",
    "%w": "day of the week",
}
_PERIODS |= {"%Y-%m": "year and month", "%j": "day of the year", "%W": "week", "%Y-%m-%d": "date"}
_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "plus",
    exp.Sub: "minus",
    exp.Mul: "times",
    exp.Div: "divided by",
    exp.IntDiv: "divided in whole by",
    exp.Mod: "modulo",
}
# These types change how a value is held and not which value it is.
_SAME_TYPES = frozenset(
    {"REAL", "FLOAT", "DOUBLE", "DECIMAL", "TEXT", "VARCHAR", "CHAR", "DATE", "TIMESTAMP", "DATETIME", "NUMERIC"}
)
_ONE = frozenset({"1.0", "1."})
_FLAGS = frozenset({"big_int", "safe", "typed", "coalesce", "safe_to_zero", "unabbreviate", "zone", "is_numeric"})
"""Notes of the parser to its writers, which say nothing of the result."""


def value(node: exp.Expr, scope: QueryScope) -> str:
    """Tell a value, without an article before it."""
    for kind, told in _TOLD.items():
        if isinstance(node, kind):
            return told(node, scope)
    if isinstance(node, exp.Func):
        return _called(node, scope)
    raise Untold(node.key)


def the(node: exp.Expr, scope: QueryScope) -> str:
    """Tell a value with an article, where one belongs before it."""
    told = value(node, scope)
    return told if not has_article(node, scope) or told.startswith(("the ", "(")) else f"the {told}"


def has_article(node: exp.Expr, scope: QueryScope) -> bool:
    """Tell whether a value is told as a noun."""
    first = node
    while isinstance(first, exp.Binary | exp.Paren | exp.Alias | exp.Cast) and not isinstance(first, exp.DPipe):
        first = first.left if isinstance(first, exp.Binary) else first.this
    if isinstance(first, exp.Column):
        return not scope.is_text(first)
    return isinstance(first, exp.Func) and not isinstance(first, exp.Case | exp.If | exp.Coalesce | exp.Boolean)


def is_count(node: exp.Expr) -> bool:
    """Tell whether a value counts all rows."""
    plain = node.unalias()
    return isinstance(plain, exp.Count) and isinstance(plain.this, exp.Star | exp.Literal)


def literal(node: exp.Expr) -> str:
    """Write a constant as SQL does, a text in quotes."""
    only(node, "this", "is_string")
    return f"'{node.name}'" if node.is_string else node.name


def _column(node: exp.Expr, scope: QueryScope) -> str:
    assert isinstance(node, exp.Column)
    if scope.is_text(node):
        return f"'{node.name}'"
    told = scope.select.args.get("expressions", ())
    meant = next((item.this for item in told if isinstance(item, exp.Alias) and item.alias == node.name), None)
    # An alias of the list stands for its expression, unless it is only a column's other name.
    outside = node.find_ancestor(exp.Where, exp.Alias, exp.Select)
    if meant is not None and not node.table and isinstance(outside, exp.Select) and not isinstance(meant, exp.Column):
        return value(meant, scope)
    return scope.column(node)


def _counted(node: exp.Expr, scope: QueryScope) -> str:
    only(node, "this", *_FLAGS)
    counted = node.this
    if isinstance(counted, exp.Star | exp.Literal):
        return f"number of {scope.counted}"
    if isinstance(counted, exp.Case) and (test := _counted_case(counted)) is not None:
        return _rows_where(test, scope)
    if isinstance(counted, exp.Distinct):
        only(counted, "expressions")
        return f"number of different {listed([_several(each, scope) for each in counted.expressions])}"
    return f"number of {_several(counted, scope)}"


def _several(node: exp.Expr, scope: QueryScope) -> str:
    return plural(value(node, scope)) if isinstance(node, exp.Column) else f"values of {value(node, scope)}"


def _counted_case(node: exp.Expr) -> exp.Expr | None:
    """Find the test of a CASE that marks a row for counting."""
    ifs, default = node.args["ifs"], node.args.get("default")
    marks = len(ifs) == 1 and node.this is None and ifs[0].args["true"].name == "1"
    empty = default is None or isinstance(default, exp.Null)
    summed = isinstance(node.parent, exp.Sum)
    fits = marks and (default.name == "0" if summed and default is not None else empty and not summed)
    test: exp.Expr = ifs[0].this
    return test if fits else None


def _rows_where(test: exp.Expr, scope: QueryScope) -> str:
    from sqlcrystal.telling.conditions import condition

    return f"number of {scope.counted} where {condition(test, scope)}"


def _summed(node: exp.Expr, scope: QueryScope) -> str:
    of = node.this
    if isinstance(of, exp.Predicate | exp.Connector) and not isinstance(of, exp.SubqueryPredicate):
        return _rows_where(of, scope)
    if isinstance(of, exp.Case) and (test := _counted_case(of)) is not None:
        return _rows_where(test, scope)
    return _aggregate("total")(node, scope)


def _aggregate(word: str) -> Callable[[exp.Expr, QueryScope], str]:
    def told(node: exp.Expr, scope: QueryScope) -> str:
        only(node, "this", "expressions", *_FLAGS)
        of, different = node.this, ""
        if isinstance(of, exp.Distinct):
            only(of, "expressions")
            if len(of.expressions) != 1:
                raise Untold("an aggregate of several values")
            of, different = of.expressions[0], "different values of "
        if node.expressions:  # MAX(a, b) picks among its arguments
            return f"{word} of {listed([value(each, scope) for each in (of, *node.expressions)])}"
        if different or not isinstance(of, exp.Column):
            told = value(of, scope)
            return f"{word} of {different}{f'({told})' if type(of) in _ARITHMETIC else told}"
        return f"{word} {value(of, scope)}"

    return told


def _arithmetic(node: exp.Expr, scope: QueryScope) -> str:
    assert isinstance(node, exp.Binary)
    only(node, "this", "expression", *_FLAGS)
    left, right = node.left, node.right
    if isinstance(node, exp.Mul) and left.name in _ONE and isinstance(left, exp.Literal):
        return value(right, scope)
    if isinstance(node, exp.Mul) and right.name in _ONE and isinstance(right, exp.Literal):
        return value(left, scope)
    return f"{_operand(left, node, scope)} {_ARITHMETIC[type(node)]} {_operand(right, node, scope)}"


def _operand(node: exp.Expr, around: exp.Expr, scope: QueryScope) -> str:
    plain = node.unnest()
    told = value(node, scope)
    grouped = type(plain) in _ARITHMETIC and (type(plain) is not type(around) or node is not around.this)
    return f"({told})" if grouped else told


def _cast(node: exp.Expr, scope: QueryScope) -> str:
    only(node, "this", "to", *_FLAGS)
    to = node.args["to"]
    told = value(node.this, scope)
    if to.this.name in _SAME_TYPES:
        return told
    return f"{told} as a whole number" if "INT" in to.this.name else f"{told} as {to.this.name.lower()}"


def _case(node: exp.Expr, scope: QueryScope) -> str:
    from sqlcrystal.telling.conditions import condition

    only(node, "this", "ifs", "default")
    cases = []
    for each in node.args["ifs"]:
        if node.this is not None:
            when = f"{the(node.this, scope)} is {value(each.this, scope)}"
        else:
            when = condition(each.this, scope)
        cases.append(f"{value(each.args['true'], scope)} if {when}")
    default = node.args.get("default")
    otherwise = "nothing otherwise" if default is None else f"{value(default, scope)} otherwise"
    return f"({', '.join([*cases, otherwise])})"


def _if(node: exp.Expr, scope: QueryScope) -> str:
    from sqlcrystal.telling.conditions import condition

    only(node, "this", "true", "false")
    other = node.args.get("false")
    otherwise = "nothing" if other is None else value(other, scope)
    return f"({value(node.args['true'], scope)} if {condition(node.this, scope)}, {otherwise} otherwise)"


def _round(node: exp.Expr, scope: QueryScope) -> str:
    only(node, "this", "decimals")
    decimals = node.args.get("decimals")
    places = f" to {value(decimals, scope)} decimals" if decimals is not None and decimals.name != "0" else ""
    told = value(node.this, scope)
    return f"{f'({told})' if type(node.this.unnest()) in _ARITHMETIC else told} rounded{places}"


def _written_time(node: exp.Expr, scope: QueryScope) -> str:
    only(node, "this", "format")
    form, of = node.args["format"].name, value(node.this, scope)
    return f"{_PERIODS[form]} of {of}" if form in _PERIODS else f"{of} written as '{form}'"


def _extract(node: exp.Expr, scope: QueryScope) -> str:
    only(node, "this", "expression")
    return f"{node.name.lower()} of {value(node.expression, scope)}"


def _part_of_text(node: exp.Expr, scope: QueryScope) -> str:
    only(node, "this", "start", "length")
    start, length = node.args["start"], node.args.get("length")
    of = value(node.this, scope)
    if length is None:
        return f"text of {of} from character {value(start, scope)} on"
    if start.name == "1" and isinstance(start, exp.Literal):
        return f"first {value(length, scope)} characters of {of}"
    return f"{value(length, scope)} characters of {of} from character {value(start, scope)} on"


def _joined_text(node: exp.Expr, scope: QueryScope) -> str:
    assert isinstance(node, exp.Binary)
    only(node, "this", "expression", *_FLAGS)
    return f"{value(node.left, scope)} followed by {value(node.right, scope)}"


def _first_known(node: exp.Expr, scope: QueryScope) -> str:
    only(node, "this", "expressions", "is_nvl", "is_null")
    others = [value(each, scope) for each in node.expressions]
    return f"{value(node.this, scope)} (or, where that is missing, {listed(others, 'or')})"


def _gathered(node: exp.Expr, scope: QueryScope) -> str:
    only(node, "this", "separator")
    of, different = node.this, ""
    if isinstance(of, exp.Distinct):
        only(of, "expressions")
        of, different = of.expressions[0], "different "
    if not isinstance(of, exp.Column | exp.Func | exp.DPipe):
        raise Untold("an ordered list in one cell")
    separator = node.args.get("separator")
    by = f" with {value(separator, scope)} between" if separator is not None else ""
    return f"list of all {different}values of {value(of, scope)}{by}"


def _filtered(node: exp.Expr, scope: QueryScope) -> str:
    from sqlcrystal.telling.conditions import condition

    only(node, "this", "expression")
    return f"{value(node.this, scope)} (only where {condition(node.expression.this, scope)})"


def _window(node: exp.Expr, scope: QueryScope) -> str:

    only(node, "this", "partition_by", "order", "over")
    within = [value(each, scope) for each in node.args.get("partition_by") or ()]
    order = node.args.get("order")
    parts = [f"within each {listed(within)}"] if within else ["over all rows"]
    parts += [f"in order of {keys_in_order(order, scope)}"] if order is not None else []
    return f"{value(node.this, scope)} ({', '.join(parts)})"


def _subquery(node: exp.Expr, scope: QueryScope) -> str:
    return scope.inner(node, scope)


def _called(node: exp.Func, scope: QueryScope) -> str:
    """Tell a function that has no rule of its own by its name and everything it is given."""
    given: list[exp.Expr] = []
    for key, each in node.args.items():
        if each in (None, False, []) or key in _FLAGS:
            continue
        found = each if isinstance(each, list) else [each]
        if isinstance(node, exp.Anonymous) and key == "this":
            continue
        if not all(isinstance(part, exp.Expr) for part in found):
            raise Untold(f"{node.key}: {key}")
        given += found
    name = words(node.name if isinstance(node, exp.Anonymous) else node.sql_name())
    return f"{name} of {_arguments(given, scope)}" if given else name


def _arguments(given: Sequence[exp.Expr], scope: QueryScope) -> str:
    told = [each.name.lower() if isinstance(each, exp.Var) else value(each, scope) for each in given]
    return told[0] if len(told) == 1 else f"({', '.join(told)})"


def _inside(form: str) -> Callable[[exp.Expr, QueryScope], str]:
    def told(node: exp.Expr, scope: QueryScope) -> str:
        only(node, "this", *_FLAGS)
        return form.format(value(node.this, scope))

    return told


def _same(node: exp.Expr, scope: QueryScope) -> str:
    only(node, "this", "alias", *_FLAGS)
    return value(node.this, scope)


def _as_written(word: str) -> Callable[[exp.Expr, QueryScope], str]:
    return lambda _node, _scope: word


def _tested(node: exp.Expr, scope: QueryScope) -> str:
    from sqlcrystal.telling.conditions import condition

    return f"whether {condition(node, scope)}"


_TOLD: dict[type[exp.Expr], Callable[[exp.Expr, QueryScope], str]] = {
    exp.Column: _column,
    exp.Literal: lambda node, _scope: literal(node),
    exp.Boolean: lambda node, _scope: "true" if node.this else "false",
    exp.Null: _as_written("nothing"),
    exp.Star: _as_written("columns"),
    exp.Neg: _inside("-{}"),
    exp.Alias: _same,
    exp.Paren: _same,
    exp.TsOrDsToTimestamp: _same,
    exp.TsOrDsToDate: _same,
    exp.Count: _counted,
    exp.Sum: _summed,
    exp.Avg: _aggregate("average"),
    exp.Max: _aggregate("highest"),
    exp.Min: _aggregate("lowest"),
    exp.GroupConcat: _gathered,
    exp.Filter: _filtered,
    exp.Window: _window,
    exp.Cast: _cast,
    exp.Case: _case,
    exp.If: _if,
    exp.Coalesce: _first_known,
    exp.Round: _round,
    exp.Abs: _inside("size of {} without its sign"),
    exp.Lower: _inside("{} in lower case"),
    exp.Upper: _inside("{} in capitals"),
    exp.Length: _inside("length of {}"),
    exp.Year: _inside("year of {}"),
    exp.Month: _inside("month of {}"),
    exp.Day: _inside("day of {}"),
    exp.TimeToStr: _written_time,
    exp.Extract: _extract,
    exp.Substring: _part_of_text,
    exp.DPipe: _joined_text,
    exp.Subquery: _subquery,
    exp.Select: _subquery,
    exp.SetOperation: _subquery,
    **dict.fromkeys(_ARITHMETIC, _arithmetic),
    exp.Connector: _tested,
    exp.Predicate: _tested,
    exp.Not: _tested,
}


_WRITTEN = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_TIME = re.compile(r"\b(?:date|dates|year|years|time|day|month|born|birthday|when|since|at)\b")
_TEXT = re.compile(r"\b(?:name|names|title|city|country|surname|nationality|description|address|email|street)\b$")


def keys_in_order(order: exp.Expr, scope: QueryScope) -> str:
    """Tell the keys of an ORDER BY, each with its direction."""
    only(order, "expressions")
    return ", then ".join(_key(each, scope) for each in order.expressions)


def ordered_and_limited(query: exp.Expr, scope: QueryScope) -> list[str]:
    """Tell the clauses that order a query and cut it off."""
    order, limit, offset = (query.args.get(key) for key in ("order", "limit", "offset"))
    if limit is None and offset is None:
        return [f"sorted by {keys_in_order(order, scope)}"] if order is not None else []
    said: list[str] = []
    skipped = ""
    if offset is not None:
        only(offset, "this", "expression")
        skipped = f" after leaving out the first {value(offset.expression, scope)}"
    if limit is None:
        said = [f"sorted by {keys_in_order(order, scope)}"] if order is not None else []
        return [*said, skipped.strip()]
    count = _count(limit, scope)
    if order is None:
        return [f"any {count}{_rows(count)}{skipped}" if not skipped else f"any {count}{_rows(count)},{skipped}"]
    if len(order.expressions) == 1 and not skipped and _extreme(order.expressions[0], scope):
        first = "the one" if count == "one" else f"the {count}"
        return [f"only {first} with the {_extreme(order.expressions[0], scope)}"]
    said = [f"sorted by {keys_in_order(order, scope)}"]
    return [*said, f"of these only the first{'' if count == 'one' else f' {count}'}{skipped}"]


def _rows(count: str) -> str:
    return " row" if count == "one" else " rows"


def _count(limit: exp.Expr, scope: QueryScope) -> str:
    if isinstance(limit, exp.Fetch):
        only(limit, "direction", "count")
        number = limit.args.get("count")
    else:
        only(limit, "expression")
        number = limit.expression
    if number is None:
        return "one"
    told = value(number, scope)
    return _WRITTEN[int(told)] if told.isdecimal() and int(told) < len(_WRITTEN) else told


def _key(ordered: exp.Expr, scope: QueryScope) -> str:
    key, descending = _read(ordered, scope)
    told = value(key, scope)
    if is_count(key):
        return f"{'most' if descending else 'fewest'} {scope.counted} first"
    if _is_text(key, told):
        return f"{told} {'from Z to A' if descending else 'alphabetically'}{_missing(ordered, scope)}"
    high, low = ("latest", "earliest") if _is_time(key, told) else ("highest", "lowest")
    return f"{told}, {high if descending else low} first{_missing(ordered, scope)}"


def _extreme(ordered: exp.Expr, scope: QueryScope) -> str:
    """Tell the end of an order that a limit keeps; nothing for texts, which have none."""
    key, descending = _read(ordered, scope)
    told = value(key, scope)
    if _is_text(key, told) or _missing(ordered, scope):
        return ""
    if is_count(key):
        return f"{'most' if descending else 'fewest'} {scope.counted}"
    if told.startswith(("highest ", "lowest ", "latest ", "earliest ", "first ", "rounded ", "(")):
        return ""
    high, low = ("latest", "earliest") if _is_time(key, told) else ("highest", "lowest")
    return f"{high if descending else low} {told}"


def _read(ordered: exp.Expr, scope: QueryScope) -> tuple[exp.Expr, bool]:
    """Read a key, a place in the list being what stands there, and its direction."""
    if not isinstance(ordered, exp.Ordered):
        return ordered, False
    only(ordered, "this", "desc", "nulls_first")
    key = ordered.this
    if isinstance(key, exp.Literal) and key.name.isdecimal():
        items = scope.select.expressions
        if not 0 < int(key.name) <= len(items) or isinstance(items[0], exp.Star):
            raise Untold("an order by a place that is not in the list")
        key = items[int(key.name) - 1].unalias()
    return key, bool(ordered.args.get("desc"))


def _missing(ordered: exp.Expr, scope: QueryScope) -> str:
    """Tell where missing values stand, if a query says something else than its engine would do."""
    first, descending = bool(ordered.args.get("nulls_first")), bool(ordered.args.get("desc"))
    usual = {"nulls_are_small": not descending, "nulls_are_large": descending}
    if first == usual.get(language(scope.known.dialect).NULL_ORDERING, False):
        return ""
    return f" and missing ones {'first' if first else 'last'}"


def _is_time(key: exp.Expr, told: str) -> bool:
    plain = key.this if isinstance(key, exp.Max | exp.Min) else key
    return isinstance(plain, exp.Column) and _TIME.search(told) is not None


def _is_text(key: exp.Expr, told: str) -> bool:
    return isinstance(key, exp.Column) and _TEXT.search(told) is not None


def grouped(group: exp.Expr, scope: QueryScope) -> str:
    """Tell what each group has in common."""
    only(group, "expressions")
    told = []
    for each in group.expressions:
        key, _ = _read(exp.Ordered(this=each.copy()), scope) if isinstance(each, exp.Literal) else (each, False)
        told.append(value(key, scope))
    return f"one row for each {listed(told)}"
