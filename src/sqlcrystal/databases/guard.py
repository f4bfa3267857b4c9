"""The first lock: which SQL may reach an engine at all, and in which exact words.

The statement is read once: its tokens are checked name by name, its tree node by node, and the engine gets the text
that is put together from those tokens. What it does NOT guarantee: that a view or a function the statement names is
harmless, or that the statement is cheap. The engine lock of each adapter answers for those.
"""

from functools import lru_cache

from msgspec import Struct
from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from sqlcrystal.databases import vocabulary
from sqlcrystal.databases.fragile import ends_the_server
from sqlcrystal.databases.functions import Functions, built_in
from sqlcrystal.databases.inspection import split_inspection
from sqlcrystal.databases.parsing import MAX_CHARACTERS, Unparsable, parse_tokens, tokenize
from sqlcrystal.databases.reading import Unreadable, rebuild, refuse_unreadable
from sqlcrystal.databases.tokens import for_the_parser, whole
from sqlcrystal.types import Failure, FailureKind

_ROOTS = (exp.Select, exp.SetOperation, exp.Values, exp.Subquery)
_PARTS = vocabulary.node_types()
_LEAVES = frozenset({exp.Identifier, exp.Literal, exp.Null, exp.Boolean, str, bool, type(None)})
_NAMES = frozenset({exp.Anonymous, exp.AnonymousAggFunc})
_DESCRIPTIONS = frozenset({exp.Describe, exp.Summarize})
_LOOKS = "only SELECT, WITH … SELECT, set operations and VALUES may run"


class Statement(Struct, frozen=True):
    """What may run, in the words the engine gets."""

    text: str
    inspection: bool = False
    """EXPLAIN, DESCRIBE, SHOW or SUMMARIZE: no query, so it cannot stand inside one."""
    stateful: bool = False
    """It leaves something in the session (MySQL's user variables)."""
    pivot: bool = False
    expansion: int = 1
    """How many tables it reads once every common table expression stands where it is named."""


def check(sql: str, dialect: str) -> Failure | None:
    """None when the statement may run; else why it may not (refused) or why it does not parse (syntax)."""
    found = read(sql, dialect)
    return found if isinstance(found, Failure) else None


def read(sql: str, dialect: str, functions: Functions | None = None, *, inspect: bool = False) -> Statement | Failure:
    """The statement to run; `inspect` lets people ask for plans and descriptions, which no model needs."""
    if len(sql) > MAX_CHARACTERS:
        return _refused(f"the statement is longer than {MAX_CHARACTERS} characters")
    return _read(sql, dialect, functions or built_in(dialect), inspect)


@lru_cache(maxsize=8192)
def _read(sql: str, dialect: str, functions: Functions, inspect: bool) -> Statement | Failure:
    """The same verdict, remembered: scoring and repair ask about the same statement many times."""
    try:
        refuse_unreadable(sql, dialect)
        if inspect and (split := split_inspection(sql, dialect)):
            return _inspection(*split, dialect, functions)
        return _query(sql, dialect, functions, inspect)
    except Unparsable as error:
        return error.failure
    except Unreadable as error:
        return _refused(str(error))


def _inspection(prefix: str, rest: str, is_query: bool, dialect: str, functions: Functions) -> Statement | Failure:
    """A question about a query or a table is as harmless as the query, or as SELECT * FROM the table."""
    inner = _query(rest if is_query else f"SELECT * FROM {rest}", dialect, functions, False) if rest else Statement("")
    if isinstance(inner, Failure):
        return inner
    return Statement(f"{prefix} {inner.text if is_query else rest}".strip(), inspection=True)


def _query(sql: str, dialect: str, functions: Functions, inspect: bool) -> Statement | Failure:
    tokens = whole(tokenize(sql, dialect), sql, dialect)
    statements = [
        tree for tree in parse_tokens(for_the_parser(tokens, dialect), sql, dialect) if type(tree) is not exp.Semicolon
    ]
    trees = [tree for tree in statements if tree]
    if len(trees) != 1:
        count = len(trees)
        return (
            _refused(f"one statement may run, found {count}") if count else Failure(FailureKind.SYNTAX, "no statement")
        )
    found = _forbidden(trees[0], sql, dialect, functions, inspect) or _by_name(tokens, dialect, functions, inspect)
    if found:
        return found
    if dialect == "mysql" and (name := ends_the_server(trees[0], sql)):
        return _refused(
            f"{name} of a text that the statement makes, or of a deep one, is not allowed: it can end the server"
        )
    return Statement(
        rebuild(sql, tokens, dialect),
        stateful=any(map(_leaves_state, tokens)),
        pivot=dialect == "duckdb" and trees[0].find(exp.Pivot) is not None,
        expansion=_expansion(trees[0]),
    )


