"""A table as a value, its cells as every format needs them, and its specification: name, maker, needs."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from sqlcrystal.study.report.facts import Facts


Cells = tuple[str, ...]


class Body(Struct, frozen=True, kw_only=True):
    """A table as its builder makes it: ready-made text; a row of one cell is a heading that spans the table."""

    columns: Cells
    rows: tuple[Cells, ...]
    note: str = ""


class ReportTable(Struct, frozen=True, kw_only=True):
    """A table with its name; every format renders this and nothing else."""

    key: str
    title: str
    columns: Cells
    rows: tuple[Cells, ...]
    note: str = ""
    folded: bool = False
    """True if a page shows it closed: audits, and what only a second look needs."""


class Absent(Struct, frozen=True, kw_only=True):
    """A table or figure that cannot be made, and what it would need."""

    key: str
    title: str
    needs: str
    """Empty for what only a few studies ask for: the others do not lack it."""


@dataclass(frozen=True)
class TableSpec:
    """One table of the report: made from one run, or across several; a builder without material returns None."""

    key: str
    title: str
    needs: str
    of_run: "Callable[[Facts], Body | None] | None" = None
    across: "Callable[[Sequence[Facts]], Body | None] | None" = None
    folded: bool = False
    paper: str = field(default="")
    """The label of the paper's table it answers to; empty for what the paper says in words, or not at all."""

    def make(self, runs: "Sequence[Facts]") -> ReportTable | Absent:
        """The table, or what it would need."""
        body = self.of_run(runs[0]) if self.of_run else self.across(runs) if self.across else None
        if body is None or not body.rows:
            return Absent(key=self.key, title=self.title.format(split=runs[0].split), needs=self.needs)
        return ReportTable(
            key=self.key,
            title=self.title.format(split=runs[0].split),
            columns=body.columns,
            rows=body.rows,
            note=body.note,
            folded=self.folded,
        )


NUMERIC = re.compile(r"[+−<]?[\d.,]+( ?%| ?pp|M|K|×)?|—|[+−]?[\d.,]+( ?/ ?[+−]?[\d.,]+)+")


def numeric_columns(table: ReportTable) -> tuple[bool, ...]:
    """Tell which columns hold figures and are set flush right."""
    body = [row for row in table.rows if len(row) == len(table.columns)]
    return tuple(
        bool(body) and all(NUMERIC.fullmatch(row[index]) or not row[index] for row in body)
        for index in range(len(table.columns))
    )
