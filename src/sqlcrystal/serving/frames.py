"""The rows of an answer as the data frames people work with; none of their libraries is needed until asked for."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from sqlcrystal.errors import ConfigError
from sqlcrystal.types import Cell, Row


def pandas_frame(columns: Sequence[str], rows: Sequence[Row]) -> Any:
    """A pandas DataFrame; repeated column names stay as they are."""
    return _library("pandas").DataFrame(list(rows), columns=list(columns))


def polars_frame(columns: Sequence[str], rows: Sequence[Row]) -> Any:
    """A Polars DataFrame; a column of mixed types becomes text."""
    polars = _library("polars")
    data = dict(zip(_told_apart(columns), _columns(columns, rows), strict=True))
    return polars.DataFrame(data, strict=False)


def arrow_table(columns: Sequence[str], rows: Sequence[Row]) -> Any:
    """An Arrow table; a column of mixed types becomes text."""
    return _library("pyarrow").table(dict(zip(_told_apart(columns), _columns(columns, rows), strict=True)))


def _columns(columns: Sequence[str], rows: Sequence[Row]) -> list[list[Cell]]:
    by_column = [[row[place] for row in rows] for place in range(len(columns))]
    return [values if len(_kinds(values)) <= 1 else [_as_text(value) for value in values] for values in by_column]


def _kinds(values: Sequence[Cell]) -> set[type]:
    """The types in a column; whole and broken numbers are one."""
    return {float if type(value) is int else type(value) for value in values if value is not None}


def _as_text(value: Cell) -> Cell:
    return None if value is None else str(value)


def _told_apart(columns: Sequence[str]) -> list[str]:
    """Column names, a repeated one with its number: frames that go by name would lose a column."""
    names: list[str] = []
    for column in columns:
        name, number = column, 2
        while name in names:
            name, number = f"{column}_{number}", number + 1
        names.append(name)
    return names


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise ConfigError(f"{name} is not installed; pip install {name}") from None
