"""From a person at a terminal to a Crystal: a first sqlcrystal.toml, and the opening of the one they mean."""

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from sqlcrystal.config import TEAM_FILE, TeamFile, is_url, parse_team, read_team, resolve_secrets
from sqlcrystal.config.team import DEFAULT_STORE
from sqlcrystal.databases.engines import FILE_SCHEMES
from sqlcrystal.errors import ConfigError, DataError, SqlcrystalError
from sqlcrystal.serving.crystal import Crystal
from sqlcrystal.serving.reach import existing_store
from sqlcrystal.serving.workspace import Workspace, absolute
from sqlcrystal.types import Message, Sampling


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


_PASSWORD = re.compile(r"(?P<before>://[^:/@]*:)(?!\$\{)(?P<password>[^@]+)(?=@)")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_NAMED = re.compile(r"(?P<name>[^=:/\\]+)=(?P<url>.+)")


class Choices(Struct, frozen=True, kw_only=True):
    """The choices of a team at the start."""

    databases: Mapping[str, str]
    model: str = "qwen2.5-coder-1.5b"
    store: str = "sqlcrystal.db"
    people: tuple[str, ...] = ()
    allow_privileged: bool = False
    """Whether servers are opened with accounts that may do more than read, now and by every later command."""


def named_databases(given: list[str]) -> dict[str, str]:
    """Read `NAME=URL`, or a URL or path whose last part is the name."""
    databases: dict[str, str] = {}
    for text in given:
        named = _NAMED.fullmatch(text)
        name, url = (named["name"].strip(), named["url"]) if named else (_last_part(text), text)
        if not name or name in databases:
            raise ConfigError(f"--db: {text!r} needs a name of its own; write NAME={text}")
        databases[name] = url
    return databases


def settings_text(choices: Choices, *, masked: bool = True) -> str:
    """Write the settings as TOML; masked, a password in a URL stands as a variable of the environment."""
    url_of = _without_secret if masked else lambda _, url: url
    lines = [f"model = {_quoted(choices.model)}", f"store = {_quoted(url_of('store', choices.store))}"]
    if choices.people:
        lines.append(f"people = [{', '.join(map(_quoted, choices.people))}]")
    for name, url in choices.databases.items():
        key = name if _BARE_KEY.fullmatch(name) else _quoted(name)
        lines += ["", f"[databases.{key}]", f"url = {_quoted(url_of(name, url))}"]
        lines += ["allow_privileged = true"] if choices.allow_privileged and _is_server(url) else []
    return "\n".join(lines) + "\n"


def trouble(choices: Choices, *, folder: Path) -> Iterator[str]:
    """Write one line for everything that cannot be reached: each database, the model, the store."""
    team = parse_team(tomllib.loads(settings_text(choices, masked=False)), folder=folder)
    workspace = Workspace(team)
    try:
        for name in team.databases:
            yield from _tried(partial(_try_database, workspace, name))
        yield from _tried(partial(_try_model, workspace))
        yield from _tried(partial(_try_store, team, workspace))
    finally:
        workspace.close()


def write_settings(text: str, *, folder: Path, replace: bool = False) -> Path:
    """Write sqlcrystal.toml; one that is there stays unless it is to be replaced."""
    place = folder / TEAM_FILE
    try:
        with place.open("w" if replace else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise DataError(f"{TEAM_FILE}: is there already; --force replaces it") from None
    except OSError as error:
        raise DataError(f"{TEAM_FILE}: cannot be written ({error.strerror})") from None
    return place


def _tried(reach: Callable[[], None]) -> Iterator[str]:
    try:
        reach()
    except SqlcrystalError as error:
        yield error.line


def _try_database(workspace: Workspace, name: str) -> None:
    workspace.open(name).database.schema()


def _try_model(workspace: Workspace) -> None:
    spec = workspace.team.model
    if isinstance(spec, str) and not is_url(spec):
        from sqlcrystal.models.catalogue import KNOWN_MODELS, weights_path
        from sqlcrystal.models.opening import open_model

        open_model(spec).close()
        if spec in KNOWN_MODELS and not weights_path(spec).is_file():
            raise DataError(f"model {spec}: its weights are not here yet").hinting(f"run: sqlcrystal model pull {spec}")
        return
    asked = [Message("system", "Answer with one word."), Message("user", "Are you ready?")]
    workspace.model.chat(asked, sampling=Sampling(max_tokens=4))


def _try_store(team: TeamFile, workspace: Workspace) -> None:
    place = resolve_secrets(team.store, where="store")
    if "://" in place or Path(place).exists():
        _ = workspace.store
        return
    parent = Path(place).parent
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise DataError(f"store: {parent} is no folder that can be written to")


def _without_secret(name: str, url: str) -> str:
    password = _PASSWORD.search(url)
    if password is None:
        return url
    variable = re.sub(r"\W", "_", name).upper() + "_PASSWORD"
    return url[: password.start("password")] + f"${{{variable}}}" + url[password.end("password") :]


def _is_server(url: str) -> bool:
    return "://" in url and not url.startswith(FILE_SCHEMES)


def _last_part(url: str) -> str:
    return Path(url.partition("?")[0].partition("://")[2] or url).stem


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
