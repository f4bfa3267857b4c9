"""The first lock: which SQL may reach an engine at all, and in which exact words.

The statement is read once: its tokens are checked name by name, its tree node by node, and the engine gets the text
that is put together from those tokens. What it does NOT guarantee: that a view or a function the statement names is
harmless, or that the statement is cheap. The engine lock of each adapter answers for those.
"""

import inspect as python_inspect
import re
from functools import cache, lru_cache

from msgspec import Struct
from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from sqlcrystal.databases.engines import EngineRecord, engine_of, loaded, words_of
from sqlcrystal.databases.functions import Functions, built_in
from sqlcrystal.databases.parsing import MAX_CHARACTERS, Unparsable, parse_tokens, tokenize
from sqlcrystal.databases.reading import Unreadable, for_the_parser, rebuild, refuse_unreadable, whole
from sqlcrystal.types import Failure, FailureKind

_ROOTS = (exp.Select, exp.SetOperation, exp.Values, exp.Subquery)
_OPERATORS = (exp.Binary, exp.Unary, exp.Predicate, exp.Connector)
_LOOKED_AT = frozenset({exp.Anonymous, exp.AnonymousAggFunc, exp.Operator, exp.Select, exp.Table})
_LEAVES = frozenset({exp.Identifier, exp.Literal, exp.Null, exp.Boolean, str, bool, type(None)})
_NAMES = frozenset({exp.Anonymous, exp.AnonymousAggFunc})
_DESCRIPTIONS = frozenset({exp.Describe, exp.Summarize})
_FILE_MARKS = ("/", "\\", "*", "?", ".", ":")
_LOOKS = "only SELECT, WITH … SELECT, set operations and VALUES may run"


def _node_types() -> frozenset[type[exp.Expr]]:
    """List the node types a query may hold without a closer look; Select, Table and unknown functions get one."""
    words = words_of("query")
    kinds = {kind for kind in vars(exp).values() if python_inspect.isclass(kind) and issubclass(kind, exp.Expr)}
    known = {kind for kind in kinds if issubclass(kind, (exp.Func, *_OPERATORS))}
    structure = {getattr(exp, name) for name in words["structure"]}
    forbidden = {getattr(exp, name) for name in words["forbidden_nodes"]}
    return frozenset((structure | known) - forbidden - _LOOKED_AT)


_PARTS = _node_types()


class Statement(Struct, frozen=True):
    """A statement that may run, in the words the engine gets."""

    text: str
    inspection: bool = False
    """EXPLAIN, DESCRIBE, SHOW or SUMMARIZE: no query, so it cannot stand inside one."""
    stateful: bool = False
    """It leaves something in the session (MySQL's user variables)."""
    pivot: bool = False


class DatabaseRules(Struct, frozen=True):
    """Rules of one database beyond those of its dialect."""

    functions: Functions | None = None
    inspect: bool = False
    """Whether people may ask for plans and descriptions, which no model needs."""
    schema: str = ""
    """The schema of a shared server that statements stay within."""


class _Rules(Struct, frozen=True):
    """The rules for one statement."""

    engine: EngineRecord
    functions: Functions
    inspect: bool
    schema: str


def check(sql: str, dialect: str) -> Failure | None:
    """Give None when the statement may run; else why it may not (refused) or why it does not parse (syntax)."""
    found = read(sql, dialect)
    return found if isinstance(found, Failure) else None


def read(sql: str, dialect: str, own: DatabaseRules = DatabaseRules()) -> Statement | Failure:
    """Give the statement to run."""
    if len(sql) > MAX_CHARACTERS:
        return _refused(f"the statement is longer than {MAX_CHARACTERS} characters")
    return _read(sql, dialect, own.functions or built_in(dialect), own.inspect, own.schema.casefold())


@lru_cache(maxsize=8192)
def _read(sql: str, dialect: str, functions: Functions, inspect: bool, schema: str) -> Statement | Failure:
    """Give the same verdict, remembered: scoring and repair ask about the same statement many times."""
    rules = _Rules(engine_of(dialect), functions, inspect, schema)
    try:
        refuse_unreadable(sql, rules.engine)
        if inspect and (split := _split_inspection(sql, rules.engine)):
            return _inspection(*split, rules)
        return _query(sql, rules)
    except Unparsable as error:
        return error.failure
    except Unreadable as error:
        return _refused(str(error))


