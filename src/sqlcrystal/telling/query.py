"""A whole query in words: a list of values of some rows, and the clauses that follow it."""

from sqlglot import exp

from sqlcrystal.telling.conditions import condition, conjuncts, filters
from sqlcrystal.telling.joins import counted, joined
from sqlcrystal.telling.ordering import grouped, ordered_and_limited
from sqlcrystal.telling.scope import Known, Mention, QueryScope, Untold, listed, only
from sqlcrystal.telling.values import has_article, is_count, value

_SELECT = ("expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "distinct")
_SET = ("this", "expression", "distinct", "order", "limit", "offset", "with_", "by_name")
_SETS: dict[type[exp.Expr], str] = {
    exp.Union: "together with",
    exp.Intersect: "only those that are also among",
    exp.Except: "without those among",
}


def sentence(query: exp.Expr, known: Known) -> tuple[str, list[Mention]]:
    """Tell a query in one sentence, with the filters and joins that it mentions."""
    teller = _Teller(known)
    told = teller.whole(query)
    return f"{told[:1].upper()}{told[1:]}.", teller.mentions


class _Teller:
    """Tells the queries of one statement."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self.mentions: list[Mention] = []

    def whole(self, query: exp.Expr) -> str:
        """Tell a statement, with its verb."""
        plain, defined = query.unnest(), self._defined(query)
        if isinstance(plain, exp.SetOperation):
            return f"lists {self._set(plain, None)}{defined}"
        if not isinstance(plain, exp.Select):
            raise Untold(plain.key)
        verb, told = self._select(plain, None)
        return f"{verb} {told}{defined}"

    def inner(self, query: exp.Expr, around: QueryScope) -> str:
        """Tell a query within another as what it gives; of one that is only looked into, its rows."""
        exists = isinstance(query, exp.Exists)
        plain = query.this.unnest() if exists else query.unnest()
        if isinstance(query, exp.Subquery):
            only(query, "this", "alias")
        if isinstance(plain, exp.SetOperation):
            return f"({self._set(plain, around)})"
        if not isinstance(plain, exp.Select) or plain.args.get("with_"):
            raise Untold(f"{plain.key} within a query")
        if exists:
            return self._existing(plain, around)
        _, told = self._select(plain, around)
        simple = not any(plain.args.get(key) for key in ("where", "group", "having", "order", "limit", "distinct"))
        return told if simple and not plain.args.get("joins") else f"({told})"

    def _scope(self, select: exp.Select, around: QueryScope | None) -> QueryScope:
        scope = QueryScope(select, self.known, self.inner, around)
        scope.mentions = self.mentions
        scope.counted = counted(scope)
        return scope

    def _defined(self, query: exp.Expr) -> str:
        """Tell what the names mean that stand in front of a query."""
        clause = query.args.get("with_")
        if clause is None:
            return ""
        only(clause, "expressions")
        told = []
        for each in clause.expressions:
            only(each, "this", "alias", "materialized")
            only(each.args["alias"], "this")
            plain = each.this.unnest()
            text = self._set(plain, None) if isinstance(plain, exp.SetOperation) else self._select(plain, None)[1]
            told.append(f"; “{each.alias}” stands for {text}")
        return "".join(told)

    def _set(self, query: exp.Expr, around: QueryScope | None) -> str:
        """Tell two lists that are put together."""
        only(query, *_SET)
        if query.args.get("by_name"):
            raise Untold("lists put together by name")
        parts = []
        for side in (query.args["this"], query.args["expression"]):
            if side.args.get("with_"):
                raise Untold("names defined within a list")
            plain = side.unnest()
            if isinstance(plain, exp.SetOperation):
                parts.append(f"({self._set(plain, around)})")
            elif isinstance(plain, exp.Select):
                told = self._select(plain, around)[1]
                parts.append(f"({told})" if parts or "; " in told else told)
            else:
                raise Untold(plain.key)
        kept = "; each row only once" if query.args.get("distinct") else "; repeats kept"
        first = query
        while not isinstance(first, exp.Select):
            first = first.this
        scope = self._scope(first, around)
        clauses = "".join(f"; {clause}" for clause in ordered_and_limited(query, scope))
        return f"{parts[0]}, {_SETS[type(query)]} {parts[1]}{kept}{clauses}"

    def _select(self, select: exp.Expr, around: QueryScope | None) -> tuple[str, str]:
        """Tell a SELECT: its verb, and what it gives."""
        assert isinstance(select, exp.Select)
        only(select, *_SELECT, "with_")
        scope = self._scope(select, around)
        verb, head = self._head(select, scope)
        read = joined(scope)
        told = head.format(read) if read else head
        return verb, "; ".join([self._filtered(told, select, scope), *self._clauses(select, scope)])

    def _existing(self, select: exp.Select, around: QueryScope) -> str:
        """Tell the rows that a query looks for; the values it lists do not matter."""
        only(select, *_SELECT)
        scope = self._scope(select, around)
        told = "; ".join([self._filtered(joined(scope), select, scope), *self._clauses(select, scope)])
        return f"({told})"

    def _filtered(self, told: str, select: exp.Expr, scope: QueryScope) -> str:
        where = select.args.get("where")
        if where is None:
            return told
        tests = conjuncts(where.this)
        return f"{told} {filters(tests, scope)}"

    def _clauses(self, select: exp.Expr, scope: QueryScope) -> list[str]:
        clauses: list[str] = []
        distinct, group, having = (select.args.get(key) for key in ("distinct", "group", "having"))
        if group is not None:
            clauses.append(grouped(group, scope))
        if having is not None:
            for test in conjuncts(having.this):
                words = condition(test, scope)
                self.mentions.append(Mention(words, test, tuple(scope.sources)))
                clauses.append(f"only where {words}")
        if distinct is not None:
            only(distinct, "on")
            on = distinct.args.get("on")
            one = len(select.expressions) == 1 and not isinstance(select.expressions[0], exp.Star)
            each = f"only the first for each {listed([value(key, scope) for key in on.expressions])}" if on else ""
            clauses.append(each or ("each only once" if one else "each combination only once"))
        return [*clauses, *ordered_and_limited(select, scope)]

    def _head(self, select: exp.Select, scope: QueryScope) -> tuple[str, str]:
        """Tell the verb and the values; `{}` is the place of the rows that they are of."""
        items = [item.unalias() for item in select.expressions]
        if not scope.sources:
            return "gives", _safe(listed([value(item, scope) for item in items]))
        grouped_by = select.args.get("group") is not None
        if any(isinstance(item, exp.Star) or (isinstance(item, exp.Column) and item.is_star) for item in items):
            return "lists", _with_all_columns(items, scope)
        if len(items) == 1 and is_count(items[0]) and not grouped_by:
            rows = "{}" if len(scope.sources) == 1 else f"{_safe(scope.counted)} of {{}}"
            rows = rows if len(scope.sources) == 1 or scope.around is not None else f"the {rows}"
            return "counts", rows if scope.around is None else f"the number of {rows}"
        counts = [item for item in items if is_count(item)]
        others = [_safe(value(item, scope)) for item in items if not is_count(item)]
        article = "the " if counts or has_article(next(i for i in items if not is_count(i)), scope) else ""
        rows = scope.counted
        number = f"number of {_safe(rows)}" if len(scope.sources) > 1 and rows != scope.subject else "number"
        parts = [*others, *[number] * bool(counts)]
        alone = not grouped_by and all(item.find(exp.AggFunc) and not item.find(exp.Window) for item in items)
        told = f"{article}{listed(parts)}"
        said = len(scope.sources) == 1 and not counts and told.endswith(f" of {_safe(scope.subject)}")
        return "gives" if alone else "lists", told if said else f"{told} of {{}}"


def _with_all_columns(items: list[exp.Expr], scope: QueryScope) -> str:
    for item in items:
        if item.find(exp.Except, exp.Replace) or (isinstance(item, exp.Star) and any(item.args.values())):
            raise Untold("a choice of columns")
    others = [value(item, scope) for item in items if not item.is_star]
    stars = [scope.sources[0].noun if len(scope.sources) == 1 else words for words in _starred(items, scope)]
    of = "" if not any(stars) or len(scope.sources) == 1 else f" of the {listed(list(filter(None, stars)))}"
    more = f" and the {_safe(listed(others))}" if others else ""
    return f"{{}} with all columns{of}{more}"


def _starred(items: list[exp.Expr], scope: QueryScope) -> list[str]:
    tables = [item.table.lower() for item in items if isinstance(item, exp.Column) and item.is_star]
    return [source.noun for source in scope.sources if source.alias.lower() in tables]


def _safe(text: str) -> str:
    """Keep a text from being taken for a form with places to fill."""
    return text.replace("{", "{{").replace("}", "}}")
