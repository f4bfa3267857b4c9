"""From statements to shapes: parsed, refused or kept; those that differ in literals and layout alone are one."""

import hashlib
from collections import Counter
from collections.abc import Iterable

from msgspec import Struct, field
from sqlglot import exp

from sqlcrystal.databases.guard import check
from sqlcrystal.databases.parsing import MAX_CHARACTERS, Unparsable, parse_all, written
from sqlcrystal.querylog.records import Found, LoggedQuery, Reason, Refused
from sqlcrystal.querylog.secrets import holds_secret
from sqlcrystal.querylog.templates import is_template
from sqlcrystal.types import FailureKind

UNDECODED = "\N{REPLACEMENT CHARACTER}"
"""Stands where a byte of a log was no letter: a value that holds it would be another value."""
MOST_VARIANTS = 50
"""Statements of one shape that are told apart, to find the one that ran most."""
MOST_PLACES = 5
_QUERIES = (exp.Select, exp.SetOperation, exp.Subquery)
_OUTSIDE = (exp.Placeholder, exp.Parameter, exp.SessionParameter)
_ENGINE_TABLES = ("pg_", "sqlite_", "duckdb_")
_ENGINE_SCHEMAS = frozenset({"information_schema", "pg_catalog", "performance_schema", "sys", "mysql"})


class QueryShape(Struct, frozen=True, kw_only=True):
    """A query that was run: the statement of this shape that ran most, and how often all of them did."""

    digest: str
    """Names the shape; it says nothing of the literals."""
    sql: str
    parameters: tuple[str, ...] = ()
    """The literals of this statement."""
    uses: int
    places: tuple[str, ...] = ()
    bound: bool = False
    """Whether a caller bound values that the log does not hold."""


class Shapes(Struct, frozen=True, kw_only=True):
    """The sum of a log: its shapes, the most used first, and all that was refused."""

    read: int
    shapes: tuple[QueryShape, ...]
    refused: tuple[Refused, ...]


class _Gathered(Struct):
    variants: Counter[str] = field(default_factory=Counter)
    places: dict[str, None] = field(default_factory=dict)
    uses: int = 0


def shapes_of(found: Iterable[Found], dialect: str) -> Shapes:
    """Parse and sort the statements of a log; equal use is ordered by shape, so that a log gives the same order."""
    gathered: dict[str, _Gathered] = {}
    refused: list[Refused] = []
    read = 0
    for entry in found:
        read += 1
        parsed = entry if isinstance(entry, Refused) else _parsed(entry, dialect)
        if isinstance(parsed, Refused):
            refused.append(parsed)
            continue
        digest, sql = _digest(parsed, dialect), written(parsed, dialect, comments=False)
        group = gathered.setdefault(digest, _Gathered())
        group.uses += entry.uses
        if len(group.variants) < MOST_VARIANTS or sql in group.variants:
            group.variants[sql] += entry.uses
        if len(group.places) < MOST_PLACES and entry.place:
            group.places[entry.place] = None
    ranked = sorted(gathered.items(), key=lambda pair: (-pair[1].uses, pair[0]))
    return Shapes(read=read, shapes=tuple(_shape(*pair, dialect) for pair in ranked), refused=tuple(refused))


def _shape(digest: str, group: _Gathered, dialect: str) -> QueryShape:
    sql = min(group.variants, key=lambda text: (-group.variants[text], text))
    (tree,) = parse_all(sql, dialect)
    assert tree is not None
    return QueryShape(
        digest=digest,
        sql=sql,
        parameters=tuple(dict.fromkeys(str(literal.this) for literal in tree.find_all(exp.Literal))),
        uses=group.uses,
        places=tuple(group.places),
        bound=tree.find(*_OUTSIDE) is not None,
    )


def _parsed(entry: LoggedQuery, dialect: str) -> exp.Expr | Refused:
    """Give the tree of a statement, or say why it is not learned from."""

    def refused(reason: Reason) -> Refused:
        return Refused(reason, entry.place, entry.uses)

    if len(entry.sql) > MAX_CHARACTERS:
        return refused(Reason.TOO_LONG)
    if UNDECODED in entry.sql:
        return refused(Reason.LETTERS)
    if is_template(entry.sql):
        return refused(Reason.TEMPLATE)
    try:
        trees = [tree for tree in parse_all(entry.sql, dialect) if tree is not None]
        if len(trees) != 1:
            return refused(Reason.UNREADABLE)
        reason = _objection(trees[0], dialect)
        return trees[0] if reason is None else refused(reason)
    except Unparsable as error:
        return refused(Reason.TOO_MUCH if error.failure.kind is FailureKind.REFUSED else Reason.UNREADABLE)


def _objection(tree: exp.Expr, dialect: str) -> Reason | None:
    if not isinstance(tree, _QUERIES) or tree.find(exp.DML, exp.Into, exp.DDL) not in (None, tree):
        return Reason.WRITES
    if holds_secret(tree):
        return Reason.SECRET
    defined = {with_.alias.casefold() for with_ in tree.find_all(exp.CTE)}
    tables = [table for table in tree.find_all(exp.Table) if table.name.casefold() not in defined]
    if not [table for table in tables if not _is_engines_own(table)]:
        return Reason.NO_TABLE
    bound = tree.find(*_OUTSIDE) is not None
    return Reason.GUARDED if not bound and check(written(tree, dialect, comments=False), dialect) else None


def _is_engines_own(table: exp.Table) -> bool:
    return table.name.casefold().startswith(_ENGINE_TABLES) or table.db.casefold() in _ENGINE_SCHEMAS


def _digest(tree: exp.Expr, dialect: str) -> str:
    """Name the shape of a query: its words without literals, a list of values counting as one."""
    shape = tree.copy()
    for node in list(shape.find_all(exp.Literal, *_OUTSIDE)):
        node.replace(exp.Placeholder())
    for listed in shape.find_all(exp.In):
        if listed.expressions and all(isinstance(value, exp.Placeholder) for value in listed.expressions):
            listed.set("expressions", [exp.Placeholder()])
    words = written(shape, dialect, comments=False).casefold()
    return hashlib.sha256(f"{dialect}\0{words}".encode()).hexdigest()[:32]