def _split_inspection(sql: str, engine: EngineRecord) -> tuple[str, str, bool] | None:
    """Tell what is asked, what about, and whether that is a query; None when the statement is no such question.

    They run nothing, or no more than the query itself would.
    """
    asked = sql.strip().removesuffix(";").rstrip()
    for pattern in _inspections(engine.inspections):
        if match := pattern.fullmatch(asked):
            groups = match.groupdict()
            prefix = " ".join(groups["prefix"].split())
            return prefix, groups.get("query") or groups.get("table") or "", bool(groups.get("query"))
    return None


@cache
def _inspections(forms: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(form, re.DOTALL | re.IGNORECASE) for form in forms)


def _inspection(prefix: str, rest: str, is_query: bool, rules: _Rules) -> Statement | Failure:
    """Judge a question about a query or a table: it is as harmless as the query, or as SELECT * FROM the table."""
    plain = _Rules(rules.engine, rules.functions, False, rules.schema)
    inner = _query(rest if is_query else f"SELECT * FROM {rest}", plain) if rest else Statement("")
    if isinstance(inner, Failure):
        return inner
    return Statement(f"{prefix} {inner.text if is_query else rest}".strip(), inspection=True)


def _query(sql: str, rules: _Rules) -> Statement | Failure:
    engine = rules.engine
    tokens = whole(tokenize(sql, engine.name), sql, engine)
    parsed = parse_tokens(for_the_parser(tokens, engine), sql, engine.name)
    trees = [tree for tree in parsed if tree and type(tree) is not exp.Semicolon]
    if len(trees) != 1:
        count = len(trees)
        return (
            _refused(f"one statement may run, found {count}") if count else Failure(FailureKind.SYNTAX, "no statement")
        )
    if found := _forbidden(trees[0], sql, rules) or _by_name(tokens, rules):
        return found
    if engine.fragile and (name := loaded(engine.fragile)(trees[0], sql)):
        return _refused(
            f"{name} of a text that the statement makes, or of a deep one, is not allowed: it can end the server"
        )
    return Statement(
        rebuild(sql, tokens, engine),
        stateful=engine.variables and any(map(_leaves_state, tokens)),
        pivot=engine.pivots and trees[0].find(exp.Pivot) is not None,
    )


def _leaves_state(token: Token) -> bool:
    return token.token_type is TokenType.PARAMETER and token.text == "@"


def _forbidden(tree: exp.Expr, sql: str, rules: _Rules) -> Failure | None:
    """Find the first node that no reading statement needs, in one walk."""
    if not isinstance(tree, _ROOTS) and not (rules.engine.pivots and type(tree) is exp.Pivot):
        return _refused(f"{_kind(tree)} is not a query; {_LOOKS}")
    by_catalogue = rules.engine.tells_purity
    waiting: list[exp.Expr] = [tree]
    while waiting:
        node = waiting.pop()
        kind = type(node)
        if kind not in _PARTS and (found := _node(node, rules)):
            return found
        if by_catalogue and isinstance(node, exp.Func) and (found := _call(node, sql, rules.functions)):
            return found
        for value in node.args.values():
            holds = type(value)
            if holds is list:
                waiting += [part for part in value if isinstance(part, exp.Expr)]
            elif holds not in _LEAVES and isinstance(value, exp.Expr):
                waiting.append(value)
    return None


def _node(node: exp.Expr, rules: _Rules) -> Failure | None:
    """Say why a node outside the plain vocabulary may not stand here, if so."""
    kind, engine = type(node), rules.engine
    if kind is exp.Table:
        return _table(node, rules)
    described = rules.inspect and engine.describes_in_from and kind in _DESCRIPTIONS
    if described and isinstance(node.this, (exp.Table, exp.Query)):
        return None
    if kind in _NAMES:
        return None if _describes(node.name, rules) else rules.functions.call(node.name)
    reason: str | None = _kind(node)
    if kind is exp.Select:
        reason = _select(node)
    elif kind is exp.Operator:
        reason = None if str(node.args.get("operator")).startswith("pg_catalog.") else "an operator of a schema"
    elif (
        (kind is exp.Parameter and engine.variables)
        or (kind is exp.SessionParameter and node.name.lower() in engine.list("session_variables"))
        or (kind is exp.Version and engine.system_time)
    ):
        reason = None
    return _refused(f"{reason} is not allowed in a read-only query") if reason else None


