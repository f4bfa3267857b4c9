"""Rows as the page shows them: verbatim, a hundred at a time; a row of measures as tiles; a chart where one suits."""

import math
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from markupsafe import Markup
from msgspec import Struct

from sqlcrystal.bank import Scope
from sqlcrystal.escaping import visible
from sqlcrystal.interfaces.server.access import Door
from sqlcrystal.interfaces.web.text import heading, number_words
from sqlcrystal.serving.documents import Result
from sqlcrystal.serving.stories import AnswerStory
from sqlcrystal.types import Cell, Row

MOST_DOTS = 60
TIP_LETTERS = 36
MOST_BARS, MOST_LINES, FEWEST_POINTS, MOST_POINTS = 30, 4, 3, 400
_DATE = re.compile(r"\d{4}(-\d{2}){0,2}([ T]\d{2}:\d{2}(:\d{2})?)?$")
_PERIODS = {"year": (1000, 9999), "quarter": (1, 4), "month": (1, 12), "week": (0, 53), "day": (0, 31), "hour": (0, 24)}
_PERIOD = re.compile(rf"(?:^|_)({'|'.join(_PERIODS)})$", re.IGNORECASE)
"""Columns of whole numbers that stand for a time, with the numbers they may hold."""
_NO_MEASURE = re.compile(r"(^|_)(id|ids|code|year|number|no|zip|rank)$|^(id|year|zip)", re.IGNORECASE)


class Size(NamedTuple):
    """The width of a drawing, and the part of it that labels take; letters keep their size, so a phone has its own."""

    width: int
    labels: int
    letters: int
    shown: str


SIZES = (Size(720, 220, 28, "at-desk"), Size(332, 112, 13, "on-phone"))
BAR_HEIGHT = 24
FOOT = 0.15
"""So much of its height a line keeps above an axis that does not begin at 0, where the break stands and says so."""
LETTER = 8


def charts(columns: Sequence[str], rows: Sequence[Row], *, truncated: bool) -> dict[str, Markup]:
    """Draw rows in every way that suits them, the best one first; where none does they stay a table.

    A label with one measure is bars; a date, year or month with measures is a line, and bars where they are few.
    """
    if truncated or len(rows) < 2 or not columns:
        return {}
    kinds = [_kind(name, [row[at] for row in rows]) for at, name in enumerate(columns)]
    measures = [at for at, kind in enumerate(kinds) if kind == "measure"]
    labels = [at for at, kind in enumerate(kinds) if kind != "measure"]
    if len(labels) != 1 or not measures or len({row[labels[0]] for row in rows}) != len(rows):
        return {}
    (label,), drawn = labels, {}
    if kinds[label] == "time":
        rows = sorted(rows, key=lambda row: _order(row[label]))
        if FEWEST_POINTS <= len(rows) <= MOST_POINTS and len(measures) <= MOST_LINES:
            drawn["line"] = both_sizes(lambda size: _line(size, columns, rows, label, measures))
    if len(rows) <= MOST_BARS and len(measures) == 1:
        drawn["bars"] = both_sizes(lambda size: _bars(size, columns, rows, label, measures[0]))
    return drawn


def both_sizes(draw: Callable[[Size], Markup]) -> Markup:
    """A drawing for a workspace and one for a phone; the style sheet shows the one that fits."""
    return Markup("").join(draw(size) for size in SIZES)


def is_measure(name: str, values: Sequence[Cell]) -> bool:
    """Tell whether a column holds quantities: numbers, and no ids, years or codes."""
    numeric = all(
        isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) for value in values
    )
    return numeric and not _NO_MEASURE.search(name)


def _order(time: Cell) -> tuple[float, str]:
    """Put years and months in order as numbers, and dates as they are written."""
    return (float(time), "") if isinstance(time, int) else (0.0, str(time))


def _kind(name: str, values: Sequence[Cell]) -> str:
    if all(isinstance(value, str) and _DATE.match(value) for value in values):
        return "time"
    if period := _PERIOD.search(name):
        least, most = _PERIODS[period[1].lower()]
        if all(type(value) is int and least <= value <= most for value in values):
            return "time"
    return "measure" if is_measure(name, values) else "label"


