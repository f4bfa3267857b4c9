"""W2, W3, W3+A and W4: the edit as a structured diff, and words that need no model; and the failure modes they name.

Each of the fourteen modes is a rule over the wrong and the repaired syntax tree (docs/reference/cards.md)."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from typing import ClassVar

from sqlglot import exp

from sqlcrystal.types import Episode
from sqlcrystal.writing.card import DatabaseCardWriter, fence_sql, one_line
from sqlcrystal.writing.diff import QUERY, ClauseDiff, canonical, diff, parse

GUARDS = {
    "value-literal": (
        "Apply only when filtering on this column; verify the literal actually exists in the column first."
    ),
    "column-ref": "Apply only when the question means the same attribute; verify which column holds it.",
    "table-ref": "Apply only when the question is about the same entity; verify which table holds it.",
    "join": "Join only the tables whose columns the answer needs; verify that the join keeps every wanted row.",
    "join-condition": "Apply only when joining the same tables; verify the key columns on both sides.",
    "aggregate": "Apply only when the question asks for the same kind of total, count, average or extreme.",
    "group-by": "Add GROUP BY only when the answer is per entity/category.",
    "order-by": "Add ORDER BY only when the question asks for a ranking or an order; verify its direction.",
    "limit": "Add LIMIT only when the question asks for a fixed number of rows.",
    "distinct": "Use DISTINCT only when the question counts or lists different things and rows repeat.",
    "subquery": "Nest a query only when a value must be computed before the rows can be chosen.",
    "set-operation": "Combine queries only when the question asks for one set with, without, or within another.",
    "function-cast": "Apply only when the column is stored in the same form; verify its type and format first.",
    "predicate-logic": "Apply only when the question states the same condition; verify how its parts combine.",
}


def guard(modes: tuple[str, ...]) -> str:
    """Give the guard of the first mode; empty when the repair has none."""
    return GUARDS[modes[0]] if modes else ""


class Diff(DatabaseCardWriter):
    """W2: the clauses that changed."""

    name: ClassVar[str] = "W2"
    header: ClassVar[str] = "[Repair diffs of similar solved questions]"
    summary: ClassVar[str] = "bare diff of the query"

    def render(self, episode: Episode) -> str:
        """Write the diff without a label."""
        return self.render_diff(episode, title="Past repair:")

    def render_diff(self, episode: Episode, *, title: str) -> str:
        """Wrong, fixed and clause, once for each clause that changed; a first-try success has no wrong side."""
        question = f"Q: {one_line(episode.question.text)}"
        changes = diff(episode.attempt.sql, episode.sql, self.database.dialect)
        if not changes and episode.rounds:  # repaired by a spelling that the trees do not tell apart
            changes = (ClauseDiff(QUERY, one_line(episode.attempt.sql or ""), one_line(episode.sql)),)
        if not changes:
            return "\n".join(["Past success:", question, f"- Right at once: {one_line(episode.sql)}"])
        lines = [
            line
            for change in changes
            for line in (f"- Wrong: {change.wrong}", f"- Fixed: {change.fixed}", f"- Clause: {change.clause}")
        ]
        return "\n".join([title, question, *lines])

    def modes(self, episode: Episode) -> tuple[str, ...]:
        """Find the failure modes of the episode's repair."""
        return modes(episode.attempt.sql, episode.sql, self.database.dialect)


class DiffMode(Diff):
    """W3: the diff with its failure modes."""

    name: ClassVar[str] = "W3"
    header: ClassVar[str] = "[Repair diffs of similar solved questions]"
    summary: ClassVar[str] = "diff with its failure mode"

    def render(self, episode: Episode) -> str:
        """Write the labelled diff."""
        named = ", ".join(self.modes(episode))
        return self.render_diff(episode, title=f"Past repair (failure mode: {named}):" if named else "Past repair:")


class Anchor(DiffMode):
    """W3+A: the labelled diff, paired with the corrected query."""

    name: ClassVar[str] = "W3+A"
    header: ClassVar[str] = "[Repair diffs of similar solved questions and their final SQL]"
    summary: ClassVar[str] = "diff with its failure mode, the corrected query beneath (anchor)"

    def render(self, episode: Episode) -> str:
        """Write the labelled diff, then the query in full."""
        return f"{super().render(episode)}\n- Final SQL:\n{fence_sql(episode.sql)}"


