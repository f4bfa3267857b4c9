"""Conditions in words: what a filter, a join or a group's test asks of its rows."""

from collections.abc import Callable

from sqlglot import exp

from sqlcrystal.telling.scope import Mention, QueryScope, Untold, listed, only
from sqlcrystal.telling.values import literal, the, value

_COMPARED: dict[type[exp.Expr], str] = {
    exp.EQ: "is",
    exp.NEQ: "is not",
    exp.GT: "is over",
    exp.GTE: "is at least",
    exp.LT: "is under",
    exp.LTE: "is at most",
    exp.NullSafeEQ: "is",
    exp.NullSafeNEQ: "is not",
}
# Of a text, which is mostly a date.
_IN_ORDER: dict[type[exp.Expr], str] = {
    exp.GT: "is after",
    exp.GTE: "is on or after",
    exp.LT: "is before",
    exp.LTE: "is on or before",
}
_OF_COLUMNS: dict[type[exp.Expr], str] = {exp.EQ: "is the same as", exp.NEQ: "is not the same as"}
_TURNED: dict[type[exp.Expr], type[exp.Expr]] = {exp.GT: exp.LT, exp.GTE: exp.LTE, exp.LT: exp.GT, exp.LTE: exp.GTE}
_TESTS = (exp.Binary, exp.In, exp.Between)


def conjuncts(node: exp.Expr) -> list[exp.Expr]:
    """List what must hold at once."""
    plain = node.unnest()
    if not isinstance(plain, exp.And):
        return [node]
    return [each for part in plain.flatten() for each in conjuncts(part)]


def filters(tests: list[exp.Expr], scope: QueryScope) -> str:
    """Tell a filter with the word that leads it in: "whose" where all of it is said of the rows' own columns."""
    owned = len(scope.sources) == 1 and all(_is_of_the_row(test, scope) for test in tests)
    told = []
    for test in tests:
        words = condition(test, scope, article=not owned)
        words = f"({words})" if isinstance(test.unnest(), exp.Or) and len(tests) > 1 else words
        scope.mentions.append(Mention(words, test, tuple(scope.sources)))
        told.append(words)
    return f"{'whose' if owned else 'where'} {' and '.join(told)}"


def condition(node: exp.Expr, scope: QueryScope, *, article: bool = True) -> str:
    """Tell a condition as a clause."""
    for kind, told in _TOLD.items():
        if isinstance(node, kind):
            return told(node, scope, article)
    return f"{_left(node, scope, article)} is true"


def _is_of_the_row(test: exp.Expr, scope: QueryScope) -> bool:
    plain = test.unnest()
    if isinstance(plain, exp.Not):
        return isinstance(plain.this.unnest(), exp.In | exp.Between | exp.Is | exp.Like) and _is_of_the_row(
            plain.this, scope
        )
    if isinstance(plain, exp.Connector):
        return False
    first = plain.this if isinstance(plain, _TESTS) else None
    if isinstance(first, exp.Literal) and isinstance(plain, exp.Binary):
        first = plain.expression
    while isinstance(first, exp.Cast):
        first = first.this
    return isinstance(first, exp.Column) and not scope.is_text(first)


def _left(node: exp.Expr, scope: QueryScope, article: bool) -> str:
    return the(node, scope) if article else value(node, scope)


def _compared(node: exp.Expr, scope: QueryScope, article: bool) -> str:
    only(node, "this", "expression")
    kind, left, right = type(node), node.this, node.expression
    if isinstance(left, exp.Literal) and not isinstance(right, exp.Literal):
        kind, left, right = _TURNED.get(kind, kind), right, left
    verb = _COMPARED[kind]
    if kind in _IN_ORDER and isinstance(right, exp.Literal) and right.is_string:
        verb = _IN_ORDER[kind]
    if isinstance(right, exp.Column) and not scope.is_text(right):
        verb = _OF_COLUMNS.get(kind, verb)
    told = "empty" if isinstance(right, exp.Literal) and right.is_string and not right.name else the(right, scope)
    return f"{_left(left, scope, article)} {verb} {told}"


def _is(node: exp.Expr, scope: QueryScope, article: bool, no: bool = False) -> str:
    only(node, "this", "expression")
    right = node.expression
    if isinstance(right, exp.Not):
        right, no = right.this, not no
    told = "missing" if isinstance(right, exp.Null) else value(right, scope)
    return f"{_left(node.this, scope, article)} is {'not ' if no else ''}{told}"


