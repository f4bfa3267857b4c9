"""A whole query in words: its rows and clauses, and the parts of it that no word of its question asks for."""

import re

from msgspec import Struct
from sqlglot import exp

from sqlcrystal.databases.layout import from_clause
from sqlcrystal.databases.parsing import Unparsable, parse_all
from sqlcrystal.telling.conditions import condition, conjuncts, filters
from sqlcrystal.telling.scope import Known, Mention, QueryScope, RowSource, Untold, listed, only
from sqlcrystal.telling.values import grouped, has_article, is_count, ordered_and_limited, value
from sqlcrystal.telling.words import keyness, meet, stems, words

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


# Words of questions that ask for a comparison, a test or its turn without naming the column.
_ASKING: dict[type[exp.Expr], str] = {
    exp.Is: r"no|not|without|missing|unknown|never|yet|still|any|null|empty|none|un\w+|currently|have|has|had",
    exp.GT: r"more|over|above|greater|larger|older|higher|after|exceed\w*|at least|positive|\w+er|least|since|beyond",
    exp.GTE: r"more|over|at least|or more|minimum|since|from|after|older|\w+er|least|multiple|several",
    exp.LT: r"less|fewer|under|below|smaller|younger|lower|before|\w+er|negative|up to|shortfall",
    exp.LTE: r"most|at most|less|up to|no more|before|until|under|maximum",
    exp.Between: r"between|from|during|range|within|quarter|in",
}


def is_asked_for(mention: Mention, query: exp.Expr, question: str) -> bool:
    """Tell whether some word of a question asks for a filter or a join, as far as their spelling shows."""
    asked = stems(question)
    if isinstance(mention.node, exp.Join):
        return _is_used(mention, query) or meet(stems(mention.sources[0].noun), asked)
    return _is_filter_asked_for(mention.node, asked, question)


def _is_filter_asked_for(test: exp.Expr, asked: frozenset[str], question: str) -> bool:
    if test.find(exp.Subquery, exp.Select):  # what stands inside is looked at by itself
        return True
    named = " ".join([*(words(column.name) for column in test.find_all(exp.Column)), *_values(test)])
    if meet(stems(named), asked):
        return True
    spoken = question.lower()
    if any(value.lower() in spoken for value in _values(test) if len(value) > 1):
        return True
    if test.find(exp.AggFunc) or any(_abbreviates(value, word) for value in _values(test) for word in spoken.split()):
        return True
    return any(
        re.search(rf"\b(?:{said})\b", spoken) for kind, said in _ASKING.items() if isinstance(test.unnest(), kind)
    )


def _values(test: exp.Expr) -> list[str]:
    return [str(value.this).strip("%").strip() for value in test.find_all(exp.Literal)]


def _abbreviates(code: str, word: str) -> bool:
    """Tell whether a code may stand for a word: its letters in their order, the first one first."""
    letters = iter(word)
    short = code.lower()
    return 0 < len(short) < 5 and short.isalpha() and word[:1] == short[:1] and all(c in letters for c in short)


def _is_used(mention: Mention, query: exp.Expr) -> bool:
    """Tell whether anything but its own condition reads a joined table, or needs it to reach another."""
    source, join = mention.sources[0], mention.node
    own = {id(column) for column in join.find_all(exp.Column)}
    select = join.parent or query
    for column in select.find_all(exp.Column):
        if id(column) in own:
            continue
        if not column.table or column.table.lower() == source.alias.lower():
            return True
    return not source.table or (select.find(exp.Star) is not None and select.find(exp.Count) is None)


LONGEST = 1500
"""A sentence beyond this many characters helps nobody to judge."""


class Told(Struct, frozen=True):
    """A query in words; no words where no rule speaks of something in it."""

    words: str = ""
    unasked: tuple[str, ...] = ()
    """Filters and joins that no word of the question asks for, each as it stands in the words."""


def tell(sql: str | None, *, dialect: str, question: str = "", schema: str = "") -> Told:
    """Tell a query in one sentence; of a question, mark what it does not ask for."""
    try:
        trees = parse_all(sql or "", dialect)
        if len(trees) != 1 or not isinstance(trees[0], exp.Query):
            return Told()
        words, mentions = sentence(trees[0], Known.of(schema, dialect))
    except (Unparsable, Untold, RecursionError):
        return Told()
    if len(words) > LONGEST:
        return Told()
    marked = [each.words for each in mentions if question and not is_asked_for(each, trees[0], question)]
    return Told(words, tuple(dict.fromkeys(marked)))
