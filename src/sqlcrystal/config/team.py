"""`sqlcrystal.toml`: a team's databases, model, store and people, validated; secrets stay in the environment."""

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import Struct

from sqlcrystal.config.study import VARIABLE, Prices
from sqlcrystal.databases.engines import FILE_SCHEMES
from sqlcrystal.errors import ConfigError, DataError
from sqlcrystal.types import Cell

TEAM_FILE = "sqlcrystal.toml"
DEFAULT_STORE = "sqlcrystal.db"
DEFAULT_RETRIEVER = "dense"

_AT = re.compile(r" - at `\$\.?(.*)`$")
_CHOICES = {
    "values": "; choose from allowed, never",
    "choice": "; choose from agreement, signs, none",
    "learn": "; choose from propose, round-trip",
    "expect": '; choose from "rows", "no rows", { value = … }',
}

Section = TypeVar("Section", bound=Struct)


class ExpectedValue(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The one cell an assertion must return."""

    value: Cell


class AssertionEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """SQL over `{answer}` that must return rows, no rows, or one value, before an answer is banked."""

    sql: str
    expect: Literal["rows", "no rows"] | ExpectedValue = "rows"
    name: str = ""


class DatabaseEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One database of the team."""

    url: str
    """A SQLAlchemy URL or the path of a SQLite file; `${NAME}` stands for a variable of the environment."""
    hints: str = ""
    """A text file that every prompt over this database carries."""
    values: Literal["allowed", "never"] = "allowed"
    """Whether cell values may stand in prompts, cards, logs and the store."""
    assertion: tuple[AssertionEntry, ...] = ()
    check: str = ""
    """A command or URL that verifies answers without a person."""
    profile: bool = True
    """Whether prompts show what the columns hold; where values are never to be shown, they do not."""
    choice: Literal["agreement", "signs", "none"] = "agreement"
    """How one of several answers is chosen: two results agree, the engine shows no sign, or only one is asked for."""
    readings: float = 0.2
    """The largest share of answers given as two readings, of which a person picks one; 0 never asks."""
    replay: bool = False
    """Whether a recurring question may be served from its stored solution, without a model call."""
    functions: tuple[str, ...] = ()
    """Functions the database's owner allows beyond what its engine calls pure."""
    allow_privileged: bool = False
    """Whether an account that may do more than read is accepted."""
    hold_out: float = 0.0
    """The share of questions answered without memory, to measure what memory is worth."""
    both_arms: bool = False
    """Whether both arms answer and one is shown: twice the calls, and an interval less than half as wide."""
    retriever: str = DEFAULT_RETRIEVER
    """How the cards of a question are found: a retriever of studies that keeps to one database."""
    learn: Literal["propose", "round-trip"] = "propose"
    """Whether a query of a log whose round trip succeeded waits for a person, or is a card at once, labelled so."""
    audit: float = 0.0
    """The share of measured answers that must be judged, drawn by chance, so that nobody's choice makes the lift."""


class TeamFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings that a data team makes once."""

    databases: dict[str, DatabaseEntry] = {}
    model: str | dict[str, Any] = "qwen2.5-coder-1.5b"
    embedder: str | dict[str, Any] = "wordllama"
    store: str = DEFAULT_STORE
    people: tuple[str, ...] = ()
    """The people that may vouch for an answer; anybody when empty."""
    cards: int = 5
    """At most so many cards stand in a prompt."""
    budget: int = 3
    """Rounds of repair an answer may take."""
    prices: Prices = Prices()
    seed: int = 0
    """Which questions are held out on which day; another seed draws others."""

    def database(self, name: str) -> DatabaseEntry:
        """Look up the entry of that name, or raise an error that lists the names."""
        if name not in self.databases:
            raise ConfigError.unknown("database", name, self.databases)
        return self.databases[name]


def read_team(path: Path | str = TEAM_FILE) -> TeamFile:
    """Read the settings in a TOML file; relative paths in it are meant from its folder."""
    file = Path(path)
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"{file}: no such file; `sqlcrystal init` writes one") from None
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: not UTF-8 ({error.reason})") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file}: not TOML ({error})") from None
    return parse_team(document, folder=file.absolute().parent, where=str(file))


def parse_team(document: Mapping[str, Any], *, folder: Path | None = None, where: str = TEAM_FILE) -> TeamFile:
    """Validate settings, or raise one line that names the key and, where they are few, the choices."""
    folder = folder or Path.cwd()
    databases = document.get("databases", {})
    if not isinstance(databases, Mapping):
        raise ConfigError(f"{where}: databases: write one [databases.NAME] table for each")
    entries = {}
    for name, table in databases.items():
        key = f"{where}: databases.{name}"
        entry = _section(table, DatabaseEntry, key)
        if not 0 <= entry.hold_out < 1:
            raise ConfigError(f"{key}.hold_out: must be a share from 0 up to, not including, 1")
        if entry.both_arms and not entry.hold_out:
            raise ConfigError(f"{key}.both_arms: needs hold_out, the share of answers shown without memory")
        if not 0 <= entry.audit <= 1:
            raise ConfigError(f"{key}.audit: must be a share from 0 to 1, such as 0.05")
        if not 0 <= entry.readings <= 1:
            raise ConfigError(f"{key}.readings: must be a share from 0 (never) to 1, such as 0.2")
        if entry.audit and not entry.hold_out:
            raise ConfigError(f"{key}.audit: needs hold_out: without a held-out share there is no lift to audit")
        if entry.hints and not (folder / entry.hints).is_file():
            raise DataError(f"{key}.hints: no such file: {folder / entry.hints}")
        hints = str(folder / entry.hints) if entry.hints else ""
        entries[name] = msgspec.structs.replace(entry, url=_placed(entry.url, folder), hints=hints)
    team = _section({key: value for key, value in document.items() if key != "databases"}, TeamFile, where)
    for key, value in (("cards", team.cards), ("budget", team.budget)):
        if value < 0:
            raise ConfigError(f"{where}: {key}: needs at least 0")
    return msgspec.structs.replace(team, databases=entries, store=_placed(team.store, folder))


def resolve_secrets(text: str, *, where: str, environment: Mapping[str, str] = os.environ) -> str:
    """Replace every `${NAME}` in a text, at the last moment, so that settings never hold a secret."""

    def value(reference: re.Match[str]) -> str:
        if reference[1] not in environment:
            raise ConfigError(f"{where}: ${{{reference[1]}}} is not set in the environment")
        # A password may hold what would end it inside a URL.
        inside = "://" in text[: reference.start()] and "@" in text[reference.end() :]
        return quote(environment[reference[1]], safe="") if inside else environment[reference[1]]

    return VARIABLE.sub(value, text)


def _section(table: Any, kind: type[Section], where: str) -> Section:
    if not isinstance(table, Mapping):
        raise ConfigError(f"{where}: must be a table")
    _refuse_unknown(table, kind, where)
    for number, inner in enumerate(table.get("assertion", ()) if kind is DatabaseEntry else (), start=1):
        if isinstance(inner, Mapping):
            _refuse_unknown(inner, AssertionEntry, f"{where}.assertion {number}")
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        at = _AT.search(str(error))
        key = f"{where}.{at[1]}" if at and at[1] and kind is not TeamFile else f"{where}: {at[1]}" if at else where
        choices = _CHOICES.get(at[1].rpartition(".")[2], "") if at else ""
        raise ConfigError(f"{key}: {_AT.sub('', str(error)).replace('`', '')}{choices}") from None


def _refuse_unknown(table: Mapping[str, Any], kind: type[Struct], where: str) -> None:
    for key in table:
        if key not in kind.__struct_fields__:
            raise ConfigError.unknown(f"{where}: key", key, kind.__struct_fields__)


def _placed(url: str, folder: Path) -> str:
    """Place the file of a URL or path in the folder of the settings."""
    if "://" not in url:
        return str(folder / Path(url).expanduser())
    for scheme in FILE_SCHEMES:
        if url.startswith(scheme):
            return f"{scheme}{folder / url.removeprefix(scheme)}"
    return url
