"""Output of commands: one JSON document on stdout, tables for people, progress on stderr."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from sqlcrystal.escaping import visible

if TYPE_CHECKING:
    from rich.progress import Progress

    from sqlcrystal.serving.answers import Event


def print_json(document: object) -> None:
    """Print one JSON document and nothing else."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n")


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table a person can read; numbers are set flush right."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(visible(title), style="table.title"), title_justify="left")
    body = [
        [("" if cell is None else f"{cell:.2f}" if isinstance(cell, float) else visible(str(cell))) for cell in row]
        for row in rows
    ]
    for index, column in enumerate(columns):
        numeric = all(_is_number(row[index]) for row in body) if body else False
        table.add_column(column, justify="right" if numeric else "left")
    for row in body:
        table.add_row(*map(Text, row))  # as text, since a cell may hold what looks like markup
    console = Console()
    if not console.is_terminal:  # a pipe has no width to fit into
        console = Console(width=Console(width=10_000).measure(table).maximum)
    console.print(table)


def print_lines(
    columns: Sequence[str], rows: Sequence[Sequence[object]], *, shortened: Mapping[str, str] | None = None
) -> None:
    """Print one line per row: cut to the terminal's width there, whole and tab-separated when piped.

    In a terminal only the last column is cut, and a cell stands as `shortened` says.
    """
    cells = [[visible(" ".join(str(cell).split())) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        sys.stdout.writelines("\t".join(row) + "\n" for row in [list(columns), *cells])
        return
    import shutil

    shown = [[(shortened or {}).get(cell, cell) for cell in row] for row in cells]
    page = [list(columns), *shown]
    widths = [max(len(row[column]) for row in page) for column in range(len(columns))]
    numeric = [bool(shown) and all(_is_number(row[column]) for row in shown) for column in range(len(columns))]
    width = shutil.get_terminal_size().columns
    for row in page:
        aligned = [
            cell.rjust(size) if right else cell.ljust(size)
            for cell, size, right in zip(row, widths, numeric, strict=True)
        ]
        line = "  ".join(aligned).rstrip()
        print(line if len(line) <= width else line[: width - 1] + "…")


def progress(*, disable: bool = False) -> "Progress":
    """Make a progress bar on stderr, silent when stderr is not a terminal."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

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


STEPS = {
    "read": "looking for cards",
    "cards": "the model writes SQL",
    "sql": "running it",
    "rows": "checking what came back",
}
"""The deed after each step of an answer."""


def tell_step(event: "Event") -> None:
    """Say what is being done after a step of an answer, and its SQL while it is written."""
    if event.kind == "writing":
        tell(" ".join(visible(str(event.data["sql"])).split()))
    elif event.kind in STEPS:
        tell(STEPS[event.kind])


def tell(step: str) -> None:
    """Say in a line of its own, which the next one replaces, what is being done; only where a person looks on."""
    if not sys.stderr.isatty():
        return
    import shutil

    width = shutil.get_terminal_size().columns - 1
    line = f"{step}…" if step else ""
    shown = line if len(line) <= width else f"…{line[1 - width :]}"
    print(f"\r{shown:{width}}", end="" if step else "\r", file=sys.stderr, flush=True)


def _is_number(text: str) -> bool:
    return (
        text.replace(",", "")
        .replace(".", "", 1)
        .replace("-", "", 1)
        .replace("+", "", 1)
        .replace("%", "")
        .strip()
        .isdigit()
        or not text
    )
