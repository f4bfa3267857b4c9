"""What a read-only query is made of, and which tables none reads: vocabulary.toml as sets ready for the guard."""

import inspect
import tomllib
from importlib.resources import files

from sqlglot import exp

_WORDS = tomllib.loads(files(__package__).joinpath("vocabulary.toml").read_text(encoding="utf-8"))
_OPERATORS = (exp.Binary, exp.Unary, exp.Predicate, exp.Connector)
_LOOKED_AT = frozenset({exp.Anonymous, exp.AnonymousAggFunc, exp.Operator, exp.Select, exp.Table})
_FILE_MARKS = ("/", "\\", "*", "?", ".", ":")


BY_CATALOGUE = frozenset({"postgres", "duckdb"})
"""Dialects whose engines say of each function whether it is pure."""
_SECRETS = {dialect: frozenset(words.split()) for dialect, words in _WORDS["secrets"].items()}
_SECRET_SCHEMAS = {dialect: frozenset(words.split()) for dialect, words in _WORDS["secret_schemas"].items()}
OPERATORS = {dialect: frozenset(words.split()) for dialect, words in _WORDS["operators"].items()}
POSTGRES_TYPES = frozenset(_WORDS["postgres_types"].split())
DUCKDB_COMMANDS = frozenset(_WORDS["duckdb_commands"].split())
MYSQL_VARIABLES = frozenset(_WORDS["mysql_variables"].split())
SQLITE_PRAGMAS = frozenset(_WORDS["sqlite_pragmas"].split())
SQLITE_TABLES = tuple(_WORDS["sqlite_tables"].split())


def node_types() -> frozenset[type[exp.Expr]]:
    """Every node type a query may hold without a closer look; Select, Table and unknown functions get one."""
    kinds = {kind for kind in vars(exp).values() if inspect.isclass(kind) and issubclass(kind, exp.Expr)}
    known = {kind for kind in kinds if issubclass(kind, (exp.Func, *_OPERATORS))}
    structure = {getattr(exp, name) for name in _WORDS["structure"].split()}
    forbidden = {getattr(exp, name) for name in _WORDS["forbidden_nodes"].split()}
    return frozenset((structure | known) - forbidden - _LOOKED_AT)


def holds_secrets(name: str, schema: str, dialect: str) -> bool:
    """Whether a catalogue's table is one that no query reads."""
    return name in _SECRETS.get(dialect, ()) or schema in _SECRET_SCHEMAS.get(dialect, ())


def looks_like_a_file(name: str) -> bool:
    """DuckDB reads a quoted table name that is a path, a pattern or a URL as a file."""
    return any(mark in name for mark in _FILE_MARKS)
