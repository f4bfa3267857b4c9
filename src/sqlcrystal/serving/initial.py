"""A team's first sqlcrystal.toml: written from a few choices, with every connection tried."""

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from msgspec import Struct

from sqlcrystal.config import TEAM_FILE, TeamFile, is_url, parse_team, resolve_secrets
from sqlcrystal.databases.engines import FILE_SCHEMES
from sqlcrystal.errors import ConfigError, DataError, SqlcrystalError
from sqlcrystal.serving.workspace import Workspace
from sqlcrystal.types import Message, Sampling

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
