"""Queries without values: constants masked, remarks dropped, every name that is not the schema's renamed.

Kept are limits, places in ORDER BY and GROUP BY, sizes of types, and formats and units of time. The result is read once
more, token by token: a query in which anything else is left cannot be kept.
"""

import re
from collections.abc import Callable
from functools import cache

from msgspec import Struct
from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from sqlcrystal.databases.parsing import Unparsable, language, parse_all, tokenize, written

MASK = re.compile(r"«n?\d{1,3}»")
_UNIT = r"(?:second|minute|hour|day|week|month|quarter|year)s?"
_TIME = re.compile(
    rf"(?:%[a-zA-Z]|[-:/ .T])+|(?:YYYY|MM|DD|HH24|MI|SS|[-:/ ])+|(?:start of )?{_UNIT}|now|localtime|utc|unixepoch",
    re.IGNORECASE,
)
_MASKED = re.compile(rf"[%\s]*«n?\d{{1,3}}»(?: {_UNIT})?[%\s]*", re.IGNORECASE)
_EMPTY = re.compile(r"[% _]*")
_ADDED = re.compile(r"[% _,]*")
"""What holds nothing, and the separators that sqlglot writes out."""
# What a function must have in its name for its formats and units to be told from values.
_TIMELY = ("date", "time", "day", "unix", "trunc", "extract")
_CONSTANTS = (
    exp.HexString,
    exp.BitString,
    exp.ByteString,
    exp.RawString,
    exp.National,
    exp.UnicodeString,
    exp.JSONPath,
)
# What a caller binds, or a session holds: its name says nothing that a later reader could use.
_OUTSIDE = (exp.Placeholder, exp.Parameter, exp.SessionParameter)
_ENGINE_NAMES = frozenset(
    {"rowid", "_rowid_", "oid", "ctid", "main", "public", "sqlite_master", "sqlite_schema", "information_schema"}
    | {"pg_catalog", "excluded", "value", "key"}
)
_GRAMMAR = """
second seconds minute minutes hour hours day days week weeks month months quarter quarters year years decade
decades century centuries millennium millennia microsecond microseconds millisecond milliseconds dow doy isodow
isoyear epoch timezone julian yearday dayofweek dayofyear weekday yearweek day_hour day_minute day_second
hour_minute hour_second minute_second year_month
recursive materialized not rows range groups exclude preceding following unbounded current row ties others no
nulls first last only next percent ordinality with within filter separator respect ignore both leading trailing
at zone collate nocase binary rtrim distinct each lateral sets cube rollup window of bernoulli system lambda
unknown precision varying double local group by indexed sample if path placing symmetric repeatable
utf8 utf8mb4 latin1 utf8mb4_bin utf8mb4_general_ci utf8mb4_unicode_ci noaccent
"""
_WORDS = frozenset(_GRAMMAR.split())
_PLAIN_TOKENS = frozenset({TokenType.VAR, TokenType.IDENTIFIER})
_CONSTANT_TOKENS = frozenset(
    kind
    for kind in TokenType
    if kind.name.endswith("_STRING") or kind in {TokenType.PARAMETER, TokenType.PLACEHOLDER, TokenType.INTRODUCER}
)


class Reader(Struct, frozen=True, kw_only=True):
    """How one query is read: its dialect, the names of its schema, and what masks a value."""

    dialect: str
    schema: frozenset[str]
    name: Callable[[str, bool], str]
    """The mask of a value, and whether it is a number."""
    runs: bool = True
    """A query that the engine took calls functions that are there; of one that it refused any name may be a value."""


class _Unmaskable(Exception):
    """Something in a query that no rule of this module speaks of."""


def masked_sql(sql: str, reader: Reader) -> str | None:
    """The query without values; None where values cannot be told from the rest."""
    try:
        once = _masked(sql, reader)
        # What is kept is masked again when it becomes a card, and must come out the same.
        return _masked(once, reader)
    except (Unparsable, _Unmaskable):
        return None


def _masked(sql: str, reader: Reader) -> str:
    trees = [tree for tree in parse_all(sql, reader.dialect) if tree is not None]
    if len(trees) != 1 or not isinstance(trees[0], exp.Query | exp.Values | exp.Pivot):
        raise _Unmaskable
    query = trees[0]
    if query.find(*_OUTSIDE):
        raise _Unmaskable
    _mask_constants(query, reader)
    renamed = _rename(query, reader)
    functions = {node.name.casefold() for node in query.find_all(exp.Anonymous, exp.AnonymousAggFunc)}
    numbers = {str(node.this) for node in query.find_all(exp.Literal) if not node.is_string}
    text = written(query, reader.dialect, comments=False)
    _refuse_leftovers(text, reader, names=renamed | (functions if reader.runs else set()), numbers=numbers)
    return text


