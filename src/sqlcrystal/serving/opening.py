"""Opens the Crystal that a person at a terminal means: of sqlcrystal.toml, or of their options and the store."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from sqlcrystal.config import TEAM_FILE, TeamFile, read_team, resolve_secrets
from sqlcrystal.config.team import DEFAULT_STORE
from sqlcrystal.errors import ConfigError
from sqlcrystal.serving.crystal import Crystal
from sqlcrystal.serving.reach import existing_store
from sqlcrystal.serving.workspace import absolute


class StorePatience(NamedTuple):
    """Seconds to wait for a store whose server is away, and the function that the waiting is told to."""

    seconds: float
    tell: Callable[[str], None]


def open_crystal(
    *,
    store: str | None = None,
    db: str | None = None,
    name: str | None = None,
    model: str | None = None,
    api_key_env: str | None = None,
    replay: bool = False,
    existing: bool = False,
) -> tuple[Crystal, str | None]:
    """Open a Crystal, and name the database that `db` means in it; None when none was named.

    `name` gives the database another name than its own; `existing` refuses a store that is not there yet, for actions
    that would find nothing in it.
    """
    configured = Path(TEAM_FILE).is_file()
    team = read_team() if configured else TeamFile(store=absolute(DEFAULT_STORE))
    if store:
        team = replace(team, store=absolute(store))
    if model:
        team = replace(team, model=model)
    crystal = Crystal(team)
    try:
        if existing:
            existing_store(crystal.workspace)
        if not model and not configured:
            last = next((place.model for place in crystal.workspace.known_places() if place.model), None)
            crystal.workspace.ask_with(last or team.model)
        if api_key_env:
            from sqlcrystal.config import with_key

            crystal.workspace.ask_with(with_key(crystal.workspace.team.model, api_key_env))
        crystal.workspace.allow(replay=replay)
        if db is None:
            return crystal, None
        database = crystal.workspace.choose(db) if name is None else crystal.workspace.add(db, name)
    except BaseException:
        crystal.close()
        raise
    return crystal, database


def open_service(
    settings: Path,
    *,
    db: str | None = None,
    model: str | None = None,
    store: str | None = None,
    patience: StorePatience | None = None,
) -> Crystal:
    """Open the Crystal that a service serves: of a settings file, or else of a database or of those the store knows.

    With a patience it waits for the server that its store lies on, as after a power cut both start at once.
    """
    if settings.is_file() or settings != Path(TEAM_FILE):
        if db or store:
            raise ConfigError(f"--db, --store: {settings} says these; leave them out or move it away")
        team = read_team(settings)
        _wait(team.store, patience)
        return Crystal(replace(team, model=model) if model else team)
    _wait(store or DEFAULT_STORE, patience)
    crystal, _ = open_crystal(store=store, db=db, model=model)
    if crystal.workspace.names():
        return crystal
    crystal.close()
    raise ConfigError(f"serve: no {TEAM_FILE} here; give --db FILE or URL, or run: sqlcrystal init")


def _wait(store: str, patience: StorePatience | None) -> None:
    if patience is not None:
        from sqlcrystal.bank import await_server

        await_server(resolve_secrets(store, where="store"), patience.seconds, patience.tell)
