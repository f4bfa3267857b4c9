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
    """Spell a dialect as prompts do."""
    return NAMES.get(dialect.lower(), dialect)
