"""The first lock: which SQL may reach an engine at all, decided on the statement's syntax tree.

What it does NOT guarantee: that the engine reads the text as sqlglot does, that a view or a user-defined function the
statement names is harmless, or that the statement is cheap. The engine lock of each adapter answers for those.
"""

import logging
import re
import threading
from collections.abc import Set
from functools import lru_cache

from msgspec import Struct
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token, TokenType
from sqlglot.tokens import Tokenizer

from sqlcrystal.databases import vocabulary
from sqlcrystal.types import Failure, FailureKind

MAX_CHARACTERS = 200_000
MAX_DEPTH = 100
MAX_BARE_JOINS = 10
MAX_TYPE_CALLS = 5
_OPENING = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE})
_CLOSING = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END})
_JOINS = frozenset({TokenType.JOIN, TokenType.STRAIGHT_JOIN, TokenType.APPLY})
_JOIN_CONDITION = frozenset({TokenType.ON, TokenType.USING})
_ESCAPES = re.compile(r"\x1b\[\d*m")
_PLAIN_NAME = re.compile(r"[^\W\d][\w$]*")
_ROOTS = (exp.Select, exp.SetOperation, exp.Values, exp.Subquery)
logging.getLogger("sqlglot").setLevel(logging.ERROR)  # it warns of every statement the guard is about to refuse
_PARTS = vocabulary.node_types()
_LEAVES = frozenset({exp.Identifier, exp.Literal, exp.Null, exp.Boolean, str, bool, type(None)})


def check(sql: str, dialect: str) -> Failure | None:
    """None when the statement may run; else why it may not (refused) or why it does not parse (syntax)."""
    if len(sql) > MAX_CHARACTERS:
        return _refused(f"the statement is longer than {MAX_CHARACTERS} characters")
    return _checked(sql, dialect)


@lru_cache(maxsize=8192)
def _checked(sql: str, dialect: str) -> Failure | None:
    """The same verdict, remembered: scoring and repair ask about the same statement many times."""
    try:
        statements = _parsed(sql, dialect)
    except SqlglotError as error:
        return Failure(FailureKind.SYNTAX, " ".join(_ESCAPES.sub("", str(error)).split())[:500])
    except RecursionError:
        return _refused("the statement is nested too deeply")
    if isinstance(statements, str):
        return _refused(statements)
    if len(statements) != 1:
        found = len(statements)
        return (
            _refused(f"one statement may run, found {found}") if found else Failure(FailureKind.SYNTAX, "no statement")
        )
    return _forbidden(statements[0], dialect)


def _parsed(sql: str, dialect: str) -> list[exp.Expr] | str:
    """The statements of the text, or why they are not worth parsing."""
    if "\x00" in sql:
        return "the statement holds a NUL character"
    if dialect == "mysql" and ("/*!" in sql or "/*M!" in sql):
        return "a comment that MySQL executes is not allowed in a read-only query"
    tokenizer, parser = _readers.of(dialect)
    tokens = tokenizer.tokenize(sql)
    if _may_exceed(sql) and (excess := _excess(tokens, parser.TYPE_TOKENS)):
        return excess
    return [tree for tree in parser.parse(tokens, sql) if tree and type(tree) is not exp.Semicolon]


def bare(sql: str, dialect: str) -> str:
    """The text without the semicolons and remarks at its end, so that it can stand inside another query."""
    try:
        tokens = _readers.of(dialect)[0].tokenize(sql)
    except SqlglotError:
        return sql
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    return sql[: tokens[-1].end + 1] if tokens else ""


