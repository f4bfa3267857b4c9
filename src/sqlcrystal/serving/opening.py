"""The Crystal that a person at a terminal means: of sqlcrystal.toml, or of what they say and the store knows."""

from pathlib import Path

from msgspec.structs import replace

from sqlcrystal.config import TEAM_FILE, TeamFile, read_team
from sqlcrystal.serving.crystal import Crystal
from sqlcrystal.serving.locations import absolute

DEFAULT_STORE = "sqlcrystal.db"


def open_crystal(
    *,
    store: str | None = None,
    db: str | None = None,
    name: str | None = None,
    model: str | None = None,
    replay: bool = False,
) -> tuple[Crystal, str | None]:
    """A Crystal, and the database that `db` means in it; None when none was named and the caller may not need one."""
    configured = Path(TEAM_FILE).is_file()
    team = read_team() if configured else TeamFile(store=absolute(DEFAULT_STORE))
    if store:
        team = replace(team, store=absolute(store))
    if model:
        team = replace(team, model=model)
    crystal = Crystal(team)
    try:
        if not model and not configured:
            last = next((place.model for place in crystal.workspace.known_places() if place.model), None)
            crystal.workspace.ask_with(last or team.model)
        crystal.workspace.allow(replay=replay)
        if db is None:
            return crystal, None
        database = crystal.workspace.choose(db) if name is None else crystal.workspace.add(db, name)
    except BaseException:
        crystal.close()
        raise
    return crystal, database