def _expansion(tree: exp.Expr) -> int:
    """Planning each mention of a common table expression anew may be exponential work, before anything runs."""
    if tree.args.get("with_") is None and tree.find(exp.With) is None:
        return 1
    sizes: dict[str, int] = {}
    for cte in tree.find_all(exp.CTE, bfs=False):
        sizes[cte.alias.lower()] = sum(sizes.get(table.name.lower(), 1) for table in cte.find_all(exp.Table)) or 1
    return sum(sizes.get(table.name.lower(), 1) for table in tree.find_all(exp.Table))


def _leaves_state(token: Token) -> bool:
    return token.token_type is TokenType.PARAMETER and token.text == "@"


def _forbidden(tree: exp.Expr, sql: str, dialect: str, functions: Functions, inspect: bool) -> Failure | None:
    """The first node that no reading statement needs, found in one walk."""
    if not isinstance(tree, _ROOTS) and not (dialect == "duckdb" and type(tree) is exp.Pivot):
        return _refused(f"{_kind(tree)} is not a query; {_LOOKS}")
    by_catalogue = dialect in vocabulary.BY_CATALOGUE
    waiting: list[exp.Expr] = [tree]
    while waiting:
        node = waiting.pop()
        kind = type(node)
        if kind not in _PARTS and (found := _node(node, dialect, functions, inspect)):
            return found
        if by_catalogue and isinstance(node, exp.Func) and (found := _call(node, sql, functions)):
            return found
        for value in node.args.values():
            holds = type(value)
            if holds is list:
                waiting += [part for part in value if isinstance(part, exp.Expr)]
            elif holds not in _LEAVES and isinstance(value, exp.Expr):
                waiting.append(value)
    return None


def _node(node: exp.Expr, dialect: str, functions: Functions, inspect: bool) -> Failure | None:
    """Why a node outside the plain vocabulary may not stand here, if so."""
    kind = type(node)
    if kind is exp.Table:
        return _table(node, dialect, functions, inspect)
    if inspect and dialect == "duckdb" and kind in _DESCRIPTIONS and isinstance(node.this, (exp.Table, exp.Query)):
        return None
    if kind in _NAMES:
        if inspect and dialect == "sqlite" and node.name.lower() in vocabulary.SQLITE_PRAGMAS:
            return None
        return functions.call(node.name)
    reason: str | None = _kind(node)
    if kind is exp.Select:
        reason = _select(node)
    elif kind is exp.Operator:
        reason = None if str(node.args.get("operator")).startswith("pg_catalog.") else "an operator of a schema"
    elif (dialect == "mysql" and kind is exp.Parameter) or (
        dialect == "mysql" and kind is exp.SessionParameter and node.name.lower() in vocabulary.MYSQL_VARIABLES
    ):
        reason = None
    return _refused(f"{reason} is not allowed in a read-only query") if reason else None


def _call(node: exp.Expr, sql: str, functions: Functions) -> Failure | None:
    """A function is judged by the name that was written, not by what sqlglot takes it for."""
    start, end = node.meta.get("start"), node.meta.get("end")
    if type(node) in _NAMES or start is None or end is None:
        return None
    return functions.call(sql[start : end + 1].strip('"'))


def _by_name(tokens: list[Token], dialect: str, functions: Functions, inspect: bool) -> Failure | None:
    """The names that stand before a parenthesis or, in PostgreSQL, behind a dot, whatever the tree makes of them."""
    previous: Token | None = None
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        kind = token.token_type
        called = following is not None and following.token_type is TokenType.L_PAREN
        named = kind is TokenType.VAR or kind is TokenType.IDENTIFIER
        if named and called and functions.is_banned(token.text):
            if not (inspect and dialect == "sqlite" and token.text.lower() in vocabulary.SQLITE_PRAGMAS):
                return _refused(f"function {token.text.lower()} is not allowed in a read-only query")
        elif (
            named
            and dialect == "postgres"
            and previous is not None
            and previous.token_type is TokenType.DOT
            and (found := functions.attribute(token.text))
        ):
            return found
        previous = token
    return None


def _table(node: exp.Expr, dialect: str, functions: Functions, inspect: bool) -> Failure | None:
    """Tables that are really commands, files in disguise, or hold the secrets of accounts."""
    name, schema = node.name.lower(), node.text("db").lower()  # the words alone: a node as SQL carries its comments
    reason = None
    if dialect == "sqlite" and name.startswith(vocabulary.SQLITE_TABLES) and name not in vocabulary.SQLITE_PRAGMAS:
        reason = f"table {name}"
    elif dialect == "duckdb" and vocabulary.looks_like_a_file(name):
        reason = f"file {node.name!r}"
    elif dialect == "duckdb" and not inspect and name in vocabulary.DUCKDB_COMMANDS and not node.this.args["quoted"]:
        reason = f"{name.upper()} as a table"
    elif vocabulary.holds_secrets(name, schema, dialect):
        reason = f"table {name}, which holds secrets,"
    if reason:
        return _refused(f"{reason} is not allowed in a read-only query")
    return functions.relation(name) if dialect == "duckdb" else None


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
