"""Rows as the page shows them: a hundred at a time, verbatim; a single row of measures as tiles."""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from sqlcrystal.bank import Scope
from sqlcrystal.interfaces.server.access import Door
from sqlcrystal.interfaces.web.charts import is_measure
from sqlcrystal.interfaces.web.text import heading, number_words
from sqlcrystal.serving.documents import Result
from sqlcrystal.serving.stories import AnswerStory
from sqlcrystal.types import Row

PAGE_ROWS = 100
MOST_TILES = 3


class Tile(NamedTuple):
    """A figure on its own, for people, with the name and number as the database gave them."""

    name: str
    column: str
    figure: str
    exact: str


class TableView(Struct, frozen=True, kw_only=True):
    """Rows as a table shows them."""

    columns: Sequence[str]
    rows: Sequence[Row]
    row_count: int
    page: int = 1
    kept: bool = True
    """Whether the rows can be had again: they were kept, or the SQL was kept with its values."""

    @property
    def pages(self) -> int:
        """Tell how many pages of a hundred rows there are."""
        return max(1, -(-self.row_count // PAGE_ROWS))

    @property
    def first(self) -> int:
        """The number of the first row that is shown."""
        return (self.page - 1) * PAGE_ROWS + 1

    @property
    def numeric(self) -> list[bool]:
        """Tell which columns hold numbers only."""
        return [
            any(row[at] is not None for row in self.rows)
            and all(row[at] is None or isinstance(row[at], int | float) for row in self.rows)
            for at in range(len(self.columns))
        ]

    @property
    def measures(self) -> list[bool]:
        """Tell which columns hold quantities, whose thousands may stand apart."""
        return [
            is_measure(name, [row[at] for row in self.rows if row[at] is not None])
            for at, name in enumerate(self.columns)
        ]

    @property
    def leader(self) -> str:
        """Name the label that has the most of the one measure; nothing where rows are missing or two share it."""
        if len(self.columns) != 2 or self.measures != [False, True] or len(self.rows) != self.row_count:
            return ""
        ranked = sorted(((float(row[1] or 0), row[0]) for row in self.rows), key=lambda pair: -pair[0])
        if len(ranked) < 2 or ranked[0][0] == ranked[1][0] or not isinstance(ranked[0][1], str):
            return ""
        return f"{ranked[0][1]} has the highest {heading(self.columns[1])}, {number_words(ranked[0][0])}"

    @property
    def tiles(self) -> list[Tile]:
        """One row of one to three measures: what each is called, and its figure."""
        if len(self.rows) != 1 or self.row_count != 1 or not 1 <= len(self.columns) <= MOST_TILES:
            return []
        (row,) = self.rows
        told = [
            Tile(heading(name), name, number_words(value), str(value))
            for name, value in zip(self.columns, row, strict=True)
            if isinstance(value, int | float) and is_measure(name, [value])
        ]
        return told if len(told) == len(self.columns) else []

    @property
    def in_short(self) -> str:
        """Give a single figure itself, and of more the number of rows."""
        return f"gives {self.tiles[0].figure}" if len(self.tiles) == 1 else self.row_words

    @property
    def row_words(self) -> str:
        """Tell how many rows there are, and whether all are shown."""
        if not self.kept:
            return "Rows are not kept"
        if len(self.rows) >= self.row_count:
            return rows_in_words(self.row_count)
        return f"Rows {self.first:,} to {self.first + len(self.rows) - 1:,} of {self.row_count:,}"


def rows_in_words(count: int) -> str:
    """1 row, 2,500 rows."""
    return f"{count:,} row{'' if count == 1 else 's'}"


def holds_page(story: AnswerStory, page: int) -> bool:
    """Tell whether a page of an answer's rows is shown without running its SQL again."""
    record = story.record
    if not story.runnable:
        return True
    return page == 1 and record.rows is not None and len(record.rows) >= min(record.row_count, PAGE_ROWS)


def table_of(door: Door, story: AnswerStory, scope: Scope, page: int) -> TableView:
    """Show one page of an answer's rows: those that were kept, or read again behind the guard, without a model."""
    record = story.record
    if not story.runnable:
        return TableView(columns=(), rows=(), row_count=0, kept=False)
    if record.rows is not None and holds_page(story, page):
        return TableView(columns=record.columns, rows=record.rows[:PAGE_ROWS], row_count=record.row_count)
    result = door.answer_again(record.id, scope)
    if result.error:
        return TableView(columns=record.columns, rows=(), row_count=record.row_count)
    return first_rows(result, page)


def first_rows(result: Result, page: int = 1) -> TableView:
    """Show the first page of a statement's rows, or another; past the last one it is the last."""
    page = min(max(1, page), max(1, -(-len(result.rows) // PAGE_ROWS)))
    shown = result.rows[(page - 1) * PAGE_ROWS : page * PAGE_ROWS]
    return TableView(columns=result.columns, rows=shown, row_count=result.row_count, page=page)