class DiffGuard(DiffMode):
    """W4: the labelled diff, with the fixed guard of its first failure mode."""

    name: ClassVar[str] = "W4"
    header: ClassVar[str] = "[Repair diffs with applicability guards of similar solved questions]"
    summary: ClassVar[str] = "diff with a guard that says when it applies"

    def render(self, episode: Episode) -> str:
        """Write the labelled diff, then when it applies."""
        sentence = guard(self.modes(episode))
        return super().render(episode) + (f"\n- Guard: {sentence}" if sentence else "")


Bag = Counter[Hashable]
Trees = tuple[exp.Query, exp.Query]

ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.DPipe)
NOT_CALLED = (exp.AggFunc, exp.Connector, exp.Exists)
LOGIC = (exp.Predicate, exp.Connector, exp.Not)
HOMES = (exp.Where, exp.Having, exp.Group, exp.Order, exp.Limit, exp.Offset, exp.Join, exp.From, exp.Select)
FILTERS_AND_RESULTS = (exp.Where, exp.Having, exp.Select)

# The mode that a changed clause falls to when no finer rule fires.
BY_CLAUSE = {
    "WITH": "subquery",
    "SELECT": "column-ref",
    "FROM": "table-ref",
    "JOIN": "join",
    "WHERE": "predicate-logic",
    "HAVING": "predicate-logic",
    "GROUP BY": "group-by",
    "ORDER BY": "order-by",
    "LIMIT": "limit",
    "OFFSET": "limit",
    "SET OPERATION": "set-operation",
}


def modes(wrong: str | None, fixed: str, dialect: str) -> tuple[str, ...]:
    """Find the failure modes of a repair, in the table's order; none when one cannot be parsed or nothing changed."""
    before, after = parse(wrong, dialect), parse(fixed, dialect)
    changes = diff(wrong, fixed, dialect)
    if before is None or after is None or not changes:
        return ()
    trees = canonical(before, after)
    holding = tuple(mode for mode, holds in MODES.items() if holds(trees))
    return holding or fall_back(changes)


def fall_back(changes: tuple[ClauseDiff, ...]) -> tuple[str, ...]:
    """Take the modes of the clauses that changed, so that a change is never without one."""
    changed = {BY_CLAUSE.get(change.clause, "predicate-logic") for change in changes}
    return tuple(mode for mode in MODES if mode in changed)


# ── what a tree holds ────────────────────────────────────────────────────────────────────────────────────────────────


def _home(node: exp.Expr) -> exp.Expr | None:
    """Find the clause a node stands in; a projection's clause is its select."""
    return node.find_ancestor(*HOMES)


def _literals(tree: exp.Query) -> Bag:
    """Constants in filters and result columns."""
    return Counter(node.sql() for node in tree.find_all(exp.Literal) if isinstance(_home(node), FILTERS_AND_RESULTS))


def _columns(tree: exp.Query) -> Counter[tuple[str, str]]:
    """List columns in filters and result columns, as (table, column)."""
    columns = tree.find_all(exp.Column)
    return Counter((node.table, node.name) for node in columns if isinstance(_home(node), FILTERS_AND_RESULTS))


def _projected(tree: exp.Query) -> list[exp.Expr]:
    """List the result columns, in order."""
    return [node.unalias() for node in tree.selects]


def _tables(tree: exp.Query) -> Bag:
    """Stored tables; a common table expression's name is not one."""
    common = {cte.alias for cte in tree.find_all(exp.CTE)}
    return Counter(node.name for node in tree.find_all(exp.Table) if node.name not in common)


def _joins(tree: exp.Query) -> Iterator[exp.Join]:
    yield from tree.find_all(exp.Join)


def _join_kinds(tree: exp.Query) -> Bag:
    return Counter((join.side, join.kind if join.kind != "INNER" else "") for join in _joins(tree))


def _conditions(tree: exp.Query) -> Bag:
    """ON and USING, with the two sides of an equality in a fixed order."""
    conditions: Bag = Counter()
    for join in _joins(tree):
        on = join.args.get("on")
        for condition in on.flatten() if isinstance(on, exp.And) else [on] if on is not None else []:
            sides = [condition.this.sql(), condition.expression.sql()] if isinstance(condition, exp.EQ) else None
            conditions[" = ".join(sorted(sides)) if sides else condition.sql()] += 1
        conditions.update(f"using {column.name}" for column in join.args.get("using") or [])
    return conditions


