"""PostgreSQL, MySQL/MariaDB and DuckDB through SQLAlchemy, read-only."""

from sqlcrystal.errors import ConfigError
from sqlcrystal.protocols import Database


def open_server(url: str, *, dialect: str, name: str | None) -> Database:
    """Open a database that SQLAlchemy reaches."""
    raise ConfigError(f"database: {dialect} is not built yet ({url}, {name})")