def _mask_constants(query: exp.Expr, reader: Reader) -> None:
    for node in list(query.find_all(exp.Literal, *_CONSTANTS)):
        if isinstance(node, _CONSTANTS):
            masked = MASK.search(node.sql()) if _is_masked_path(node) else None
            node.replace(exp.Literal.string(masked[0] if masked else reader.name(node.sql(), False)))
        elif not _is_kept(node):
            text = str(node.this)
            core = text.strip("%").strip() or text
            number = not node.is_string or isinstance(node.parent, exp.Interval)
            node.replace(exp.Literal.string(text.replace(core, reader.name(core, number))))


def _is_masked_path(node: exp.Expr) -> bool:
    """Tell whether a mask was read as a path of JSON with one step."""
    steps = [str(step.this) for step in node.find_all(exp.JSONPathKey)]
    return len(steps) == 1 and MASK.fullmatch(steps[0]) is not None and len(node.expressions) <= 2


def _is_kept(literal: exp.Expr) -> bool:
    """Tell whether a constant says nothing of any cell."""
    text, parent = str(literal.this), literal.parent
    if literal.is_string:
        timely = isinstance(parent, exp.Func) and any(word in _function(parent) for word in _TIMELY)
        return bool(_EMPTY.fullmatch(text) or _MASKED.fullmatch(text) or (timely and _TIME.fullmatch(text)))
    return isinstance(parent, exp.Limit | exp.Offset | exp.Fetch | exp.DataTypeParam) or _is_place(literal)


def _function(node: exp.Expr) -> str:
    return node.name.lower() if isinstance(node, exp.Anonymous) else node.key


def _is_place(literal: exp.Expr) -> bool:
    """Tell whether a number in ORDER BY or GROUP BY counts the columns of its query."""
    holder = literal.parent
    clause = holder.parent if isinstance(holder, exp.Ordered) else holder
    query = clause.parent if isinstance(clause, exp.Order | exp.Group) else None
    text = str(literal.this)
    return isinstance(query, exp.Query) and text.isdecimal() and 0 < int(text[:6]) <= len(query.selects)


def _rename(query: exp.Expr, reader: Reader) -> set[str]:
    """Give every name that is not the schema's a number; in SQLite a quoted one that names nothing is a text."""
    known = reader.schema | _ENGINE_NAMES
    renamed: dict[str, str] = {}
    defined = {str(name.this).casefold() for name in query.find_all(exp.Identifier) if _defines(name)}
    for name in list(query.find_all(exp.Identifier, bfs=False)):
        word = str(name.this).casefold()
        column = name.parent
        if word in known:
            continue
        text = reader.dialect == "sqlite" and name.args.get("quoted") and word not in defined
        if text and isinstance(column, exp.Column) and len(column.parts) == 1:
            column.replace(exp.Literal.string(reader.name(str(name.this), False)))
            continue
        if word not in renamed:
            renamed[word] = _new_name(len(renamed) + 1, known)
        name.set("this", renamed[word])
        name.set("quoted", False)
    return set(renamed.values())


def _defines(name: exp.Expr) -> bool:
    return isinstance(name.parent, exp.Alias | exp.TableAlias | exp.Window | exp.PivotAlias) and name.arg_key != "over"


def _new_name(number: int, known: frozenset[str]) -> str:
    name = f"_{number}"
    while name in known:
        name = f"_{name}"
    return name


def _refuse_leftovers(text: str, reader: Reader, *, names: set[str], numbers: set[str]) -> None:
    """Read what is about to be kept: each token must be a word of SQL, a name of the schema, a mask or harmless."""
    known = reader.schema | _ENGINE_NAMES | names | _WORDS
    tokens = tokenize(text, reader.dialect)
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        kind = token.token_type
        if token.comments or kind in _CONSTANT_TOKENS:
            raise _Unmaskable
        if kind is TokenType.STRING:
            fits: object = _ADDED.fullmatch(token.text) or _MASKED.fullmatch(token.text) or _TIME.fullmatch(token.text)
            fits = fits or token.text.casefold() in known  # a key of DuckDB's structures
        elif kind is TokenType.NUMBER:
            fits = token.text in numbers
        elif kind in _PLAIN_TOKENS:
            called = following is not None and following.token_type is TokenType.L_PAREN
            fits = token.text.casefold() in known or (called and _is_function(token, reader.dialect))
        else:
            fits = True
        if not fits:
            raise _Unmaskable


def _is_function(token: Token, dialect: str) -> bool:
    return token.token_type is TokenType.VAR and token.text.upper() in _functions(dialect)


@cache
def _functions(dialect: str) -> frozenset[str]:
    """The functions that the parser knows by name."""
    return frozenset(language(dialect).parser_class.FUNCTIONS) | frozenset(
        language(dialect).parser_class.FUNCTION_PARSERS
    )
