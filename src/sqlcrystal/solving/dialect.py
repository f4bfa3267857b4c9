"""How prompts spell a dialect."""

NAMES = {
    "sqlite": "SQLite",
    "postgres": "PostgreSQL",
    "postgresql": "PostgreSQL",
    "mysql": "MySQL",
    "mariadb": "MariaDB",
    "duckdb": "DuckDB",
}


def dialect_name(dialect: str) -> str:
    """How prompts spell a dialect."""
    return NAMES.get(dialect.lower(), dialect)