def _kinds(tree: exp.Query, *kinds: type[exp.Expr]) -> Bag:
    return Counter(type(node).__name__ for node in tree.find_all(*kinds))


def _functions(tree: exp.Query) -> Bag:
    """Scalar functions, casts with their type, and arithmetic."""
    functions: Bag = Counter()
    for node in tree.find_all(exp.Func, *ARITHMETIC):
        if isinstance(node, NOT_CALLED):
            continue
        cast = f" {node.to.sql()}" if isinstance(node, exp.Cast) else ""
        name = node.name.lower() if isinstance(node, exp.Anonymous) else type(node).__name__
        functions[name + cast] += 1
    return functions


def _logic(tree: exp.Query) -> Bag:
    """Comparison, connective and negation of every filter and CASE, without what they compare."""
    return Counter(type(node).__name__ for node in tree.find_all(*LOGIC) if not isinstance(_home(node), exp.Join))


def _ordered(tree: exp.Query) -> list[str]:
    return [node.sql() for node in tree.find_all(exp.Ordered)]


def _limits(tree: exp.Query) -> list[str]:
    return sorted(node.sql() for node in tree.find_all(exp.Limit, exp.Offset))


def _nested(tree: exp.Query) -> int:
    """Selects inside the query, not counting the branches of its set operations."""
    return sum(1 for _ in tree.find_all(exp.Select)) - sum(1 for _ in tree.find_all(exp.SetOperation)) - 1


def _grouped(tree: exp.Query) -> Bag:
    return Counter(node.sql() for group in tree.find_all(exp.Group) for node in group.expressions)


# ── the rules ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _changed(measure: Callable[[exp.Query], object]) -> Callable[[Trees], bool]:
    """Tell whether the two queries differ in this."""
    return lambda trees: measure(trees[0]) != measure(trees[1])


def _replaced(measure: Callable[[exp.Query], Bag]) -> Callable[[Trees], bool]:
    """Tell whether each query has something here that the other lacks: a substitution, not an addition."""

    def holds(trees: Trees) -> bool:
        left, right = measure(trees[0]), measure(trees[1])
        return bool(left - right) and bool(right - left)

    return holds


def _column_ref(trees: Trees) -> bool:
    """Tell whether a column was replaced, or the result columns changed; an unnamed table may be any."""
    left, right = _columns(trees[0]), _columns(trees[1])
    lost, gained = list((left - right).elements()), list((right - left).elements())
    for column in list(lost):
        twin = next((other for other in gained if other[1] == column[1] and not (other[0] and column[0])), None)
        if twin is not None:
            lost.remove(column)
            gained.remove(twin)
    if lost and gained:
        return True
    results = [[node for node in _projected(tree) if isinstance(node, exp.Column | exp.Star)] for tree in trees]
    names = [[node.name for node in result] for result in results]
    return names[0] != names[1]


def _join(trees: Trees) -> bool:
    """Tell whether a table was joined or dropped, or the kind of a join changed."""
    count = [sum(_tables(tree).values()) for tree in trees]
    joined = [sum(1 for _ in _joins(tree)) for tree in trees]
    same_size = count[0] == count[1] and joined[0] == joined[1]
    return joined[0] != joined[1] or (same_size and _join_kinds(trees[0]) != _join_kinds(trees[1]))


def _join_condition(trees: Trees) -> bool:
    """Joined tables stay and their condition changed."""
    same = _tables(trees[0]) == _tables(trees[1])
    return same and bool(_conditions(trees[0]) or _conditions(trees[1])) and _changed(_conditions)(trees)


MODES: dict[str, Callable[[Trees], bool]] = {
    "value-literal": _replaced(_literals),
    "column-ref": _column_ref,
    "table-ref": _replaced(_tables),
    "join": _join,
    "join-condition": _join_condition,
    "aggregate": _changed(lambda tree: _kinds(tree, exp.AggFunc)),
    "group-by": _changed(_grouped),
    "order-by": _changed(_ordered),
    "limit": _changed(_limits),
    "distinct": _changed(lambda tree: _kinds(tree, exp.Distinct)),
    "subquery": _changed(_nested),
    "set-operation": _changed(lambda tree: _kinds(tree, exp.SetOperation)),
    "function-cast": _changed(_functions),
    "predicate-logic": _changed(_logic),
}
