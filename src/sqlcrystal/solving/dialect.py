"""How prompts spell a dialect, and which grammar parses it."""

NAMES = {
    "sqlite": "SQLite",
    "postgres": "PostgreSQL",
    "postgresql": "PostgreSQL",
    "mysql": "MySQL",
    "mariadb": "MariaDB",
    "duckdb": "DuckDB",
}
GRAMMARS = {"postgresql": "postgres", "mariadb": "mysql"}


def dialect_name(dialect: str) -> str:
    """How prompts spell a dialect."""
    return NAMES.get(dialect.lower(), dialect)


def grammar(dialect: str) -> str:
    """The sqlglot dialect that parses this dialect's SQL."""
    return GRAMMARS.get(dialect.lower(), dialect.lower())