def _like(node: exp.Expr, scope: QueryScope, article: bool, no: bool = False) -> str:
    only(node, "this", "expression")
    told = f"{_left(node.this, scope, article)} "
    form = node.expression
    text = form.name
    core = text.strip("%")
    if not isinstance(form, exp.Literal) and not (isinstance(form, exp.Column) and scope.is_text(form)):
        return f"{told}{'does not match' if no else 'matches'} the pattern {value(form, scope)}"
    if "%" in core or "_" in core or not core:
        return f"{told}{'does not match' if no else 'matches'} the pattern '{text}'"
    verbs = {
        (True, True): ("contains", "does not contain"),
        (False, True): ("starts with", "does not start with"),
        (True, False): ("ends with", "does not end with"),
        (False, False): ("is like", "is not like"),
    }
    return f"{told}{verbs[text.startswith('%'), text.endswith('%')][no]} '{core}'"


def _in(node: exp.Expr, scope: QueryScope, article: bool, no: bool = False) -> str:
    only(node, "this", "expressions", "query")
    told = _left(node.this, scope, article)
    query = node.args.get("query")
    if query is not None:
        return f"{told} is {'not ' if no else ''}among {scope.inner(query, scope)}"
    values = [value(each, scope) for each in node.expressions]
    if len(values) == 1:
        return f"{told} is {'not ' if no else ''}{values[0]}"
    return f"{told} is {'none' if no else 'one'} of {listed(values, 'or')}"


def _between(node: exp.Expr, scope: QueryScope, article: bool, no: bool = False) -> str:
    only(node, "this", "low", "high")
    low, high = value(node.args["low"], scope), value(node.args["high"], scope)
    return f"{_left(node.this, scope, article)} is {'not ' if no else ''}between {low} and {high}"


def _exists(node: exp.Expr, scope: QueryScope, _article: bool, no: bool = False) -> str:
    only(node, "this")
    return f"there {'are no' if no else 'are'} {scope.inner(node, scope)}"


def _not(node: exp.Expr, scope: QueryScope, article: bool) -> str:
    only(node, "this")
    inner = node.this.unnest()
    for kind, told in _DENIED.items():
        if isinstance(inner, kind):
            return told(inner, scope, article, True)
    if type(inner) in (exp.EQ, exp.NEQ):
        turned = exp.NEQ if type(inner) is exp.EQ else exp.EQ
        return _compared_as(turned, inner, scope, article)
    return f"it is not so that {condition(inner, scope)}"


def _compared_as(kind: type[exp.Expr], node: exp.Expr, scope: QueryScope, article: bool) -> str:
    only(node, "this", "expression")
    return f"{_left(node.this, scope, article)} {_COMPARED[kind]} {the(node.expression, scope)}"


def _connected(word: str) -> Callable[[exp.Expr, QueryScope, bool], str]:
    def told(node: exp.Expr, scope: QueryScope, _article: bool) -> str:
        only(node, "this", "expression")
        assert isinstance(node, exp.Connector)
        parts = []
        for each in node.flatten():
            clause = condition(each, scope)
            mixed = isinstance(each.unnest(), exp.Connector)
            parts.append(f"({clause})" if mixed and not clause.startswith("(") else clause)
        return f" {word} ".join(parts)

    return told


def _bracketed(node: exp.Expr, scope: QueryScope, article: bool) -> str:
    only(node, "this")
    return condition(node.this, scope, article=article)


def _truth(node: exp.Expr, _scope: QueryScope, _article: bool) -> str:
    if isinstance(node, exp.Literal):
        return f"{literal(node)} is true"
    return "this is always so" if node.this else "this is never so"


def _pattern(node: exp.Expr, scope: QueryScope, article: bool, no: bool = False) -> str:
    only(node, "this", "expression", "flag")
    if node.args.get("flag"):
        raise Untold("a pattern with a flag")
    verb = "does not match" if no else "matches"
    return f"{_left(node.this, scope, article)} {verb} the pattern {value(node.expression, scope)}"


_DENIED: dict[type[exp.Expr], Callable[..., str]] = {
    exp.Is: _is,
    exp.Like: _like,
    exp.ILike: _like,
    exp.In: _in,
    exp.Between: _between,
    exp.Exists: _exists,
    exp.Glob: _pattern,
    exp.RegexpLike: _pattern,
    exp.SimilarTo: _pattern,
}
_TOLD: dict[type[exp.Expr], Callable[..., str]] = {
    exp.And: _connected("and"),
    exp.Or: _connected("or"),
    exp.Not: _not,
    exp.Paren: _bracketed,
    exp.Boolean: _truth,
    exp.Literal: _truth,
    **_DENIED,
    **dict.fromkeys(_COMPARED, _compared),
}
