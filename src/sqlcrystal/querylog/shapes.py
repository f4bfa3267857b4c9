"""From statements to shapes: parsed, refused or kept; those that differ in literals and layout alone are one.

Statements that seem to hold a secret are refused. A secret is recognised by its form and by the column that is
compared; one that looks like any other word, in a column that does not say so, is not. A parameter without a value gets
the value that its column holds most.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec import Struct, field
from sqlglot import exp

from sqlcrystal.databases.guard import check
from sqlcrystal.databases.layout import layout_of, owner_of
from sqlcrystal.databases.parsing import MAX_CHARACTERS, Unparsable, grammar, parse, parse_all, written
from sqlcrystal.protocols import Database
from sqlcrystal.querylog.readers import Found, LoggedQuery, Reason, Refused, is_template
from sqlcrystal.types import Cell, Failure, FailureKind

_FORMS = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\b(?:sk|pk|rk)[-_](?:live|test|proj|ant)?[-_]?\w{16,}"
    r"|\bgh[pousr]_\w{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}|\bxox[abprs]-[\w-]{10,}|\bAIza[\w-]{30,}"
    r"|\bsqlc_\w{20,}|\beyJ[\w-]{10,}\.[\w-]{10,}\.|\$(?:2[aby]|argon2\w*|6|5)\$|://[^/\s:@]+:[^/\s@]+@"
    r"|\b(?i:bearer|basic)\s+[\w.~+/=-]{16,}|\b(?i:password|passwd|pwd|secret|api_?key|token)\s*[=:]\s*\S{6,}"
)
_COLUMN = re.compile(
    r"(?:^|_)(?:password|passwd|pwd|passphrase|secret|token|api_?key|private_?key|access_?key|credential|cvv|cvc|pin|"
    r"ssn|iban|card_?number)s?(?:_|$)",
    re.IGNORECASE,
)
_RANDOM = re.compile(r"[A-Za-z0-9+/_=-]{32,}")
_LEAST_KINDS = 3


def holds_secret(tree: exp.Expr) -> bool:
    """Tell whether a text of a query looks like a secret, or is compared with a column of secrets."""
    return any(_is_secret(literal) for literal in tree.find_all(exp.Literal)) or any(
        _FORMS.search(remark) for remark in _remarks(tree)
    )


def _is_secret(literal: exp.Literal) -> bool:
    text = str(literal.this)
    if literal.is_string and (_FORMS.search(text) or _is_random(text)):
        return True
    return bool(text) and any(_COLUMN.search(name) for name in _told_with(literal))


def _told_with(literal: exp.Literal) -> Iterator[str]:
    """Name the columns that a text is compared with or goes into a function with, and the name that it is given."""
    near = literal.parent
    while near is not None and not isinstance(near, exp.Query | exp.Connector | exp.If):
        if isinstance(near, exp.Predicate | exp.Func):
            yield from (column.name for column in near.find_all(exp.Column))
        if isinstance(near, exp.Alias):
            yield near.alias
        near = None if isinstance(near, exp.Predicate) else near.parent
    case = near.parent if isinstance(near, exp.If) else None
    if case is not None and isinstance(case.this, exp.Expr):  # CASE password WHEN 'it'
        yield from (column.name for column in case.this.find_all(exp.Column))


def _is_random(text: str) -> bool:
    """Tell whether a long text without a blank mixes small and capital letters and digits, as keys do and words do not.

    A hash or an identifier in hexadecimal has only one case of letters, and passes.
    """
    kinds = (str.islower, str.isupper, str.isdigit)
    return any(
        sum(any(kind(sign) for sign in part[0]) for kind in kinds) >= _LEAST_KINDS for part in _RANDOM.finditer(text)
    )


def _remarks(tree: exp.Expr) -> Iterator[str]:
    for node in tree.walk():
        yield from node.comments or ()


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


ROWS_WANTED = 10
"""The value of a bound LIMIT."""
SECONDS_TO_LOOK = 5.0


def with_values(sql: str, database: Database) -> str | None:
    """Write the query with values its columns hold; None where one of its parameters is compared with no column."""
    try:
        query = parse(sql, database.dialect)
        layout = layout_of(database.schema(), database.dialect)
        for node in list(query.find_all(*_OUTSIDE)):
            value = _limit(node) or _held(node, database, layout)
            if value is None:
                return None
            node.replace(value)
        return written(query, database.dialect, comments=False)
    except Unparsable:
        return None


def _limit(node: exp.Expr) -> exp.Expr | None:
    if isinstance(node.parent, exp.Offset):
        return exp.Literal.number(0)
    return exp.Literal.number(ROWS_WANTED) if isinstance(node.parent, exp.Limit | exp.Fetch) else None


def _held(node: exp.Expr, database: Database, layout: dict[str, tuple[str, ...]]) -> exp.Expr | None:
    """Give the commonest value of the column that a parameter is compared with."""
    test = node.parent
    if not isinstance(test, exp.EQ | exp.NEQ | exp.GT | exp.GTE | exp.LT | exp.LTE | exp.In | exp.Between | exp.Like):
        return None
    column = next((side for side in test.iter_expressions() if isinstance(side, exp.Column)), None)
    owner = owner_of(column, layout) if column is not None else None
    if column is None or owner is None:
        return None
    named = exp.column(column.this.copy())
    look = exp.select(named).from_(exp.to_identifier(owner)).where(named.copy().is_(exp.null()).not_())
    look = look.group_by(named.copy()).order_by(exp.Count(this=exp.Star()).desc(), named.copy()).limit(1)
    result = database.execute(look.sql(grammar(database.dialect)), timeout=SECONDS_TO_LOOK)
    return None if isinstance(result, Failure) or not result.rows else _literal(result.rows[0][0])


def _literal(value: Cell) -> exp.Expr:
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    return exp.Literal.number(value) if isinstance(value, int | float) else exp.Literal.string(str(value))