class _Readers(threading.local):
    """A thread's tokenizer and parser of each dialect: to make them takes a fifth of the time to read a statement."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[Tokenizer, Parser]] = {}

    def of(self, dialect: str) -> tuple[Tokenizer, Parser]:
        """The pair; both start anew with every text."""
        if dialect not in self._made:
            language = Dialect.get_or_raise(dialect)
            self._made[dialect] = (language.tokenizer(), language.parser())
        return self._made[dialect]


_readers = _Readers()


def _forbidden(tree: exp.Expr, dialect: str) -> Failure | None:
    """The first node that no reading statement needs, found in one walk."""
    if not isinstance(tree, _ROOTS):
        return _refused(f"{_kind(tree)} is not a query; only SELECT, WITH … SELECT, set operations and VALUES may run")
    functions = vocabulary.FUNCTIONS[dialect]
    waiting: list[exp.Expr] = [tree]
    while waiting:
        node = waiting.pop()
        kind = type(node)
        if kind not in _PARTS and (reason := _reason(node, dialect, functions)):
            return _refused(f"{reason} is not allowed in a read-only query")
        for value in node.args.values():
            holds = type(value)
            if holds is list:
                waiting += [part for part in value if isinstance(part, exp.Expr)]
            elif holds not in _LEAVES and isinstance(value, exp.Expr):
                waiting.append(value)
    return None


def _reason(node: exp.Expr, dialect: str, functions: vocabulary.Denied) -> str | None:
    """Why a node outside the plain vocabulary may not stand here, if so."""
    kind = type(node)
    if kind is exp.Table:
        return _table(node, dialect)
    if kind is exp.Select:
        return _select(node)
    if kind is exp.Anonymous or kind is exp.AnonymousAggFunc:
        return _function(node.name, functions)
    return _kind(node)


def _function(name: str, functions: vocabulary.Denied) -> str | None:
    """A function sqlglot has no class for is judged by name; a name spelt with escapes hides something."""
    lowered = name.lower()
    if not _PLAIN_NAME.fullmatch(name):
        return f"function name {name!r}"
    if lowered in functions.allowed:
        return None
    if lowered in functions.names or lowered.startswith(functions.prefixes):
        return f"function {lowered}"
    return None


def _table(node: exp.Expr, dialect: str) -> str | None:
    """Tables that are really commands, or files in disguise."""
    name = node.name.lower()
    if dialect == "sqlite" and name.startswith(("pragma_", "sqlite_dbpage", "dbstat")):
        return f"table {name}"
    if dialect == "duckdb" and vocabulary.looks_like_a_file(name):
        return f"file {node.name!r}"
    return None


def _select(node: exp.Expr) -> str | None:
    """The parts of a SELECT that lock, write, or steer the engine."""
    arguments = node.args
    if arguments.get("into"):
        return "SELECT INTO"
    if arguments.get("locks"):
        return "a locking clause"
    return "an optimizer hint" if arguments.get("hint") else None


def _may_exceed(sql: str) -> bool:
    """Whether the text holds enough brackets or joins for `_excess` to find something, which most texts do not."""
    lowered = sql.lower()
    opened = sum(map(lowered.count, ("(", "[", "{", "case")))
    return opened > MAX_TYPE_CALLS or lowered.count("join") + lowered.count("apply") > MAX_BARE_JOINS


def _excess(tokens: list[Token], types: Set[TokenType]) -> str | None:
    """Nesting that would overflow the parser's stack, and the two shapes on which its backtracking is exponential.

    Those are joins without a condition, and names of types used as functions, such as DATE(…), inside one another.
    """
    nested = [_Nested()]
    bare_joins = type_calls = 0
    before: TokenType | None = None
    for token in tokens:
        kind = token.token_type
        if kind in _OPENING:
            nested.append(_Nested(before in types))
            type_calls += nested[-1].is_type
        elif kind in _CLOSING and len(nested) > 1:
            closed = nested.pop()
            type_calls -= closed.is_type
            bare_joins += closed.open_join
        elif kind in _JOINS:
            bare_joins += nested[-1].open_join
            nested[-1].open_join = True
        elif kind in _JOIN_CONDITION:
            nested[-1].open_join = False
        if len(nested) > MAX_DEPTH or type_calls > MAX_TYPE_CALLS or bare_joins > MAX_BARE_JOINS:
            return "the statement is nested too deeply, or joins too often without ON"
        before = kind
    return None


class _Nested(Struct):
    """One open parenthesis: does it belong to a type's name, and is its last JOIN still without a condition?"""

    is_type: bool = False
    open_join: bool = False


def _kind(node: exp.Expr) -> str:
    """What the user would call this node."""
    return (node.name or "command").upper() if type(node) is exp.Command else type(node).__name__.upper()


def _refused(message: str) -> Failure:
    return Failure(FailureKind.REFUSED, message)
