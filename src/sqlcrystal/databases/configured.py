"""Databases by the names a team gave them in sqlcrystal.toml."""

from sqlcrystal.config import TeamFile, resolve_secrets
from sqlcrystal.databases import open_database
from sqlcrystal.protocols import Database


def open_configured(team: TeamFile, name: str) -> Database:
    """Open one of the team's databases, read-only; its secrets come from the environment."""
    entry = team.database(name)
    return open_database(
        resolve_secrets(entry.url, where=f"databases.{name}.url"),
        name=name,
        inspect=False,  # a model writes the SQL
        functions=entry.functions,
        allow_privileged=entry.allow_privileged,
    )
