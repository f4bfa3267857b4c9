"""Databases by the names a team gave them in sqlcrystal.toml."""

from sqlcrystal.config import TeamFile, resolve_secrets
from sqlcrystal.databases import open_database
from sqlcrystal.protocols import Database


def open_configured(team: TeamFile, name: str) -> Database:
    """Open one of the team's databases, read-only; its secrets come from the environment."""
    url = resolve_secrets(team.database(name).url, where=f"databases.{name}.url")
    return open_database(url, name=name)
