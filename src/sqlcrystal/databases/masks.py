"""Values taken out of SQL and of the question it answers, so that what is kept holds none.

«1» stands for a text and «n2» for a number, the same one wherever the same value stood. Of a query, constants are
masked, remarks dropped, and every name that is not the schema's renamed; kept are limits, places in ORDER BY and GROUP
BY, sizes of types, and formats and units of time. The result is read once more, token by token: a query in which
anything else is left cannot be kept. Not guaranteed: a value that a question names in words without a capital and that
no query compares with.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import NamedTuple

from msgspec import Struct
from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from sqlcrystal.databases.engines import engine_of
from sqlcrystal.databases.parsing import Unparsable, language, parse_all, tokenize, written
from sqlcrystal.gaps import Gap, Part, between

MASK = re.compile(r"«n?\d{1,3}»")
# Pieces of a question that look like values, compared with or not: quoted, with a digit or an @, a name.
_QUOTED = r"\"[^\"]+\"|“[^”]+”|‘[^’]+’|(?<!\w)'[^']+'(?!\w)"
_CHUNK = r"[^\s,;?!()«»]+"
_TOKEN = re.compile(rf"{MASK.pattern}|{_QUOTED}|{_CHUNK}|[«»]")
_WORD = re.compile(r"(?<!\w)[^\W\d_][\w'’.-]*")
# Capitalised where a question or a sentence begins, and nobody's name.
_OPENING_WORDS = """
a about according across after all also among an and any are as at average based before below between by calculate
can compare compute consider could count describe determine did display do does during each every explain fetch
find first for from get give given group had has have how i identify if in include is it its last let like list
many me more most name need of on only or order out over per please print provide rank report retrieve return
select should show since some sort summarize tell than that the their there these they this those to top total
under until up was we were what what's when where whether which while who whom whose why will with within without
would you
"""
_OPENING = frozenset(_OPENING_WORDS.split())
UNREADABLE = "(not kept: its values cannot be told from the rest)"


class Masked(NamedTuple):
    """A question and its query without values."""

    question: str
    sql: str | None


class _Names:
    """The mask that stands for each value; two spellings of one value share a mask."""

    def __init__(self, known: Mapping[str, str] | None = None, *, taken: str = "") -> None:
        self._known = {value.casefold(): (value, mark) for value, mark in (known or {}).items()}
        self._last = max((int(number) for number in re.findall(r"«n?(\d+)»", taken)), default=0)

    def of(self, value: str, number: bool = False) -> str:
        if MASK.fullmatch(value):
            return value
        if value.casefold() not in self._known:
            self._last += 1
            self._known[value.casefold()] = (value, f"«{'n' if number else ''}{self._last}»")
        return self._known[value.casefold()][1]

    def values(self) -> dict[str, str]:
        """Tell which value each mask stands for."""
        return {mark: value for value, mark in self._known.values()}

    def apply(self, text: str) -> str:
        """The text with every known value masked, the longest first."""
        for value, mark in sorted(self._known.values(), key=lambda pair: len(pair[0]), reverse=True):
            text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", mark, text, flags=re.IGNORECASE)
        return text


def mask(question: str, sql: str | None, *, dialect: str, names: Iterable[str] = (), runs: bool = True) -> Masked:
    """Take out the query's constants and whatever in the question looks like a value; `names` are the schema's."""
    schema = frozenset(name.casefold() for name in names)
    marks = _Names()
    masked = None if sql is None else _mask_query(sql, marks, dialect, schema, runs=runs)
    words = {word.casefold() for name in schema for word in re.findall(r"[^\W_]+", name)} | schema
    return Masked(_mask_words(marks.apply(question), marks, words), masked)


def masked_with_values(sql: str, *, dialect: str, names: Iterable[str] = ()) -> tuple[str, dict[str, str]]:
    """Take out the constants of a query that nobody asked yet; with the value that each mask stands for."""
    marks = _Names()
    masked = _mask_query(sql, marks, dialect, frozenset(name.casefold() for name in names))
    return masked, marks.values()


def filled_sql(sql: str, values: Mapping[str, str]) -> str:
    """Put values back in the place of their masks."""
    for mark, value in values.items():
        number = mark.startswith("«n") and re.fullmatch(r"-?\d+(?:\.\d+)?", value) is not None
        quoted = value.replace("'", "''")
        for old, new in ((f"'{mark}'", value if number else f"'{quoted}'"), (mark, quoted)):
            sql = sql.replace(old, new)
    return sql


def mask_like(sql: str, *, masked: str, spoken: str, dialect: str, names: Iterable[str] = ()) -> str:
    """Another query for a question that was masked before: a value of the question gets the mask it has there."""
    schema = frozenset(name.casefold() for name in names)
    return _mask_query(sql, _Names(_values(masked, spoken), taken=masked), dialect, schema)


def is_masked(text: str) -> bool:
    """Tell whether a value was taken out."""
    return MASK.search(text) is not None


def _values(masked: str, spoken: str) -> dict[str, str]:
    """Tell which value each mask of a question stands for, from the question as it was spoken."""
    marks, pieces = MASK.findall(masked), MASK.split(masked)
    parts: list[Part] = [pieces[0]]
    for piece in pieces[1:]:
        parts += [Gap(), piece] if piece else [Gap()]
    return dict(zip(between(parts, spoken) or (), marks, strict=False))


def _mask_query(sql: str, marks: _Names, dialect: str, schema: frozenset[str], *, runs: bool = True) -> str:
    reader = Reader(dialect=dialect, schema=schema, name=marks.of, runs=runs)
    return masked_sql(sql, reader) or UNREADABLE


def _mask_words(question: str, marks: _Names, known: set[str]) -> str:
    def masked(found: re.Match[str]) -> str:
        chunk = found[0]
        if MASK.fullmatch(chunk):
            return chunk
        plain = chunk.strip("\"“”‘’'.")
        if plain and (plain != chunk.strip(".") or re.search(r"[\d@]", chunk)):
            return chunk.replace(plain, marks.of(plain, plain.isdecimal()))
        return _WORD.sub(named, chunk)

    def named(found: re.Match[str]) -> str:
        word = found[0].rstrip(".'’-")
        if not word[:1].isupper() or word.casefold() in _OPENING or _in_schema(word, known):
            return found[0]
        return found[0].replace(word, marks.of(word))

    return _TOKEN.sub(masked, question)


def _in_schema(word: str, known: set[str]) -> bool:
    plain = word.casefold()
    return plain in known or plain.rstrip("s") in known or f"{plain}s" in known


# How a query is masked.

_UNIT = r"(?:second|minute|hour|day|week|month|quarter|year)s?"
_TIME = re.compile(
    rf"(?:%[a-zA-Z]|[-:/ .T])+|(?:YYYY|MM|DD|HH24|MI|SS|[-:/ ])+|(?:start of )?{_UNIT}|now|localtime|utc|unixepoch",
    re.IGNORECASE,
)
_MASKED = re.compile(rf"[%\s]*«n?\d{{1,3}}»(?: {_UNIT})?[%\s]*", re.IGNORECASE)
_EMPTY = re.compile(r"[% _]*")
_ADDED = re.compile(r"[% _,]*")
"""Tokens that hold nothing, and the separators that sqlglot writes out."""
# Pieces that a function must have in its name for its formats and units to be told from values.
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
# Names that a caller binds, or a session holds, say nothing that a later reader could use.
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
    """The reading of one query: its dialect, the names of its schema, and what masks a value."""

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
        # A kept text is masked again when it becomes a card, and must come out the same.
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
        text = engine_of(reader.dialect).quoted_names_may_be_text and name.args.get("quoted") and word not in defined
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