def _bars(size: Size, columns: Sequence[str], rows: Sequence[Row], label: int, measure: int) -> Markup:
    values = [float(row[measure] or 0) for row in rows]
    low, high = min(0.0, *values), max(0.0, *values)
    span = (high - low) or 1.0
    room = size.width - size.labels - 80
    zero = size.labels + room * -low / span
    height = BAR_HEIGHT * len(rows) + 8
    title = f"{heading(columns[measure])} by {columns[label]}, {len(rows)} bars from zero"
    parts = [Markup('<line class="axis" x1="{0}" x2="{0}" y1="0" y2="{1}"/>').format(round(zero, 1), height)]
    for place, (row, value) in enumerate(zip(rows, values, strict=True)):
        top = place * BAR_HEIGHT + 4
        end = size.labels + room * (value - low) / span
        parts.append(
            Markup(
                '<g class="spot"><title>{}: {}</title><rect class="hit" x="0" y="{}" width="{}" height="{}"/>'
                '<text x="{}" y="{}" text-anchor="end">{}</text>'
                '<rect class="bar" x="{}" y="{}" width="{}" height="{}"/>'
                '<text class="muted" x="{}" y="{}">{}</text></g>'
            ).format(
                visible(str(row[label])),
                row[measure],
                top - 3,
                size.width,
                BAR_HEIGHT,
                size.labels - 8,
                top + 14,
                _short(row[label], size.letters),
                round(min(zero, end), 1),
                top,
                round(max(0.5, abs(end - zero)), 1),
                BAR_HEIGHT - 6,
                round(max(zero, end) + 6, 1),
                top + 14,
                number_words(value),
            )
        )
    return drawing(title, size, height, parts)


def _line(size: Size, columns: Sequence[str], rows: Sequence[Row], label: int, measures: Sequence[int]) -> Markup:
    names = [heading(columns[at]) for at in measures]
    values = [[float(row[at] or 0) for row in rows] for at in measures]
    low, high = min(map(min, values)), max(map(max, values))
    head = 24 if len(names) > 1 else 8
    foot = max(0.0, low - FOOT * (high - low)) if low > 0 else low
    frame = Frame(size, height=260, left=72, head=head, low=foot, high=high, steps=len(rows) - 1)
    parts = [*frame.grid(), *frame.under([_short(row[label], 16) for row in rows])]
    for number, series in enumerate(values):
        points = " ".join(f"{frame.across(place):.1f},{frame.down(value):.1f}" for place, value in enumerate(series))
        parts.append(Markup('<polyline class="line{}" points="{}"/>').format(number, points))
    for place, row in enumerate(rows):
        told = [(name, row[at]) for name, at in zip(names, measures, strict=True)]
        marks = [(number, series[place]) for number, series in enumerate(values)] if len(rows) <= MOST_DOTS else []
        parts.append(frame.spot(place, str(row[label]), told, marks))
    if foot > 0 or high < 0:
        parts.append(frame.broken())
    if len(names) > 1:
        parts += _legend(size, names, left=72)
    title = f"{', '.join(names)} over {columns[label]}, {len(rows)} points from {low:g} to {high:g}"
    return drawing(title, size, 260, parts)


def _legend(size: Size, names: Sequence[str], *, left: int) -> list[Markup]:
    """Tell which line is which, by its dashes as well as its colour."""
    each = (size.width - left) / len(names)
    return [
        Markup('<line class="line{}" x1="{:.0f}" x2="{:.0f}" y1="8" y2="8"/><text x="{:.0f}" y="12">{}</text>').format(
            number,
            left + number * each,
            left + number * each + 24,
            left + number * each + 30,
            _short(name, int((each - 34) / 7)),
        )
        for number, name in enumerate(names)
    ]


