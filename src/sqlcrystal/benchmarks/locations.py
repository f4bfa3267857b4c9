"""Where databases are: folders of SQLite files, mapping files, or SQLAlchemy URLs with ${ENV} secrets.

Only what the user names on the command line may take secrets from the environment: a benchmark's folder came from
elsewhere, and a URL in it could send them anywhere.
"""

import os
import re
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from sqlcrystal.benchmarks.files import parse_json, read_text
from sqlcrystal.databases.engines import SUFFIXES, location_of
from sqlcrystal.errors import ConfigError, DataError

_SECRET = re.compile(r"\$\{(\w+)\}")


def locate(
    names: Iterable[str], *, folders: Sequence[Path] = (), given: Sequence[str] = (), beside: Sequence[Path] = ()
) -> dict[str, str]:
    """Find each database: what the user gave with --databases first, then what lies in the benchmark's own folders.

    Each of `given` is a folder, a TOML or JSON file of name to URL, `NAME=URL`, or one URL for every database; each of
    `beside` is such a file that came with the benchmark.
    """
    mapping: dict[str, str] = {}
    fallback: str | None = None
    searched: list[Path] = []
    for value in given:
        name, equals, url = value.partition("=")
        if Path(value).is_dir():
            searched.append(Path(value))
        elif Path(value).suffix in (".toml", ".json") and "://" not in value:
            mapping |= read_mapping(Path(value))
        elif "://" in value and "://" not in name and equals:
            mapping[name] = url
        elif "://" in value:
            fallback = value
        elif equals:
            mapping[name] = url
        else:
            raise ConfigError(f"--databases: {value!r} is no folder, TOML or JSON file, URL or NAME=URL")
    own: dict[str, tuple[str, Path]] = {}
    for path in beside:
        own |= {name: (location, path) for name, location in read_mapping(path).items()}
    locations: dict[str, str] = {}
    for name in dict.fromkeys(names):
        _check_name(name)
        if chosen := mapping.get(name) or _in_folders(name, searched) or fallback:
            locations[name] = with_secrets(chosen)
        elif name in own:
            locations[name] = _without_secrets(name, *own[name])
        elif chosen := _in_folders(name, folders):
            locations[name] = chosen
    return locations


def _without_secrets(name: str, location: str, path: Path) -> str:
    if secret := _SECRET.search(location):
        raise ConfigError(
            f"database {name}: {path} came with the benchmark and may not read {secret[0]} from the environment; "
            f"if you trust it, say --databases {path}"
        )
    return location


def _check_name(name: str) -> None:
    """A database's name becomes part of a path."""
    if name in {"", ".", ".."} or re.search(r"[/\\\x00-\x1f]", name):
        raise DataError(f"database {name!r}: a name holds no path separators or control characters")


def read_mapping(path: Path) -> dict[str, str]:
    """Database name to path or URL, from a TOML or JSON file; a TOML file may keep them under [databases]."""
    text = read_text(path)
    if path.suffix == ".toml":
        try:
            document: object = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise DataError(f"{path}: not TOML ({error})") from None
    else:
        document = parse_json(text, path)
    if isinstance(document, dict) and isinstance(document.get("databases"), dict):
        document = document["databases"]
    try:
        mapping = msgspec.convert(document, dict[str, str])
    except msgspec.ValidationError:
        raise DataError(f"{path}: must map database names to a path or a SQLAlchemy URL") from None
    return {name: _beside(path, location) for name, location in mapping.items()}


def with_secrets(location: str) -> str:
    """The location with every ${NAME} filled in from the environment."""

    def fill(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in os.environ:
            raise ConfigError(f"--databases: the environment variable {name} is not set")
        return os.environ[name]

    return _SECRET.sub(fill, location)


def _beside(mapping: Path, location: str) -> str:
    """A relative path in a mapping file is meant from that file's folder."""
    if "://" in location or "${" in location:
        return location
    return str(mapping.parent / location)


def _in_folders(name: str, folders: Sequence[Path]) -> str | None:
    for folder in folders:
        for stem in (folder / name / name, folder / name):
            for suffix in SUFFIXES:
                path = stem.with_name(stem.name + suffix)
                if path.is_file():
                    return location_of(path)
    return None
