"""Reading the user's files: whatever is wrong with one is a DataError of one line that names it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from sqlcrystal.errors import DataError

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
