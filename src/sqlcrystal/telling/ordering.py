"""Order and limit in words."""

import re

from sqlglot import exp

from sqlcrystal.databases.parsing import language
from sqlcrystal.telling.scope import QueryScope, Untold, listed, only
from sqlcrystal.telling.values import is_count, value

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
