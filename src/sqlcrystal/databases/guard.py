"""The first lock: which SQL may reach an engine at all, decided on the statement's syntax tree.

What it does NOT guarantee: that the engine reads the text as sqlglot does, that a view or a user-defined function the
statement names is harmless, or that the statement is cheap. The engine lock of each adapter answers for those.
"""

import re
from functools import lru_cache

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from sqlcrystal.databases import vocabulary
from sqlcrystal.databases.parsing import MAX_CHARACTERS, Unparsable, parse_all, tokenize
from sqlcrystal.types import Failure, FailureKind

_PLAIN_NAME = re.compile(r"[^\W\d][\w$]*")
_ROOTS = (exp.Select, exp.SetOperation, exp.Values, exp.Subquery)
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
    if reason := _unreadable(sql, dialect):
        return _refused(reason)
    try:
        statements = [tree for tree in parse_all(sql, dialect) if tree and type(tree) is not exp.Semicolon]
    except Unparsable as error:
        return error.failure
    if len(statements) != 1:
        found = len(statements)
        return (
            _refused(f"one statement may run, found {found}") if found else Failure(FailureKind.SYNTAX, "no statement")
        )
    return _forbidden(statements[0], dialect)


def _unreadable(sql: str, dialect: str) -> str | None:
    """Why the engine would read the text otherwise than the parser does."""
    if "\x00" in sql:
        return "the statement holds a NUL character"
    if dialect == "mysql" and ("/*!" in sql or "/*M!" in sql):
        return "a comment that MySQL executes is not allowed in a read-only query"
    return None


def bare(sql: str, dialect: str) -> str:
    """The text without the semicolons and remarks at its end, so that it can stand inside another query."""
    try:
        tokens = tokenize(sql, dialect)
    except Unparsable:
        return sql
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    return sql[: tokens[-1].end + 1] if tokens else ""


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


def _kind(node: exp.Expr) -> str:
    """What the user would call this node."""
    return (node.name or "command").upper() if type(node) is exp.Command else type(node).__name__.upper()


def _refused(message: str) -> Failure:
    return Failure(FailureKind.REFUSED, message)
