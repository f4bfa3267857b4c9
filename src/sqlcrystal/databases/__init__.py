"""Real databases, opened read-only behind two locks: the guard (what SQL may run) and the engine (what it may do)."""

from importlib.util import find_spec
from pathlib import Path

from sqlcrystal.databases.sqlite import SqliteDatabase
from sqlcrystal.errors import ConfigError
from sqlcrystal.protocols import Database

__all__ = ["SqliteDatabase", "open_database"]

_DRIVERS = {"postgres": "psycopg", "mysql": "pymysql", "duckdb": "duckdb"}
_SCHEMES = {
    "sqlite": "sqlite",
    "postgres": "postgres",
    "postgresql": "postgres",
    "mysql": "mysql",
    "mariadb": "mysql",
    "duckdb": "duckdb",
}


def open_database(url_or_path: str, *, name: str | None = None) -> Database:
    """Open `sqlite:///path`, a path to a SQLite file, `postgresql://…`, `mysql://…` or `duckdb:///path`, read-only."""
    scheme, separator, rest = url_or_path.partition("://")
    if not separator:
        return SqliteDatabase(Path(url_or_path), name=name)
    dialect = _SCHEMES.get(scheme.lower().partition("+")[0])
    if dialect is None:
        raise ConfigError.unknown("database", scheme, _SCHEMES)
    if dialect == "sqlite":
        return SqliteDatabase(Path(rest.removeprefix("/").partition("?")[0]), name=name)
    for module in ("sqlalchemy", _DRIVERS[dialect]):
        if find_spec(module) is None:
            raise ConfigError(f"database: {scheme}:// needs {module}; pip install 'sqlcrystal[{dialect}]'")
    from sqlcrystal.databases.sqlalchemy import open_server

    return open_server(url_or_path, dialect=dialect, name=name)
