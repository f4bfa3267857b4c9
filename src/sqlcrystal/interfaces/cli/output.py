"""What commands print: one JSON document on stdout, tables for people, progress on stderr."""

import sys
from collections.abc import Iterable, Sequence

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table


def print_json(document: object) -> None:
    """Print one JSON document and nothing else."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n")


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table a person can read; numbers are set flush right."""
    table = Table(title=title, title_justify="left")
    body = [
        [("" if cell is None else f"{cell:.2f}" if isinstance(cell, float) else str(cell)) for cell in row]
        for row in rows
    ]
    for index, column in enumerate(columns):
        numeric = all(_is_number(row[index]) for row in body) if body else False
        table.add_column(column, justify="right" if numeric else "left")
    for row in body:
        table.add_row(*row)
    Console().print(table)


def progress(*, disable: bool = False) -> Progress:
    """A progress bar on stderr, silent when stderr is not a terminal."""
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=disable or not console.is_terminal,
    )


def _is_number(text: str) -> bool:
    return (
        text.replace(".", "", 1).replace("-", "", 1).replace("+", "", 1).replace("%", "").strip().isdigit() or not text
    )
