"""The first lock: which SQL may reach an engine at all, decided on the statement's syntax tree.

What it does NOT guarantee: that the engine reads the text as sqlglot does, that a view or a user-defined function the
statement names is harmless, or that the statement is cheap. The engine lock of each adapter answers for those.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from sqlcrystal.databases import vocabulary
from sqlcrystal.types import Failure, FailureKind

MAX_CHARACTERS = 200_000
MAX_DEPTH = 100
MAX_BARE_JOINS = 12
_OPENING = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE})
_CLOSING = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END})
_JOIN_CONDITION = frozenset({TokenType.ON, TokenType.USING})
_ESCAPES = re.compile(r"\x1b\[\d*m")
_PLAIN_NAME = re.compile(r"[^\W\d][\w$]*")
_ROOTS = (exp.Select, exp.SetOperation, exp.Values, exp.Subquery)
_PARTS = vocabulary.node_types()


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
    language = Dialect.get_or_raise(dialect)
    tokens = language.tokenize(sql)
    if excess := _excess(sql, tokens):
        return excess
    return [tree for tree in language.parser().parse(tokens, sql) if tree and type(tree) is not exp.Semicolon]


def _forbidden(tree: exp.Expr, dialect: str) -> Failure | None:
    """The first node that no reading statement needs, found in one walk."""
    if not isinstance(tree, _ROOTS):
        return _refused(f"{_kind(tree)} is not a query; only SELECT, WITH … SELECT, set operations and VALUES may run")
    functions = vocabulary.FUNCTIONS[dialect]
    for node in tree.walk():
        kind = type(node)
        if kind in _PARTS:
            continue
        if kind is exp.Table:
            reason = _table(node, dialect)
        elif kind is exp.Anonymous or kind is exp.AnonymousAggFunc:
            reason = _function(node.name, functions)
        elif kind is exp.Select:
            reason = _select(node)
        else:
            reason = _kind(node)
        if reason:
            return _refused(f"{reason} is not allowed in a read-only query")
    return None


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


def _excess(sql: str, tokens: list[Token]) -> str | None:
    """Nesting that would overflow the parser's stack, and joins on which its backtracking is exponential."""
    lowered = sql.lower()
    if lowered.count("(") + lowered.count("[") + lowered.count("{") + lowered.count("case") > MAX_DEPTH:
        depth = deepest = 0
        for token in tokens:
            kind = token.token_type
            depth += (kind in _OPENING) - (kind in _CLOSING)
            deepest = max(deepest, depth)
        if deepest > MAX_DEPTH:
            return f"the statement is nested more than {MAX_DEPTH} deep"
    if lowered.count("join") > MAX_BARE_JOINS and _bare_joins(tokens) > MAX_BARE_JOINS:
        return f"more than {MAX_BARE_JOINS} joins have neither ON nor USING"
    return None


def _bare_joins(tokens: Iterable[Token]) -> int:
    """How many JOINs are not followed by a condition before the next JOIN of the same parenthesis."""
    open_joins, bare = [0], 0
    for token in tokens:
        kind = token.token_type
        if kind is TokenType.L_PAREN:
            open_joins.append(0)
        elif kind is TokenType.R_PAREN and len(open_joins) > 1:
            bare += open_joins.pop()
        elif kind is TokenType.JOIN:
            bare += open_joins[-1]
            open_joins[-1] = 1
        elif kind in _JOIN_CONDITION:
            open_joins[-1] = 0
    return bare + sum(open_joins)


def _kind(node: exp.Expr) -> str:
    """What the user would call this node."""
    return (node.name or "command").upper() if type(node) is exp.Command else type(node).__name__.upper()


def _refused(message: str) -> Failure:
    return Failure(FailureKind.REFUSED, message)