class Frame(NamedTuple):
    """The plane a line is drawn on: steps to the right, values upwards."""

    size: Size
    height: int
    left: int
    head: int
    low: float
    high: float
    steps: float

    def across(self, step: float) -> float:
        """Tell where a step stands."""
        return self.left + (self.size.width - self.left - 16) * step / (self.steps or 1)

    def down(self, value: float) -> float:
        """Tell where a value stands."""
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return self.head + (self.height - 36 - self.head) * (1 - share)

    def spot(
        self, step: float, label: str, told: Sequence[tuple[str, object]], marks: Sequence[tuple[int, float]] = ()
    ) -> Markup:
        """Draw one step: its marks, and what it holds, which shows while the pointer is in its column."""
        alone = len(told) == 1
        lines = [f"{label}: {told[0][1]}"] if alone else [label, *(f"{name}: {value}" for name, value in told)]
        lines = [_short(line, TIP_LETTERS) for line in lines]
        width, height = 8 * max(map(len, lines)) + 16, 18 * len(lines) + 8
        here, reach = self.across(step), max(4.0, self.across(1) - self.across(0))
        left = min(max(2.0, here - width / 2), max(2.0, self.size.width - width - 2))
        dots = [
            Markup('<circle class="dot{}" cx="{:.1f}" cy="{:.1f}" r="3.5"/>').format(number, here, self.down(value))
            for number, value in marks
        ]
        words = [
            Markup('<text x="{:.1f}" y="{}">{}</text>').format(left + 8, 18 * (number + 1), line)
            for number, line in enumerate(lines)
        ]
        return Markup(
            '<g class="spot"><rect class="hit" x="{:.1f}" y="0" width="{:.1f}" height="{}"/>{}<g class="tip">'
            '<line class="axis" x1="{here:.1f}" x2="{here:.1f}" y1="{}" y2="{}"/>'
            '<rect class="box" x="{:.1f}" y="2" width="{}" height="{}" rx="4"/>{}</g></g>'
        ).format(
            here - reach / 2,
            reach,
            self.height - 30,
            Markup("").join(dots),
            height,
            self.height - 36,
            left,
            width,
            height,
            Markup("").join(words),
            here=here,
        )

    def broken(self) -> Markup:
        """Draw the break of an axis that does not begin at 0, and say so."""
        x, y = self.left, self.height - 36
        return Markup(
            '<path class="break" d="M{0} {1}v-4l-6 -3l12 -4l-6 -3v-4"/>'
            '<text class="muted" x="{2}" y="{3}">does not begin at 0</text>'
        ).format(x, y + 8, x + 10, y + 6)

    def grid(self, *, signed: bool = False) -> list[Markup]:
        """Lines at round values, each with its value."""
        return [
            Markup(
                '<line class="{}" x1="{}" x2="{}" y1="{y:.1f}" y2="{y:.1f}"/>'
                '<text class="muted" x="{}" y="{:.1f}" text-anchor="end">{}</text>'
            ).format(
                "axis" if tick == 0 else "grid",
                self.left,
                self.size.width - 16,
                self.left - 8,
                self.down(tick) + 4,
                f"{tick:+.10g}" if signed and tick else f"{tick:.10g}",
                y=self.down(tick),
            )
            for tick in _ticks(self.low, self.high)
        ]

    def under(self, labels: Sequence[str]) -> list[Markup]:
        """Tell what stands under each step, where all fit side by side, or else under the first and the last."""
        room = self.across(1) - self.across(0)
        if any(LETTER * (len(label) + 1) > room for label in labels):
            return self.ends(labels[0], labels[-1])
        text = Markup('<text class="muted" x="{:.1f}" y="{}" text-anchor="middle">{}</text>')
        inner = [text.format(self.across(step), self.height - 12, labels[step]) for step in range(1, len(labels) - 1)]
        return [*self.ends(labels[0], labels[-1]), *inner]

    def ends(self, first: str, last: str) -> list[Markup]:
        """Tell what stands under the first and the last step."""
        bottom = self.height - 12
        text = Markup('<text class="muted" x="{}" y="{}">{}</text>').format(self.left, bottom, first)
        other = Markup('<text class="muted" x="{}" y="{}" text-anchor="end">{}</text>')
        return [text, other.format(self.size.width - 16, bottom, last)]


def _ticks(low: float, high: float) -> list[float]:
    """Two to six round values between two others."""
    if high <= low:
        return [low]
    rough = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * each for each in (1, 2, 5, 10) if power * each >= rough)
    return [round(step * place, 10) for place in range(math.ceil(low / step), math.floor(high / step) + 1)]


def drawing(title: str, size: Size, height: int, parts: Sequence[Markup]) -> Markup:
    """One SVG at its own size, with a sentence for who cannot see it."""
    head = Markup('<svg class="{2}" role="img" width="{0}" height="{1}" viewBox="0 0 {0} {1}" aria-label="{3}">')
    return head.format(size.width, height, size.shown, visible(title)) + Markup("").join(parts) + Markup("</svg>")


def _short(value: Cell, letters: int) -> str:
    text = "NULL" if value is None else visible(str(value))
    return text if len(text) <= letters else text[: letters - 1] + "…"


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