def _describes(name: str, rules: _Rules) -> bool:
    """Tell whether a table function describes a schema, for people who ask."""
    return rules.inspect and name.lower() in rules.engine.list("describing_tables")


def _call(node: exp.Expr, sql: str, functions: Functions) -> Failure | None:
    """Judge a function by the name that was written, not by what sqlglot takes it for."""
    start, end = node.meta.get("start"), node.meta.get("end")
    if type(node) in _NAMES or start is None or end is None:
        return None
    return functions.call(sql[start : end + 1].strip('"'))


def _by_name(tokens: list[Token], rules: _Rules) -> Failure | None:
    """Judge the names before a parenthesis or, in PostgreSQL, behind a dot, whatever the tree makes of them."""
    before: Token | None = None
    last: Token | None = None
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        named = token.token_type in _NAMING
        called = following is not None and following.token_type is TokenType.L_PAREN
        behind_a_dot = last is not None and last.token_type is TokenType.DOT
        if called and token.token_type is not TokenType.STRING:
            if found := _called(token, named, rules):
                return found
            if named and behind_a_dot and before is not None and (found := _outside(before.text, rules)):
                return found
        elif (
            named and behind_a_dot and rules.engine.attributes_call and (found := rules.functions.attribute(token.text))
        ):
            return found
        before, last = last, token
    return None


_NAMING = frozenset({TokenType.VAR, TokenType.IDENTIFIER})


def _called(token: Token, named: bool, rules: _Rules) -> Failure | None:
    """Say why what stands before a parenthesis may not be called, if so."""
    banned = named and rules.functions.is_banned(token.text) and not _describes(token.text, rules)
    if banned or rules.functions.is_made_impure(token.text):
        return _refused(f"function {token.text.lower()} is not allowed in a read-only query")
    return None


def _outside(schema: str, rules: _Rules) -> Failure | None:
    """Refuse the other schemas of a server: there a database is a schema, and the account may see more than one."""
    if not rules.engine.one_schema or not rules.schema:
        return None
    if schema.casefold() == rules.schema or schema.casefold() in rules.engine.list("open_schemas"):
        return None
    return _refused(f"schema {schema} is not the database that was opened")


def _table(node: exp.Expr, rules: _Rules) -> Failure | None:
    """Refuse tables that are really commands, files in disguise, of others, or that hold the secrets of accounts."""
    engine = rules.engine
    name, schema = node.name.lower(), node.text("db").lower()  # the words alone: a node as SQL carries its comments
    reason = None
    commands = tuple(engine.list("command_tables"))
    if commands and name.startswith(commands) and name not in engine.list("describing_tables"):
        reason = f"table {name}"
    elif engine.tables_name_files and any(mark in name for mark in _FILE_MARKS):
        reason = f"file {node.name!r}"
    elif not rules.inspect and name in engine.list("command_words") and not node.this.args["quoted"]:
        reason = f"{name.upper()} as a table"
    elif name in engine.list("secrets") or schema in engine.list("secret_schemas"):
        reason = f"table {name}, which holds secrets,"
    if reason:
        return _refused(f"{reason} is not allowed in a read-only query")
    if schema and (found := _outside(schema, rules)):
        return found
    return rules.functions.relation(name) if engine.views_of_functions else None


def _select(node: exp.Expr) -> str | None:
    """Name the part of a SELECT that locks, writes, or steers the engine, if there is one."""
    arguments = node.args
    if arguments.get("into"):
        return "SELECT INTO"
    if arguments.get("locks"):
        return "a locking clause"
    return "an optimizer hint" if arguments.get("hint") else None


def _kind(node: exp.Expr) -> str:
    """Name a node as the user would."""
    return (node.name or "command").upper() if type(node) is exp.Command else type(node).__name__.upper()


def _refused(message: str) -> Failure:
    return Failure(FailureKind.REFUSED, message)
