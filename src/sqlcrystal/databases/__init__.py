"""Real databases, opened read-only behind two locks: the guard (what SQL may run) and the engine (what it may do)."""

import os
import re
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from sqlcrystal.errors import ConfigError

if TYPE_CHECKING:
    from sqlcrystal.protocols import Database

__all__ = ["PRIVILEGED_VARIABLE", "open_database"]

_MODULES = {"postgres": ("sqlalchemy", "psycopg"), "mysql": ("sqlalchemy", "pymysql"), "duckdb": ("duckdb",)}
ALLOW_PRIVILEGED = "allow-privileged"
PRIVILEGED_VARIABLE = "SQLCRYSTAL_ALLOW_PRIVILEGED"
_OPTIONS = re.compile(r"#((?:(?:allow-privileged|functions=\w+(?:,\w+)*)(?:&|$))+)$")
_SCHEMES = {
    "sqlite": "sqlite",
    "postgres": "postgres",
    "postgresql": "postgres",
    "mysql": "mysql",
    "mariadb": "mysql",
    "duckdb": "duckdb",
}


def open_database(
    url_or_path: str,
    *,
    name: str | None = None,
    inspect: bool = True,
    functions: Sequence[str] = (),
    allow_privileged: bool = False,
    terse: bool = False,
) -> "Database":
    """Open `sqlite:///path`, a path to a SQLite file, `postgresql://…`, `mysql://…` or `duckdb:///path`, read-only.

    `inspect` lets people ask for plans and descriptions too (say no where a model writes the SQL); `functions` are
    names the owner of the database allows beyond what its engine calls pure; `allow_privileged` opens a server with an
    account that may do more than read; `terse` is for who needs to know that a statement fails and not why, which
    saves loading a parser to explain what SQLite cannot read. A URL may itself end in
    `#functions=similarity,st_area&allow-privileged`.
    """
    scheme, separator, rest = url_or_path.partition("://")
    if separator and (options := _OPTIONS.search(url_or_path)):
        url_or_path = url_or_path[: options.start()]
        words = options[1].split("&")
        allow_privileged = allow_privileged or ALLOW_PRIVILEGED in words
        named = [word.removeprefix("functions=").split(",") for word in words if word.startswith("functions=")]
        functions = [*functions, *(name for names in named for name in names)]
        scheme, separator, rest = url_or_path.partition("://")
    if not separator:
        return _sqlite(Path(url_or_path), name, inspect, terse)
    dialect = _SCHEMES.get(scheme.lower().partition("+")[0])
    if dialect is None:
        raise ConfigError.unknown("database", scheme, _SCHEMES)
    path = Path(rest.removeprefix("/").partition("?")[0])
    if dialect == "sqlite":
        return _sqlite(path, name, inspect, terse)
    for module in _MODULES[dialect]:
        if find_spec(module) is None:
            raise ConfigError(f"database: {scheme}:// needs {module}; pip install 'sqlcrystal[{dialect}]'")
    if dialect == "duckdb":
        from sqlcrystal.databases.duckdb import DuckdbDatabase

        return DuckdbDatabase(path, name=name, inspect=inspect, functions=functions)
    from sqlcrystal.databases.sqlalchemy import open_server

    return open_server(
        url_or_path,
        dialect=dialect,
        name=name,
        inspect=inspect,
        functions=functions,
        allow_privileged=allow_privileged or os.environ.get(PRIVILEGED_VARIABLE) == "1",
    )


def _sqlite(path: Path, name: str | None, inspect: bool, terse: bool) -> "Database":
    from sqlcrystal.databases.sqlite import SqliteDatabase

    return SqliteDatabase(path, name=name, inspect=inspect, terse=terse)
