"""Reading the user's files, and where databases are: folders of SQLite files, mapping files, URLs with ${ENV} keys.

Only what the user names on the command line may take secrets from the environment: a benchmark's folder came from
elsewhere, and a URL in it could send them anywhere.
"""

import json
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from sqlcrystal.databases.engines import SUFFIXES, location_of
from sqlcrystal.errors import ConfigError, DataError

_Record = TypeVar("_Record")


def read_text(path: Path) -> str:
    """The file's text, which must be UTF-8."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 (byte {error.start} is 0x{data[error.start]:02x})") from None


def parse_json(text: str, path: Path) -> Any:
    """The JSON document in a text; `path` is named when it is not one."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(f"{path}: not JSON (line {error.lineno}, column {error.colno}: {error.msg})") from None
    except RecursionError:
        raise DataError(f"{path}: not usable JSON (nested too deeply)") from None


def read_records(path: Path, record: type[_Record]) -> list[_Record]:
    """A JSON list whose every element has the record's fields."""
    text = read_text(path)
    try:
        return msgspec.json.decode(text, type=list[record], strict=False)  # type: ignore[valid-type]
    except msgspec.MsgspecError:
        document = parse_json(text, path)  # slower, but it takes NaN and says in which line a mistake is
    try:
        return msgspec.convert(document, list[record], strict=False)  # type: ignore[valid-type]
    except msgspec.ValidationError as error:
        raise DataError(f"{path}: {error}") from None


def read_json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Each line's number with its JSON value; blank lines are passed over."""
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except (json.JSONDecodeError, RecursionError):
                raise DataError(f"{path}: line {number} is not JSON") from None


def find_file(data: Path, name: str) -> Path | None:
    """The shallowest file of that name in a folder or up to two folders below it, as official archives nest them."""
    return _shallowest(data, name, Path.is_file)


def find_folder(data: Path, name: str) -> Path | None:
    """The shallowest folder of that name, up to two folders below."""
    return _shallowest(data, name, Path.is_dir)


def require_folder(data: Path | None, benchmark: str) -> Path:
    """The --data folder, which this benchmark cannot do without."""
    if data is None:
        raise DataError(f"--data: {benchmark} needs the folder that holds its files")
    if not data.is_dir():
        raise DataError(f"--data: {data} is not a folder")
    return data


def _shallowest(data: Path, name: str, fits: Any) -> Path | None:
    for pattern in (name, f"*/{name}", f"*/*/{name}"):
        matches = sorted(path for path in data.glob(pattern) if fits(path))
        if matches:
            return matches[0]
    return None


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
