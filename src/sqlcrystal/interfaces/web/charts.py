"""A chart where rows suit one, as SVG of our own: never a total nobody asked for, never a column left out."""

import math
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from markupsafe import Markup

from sqlcrystal.escaping import visible
from sqlcrystal.interfaces.web.text import heading, number_words
from sqlcrystal.types import Cell, Row

MOST_DOTS = 60
MOST_BARS, MOST_LINES, FEWEST_POINTS, MOST_POINTS = 30, 4, 3, 400
_DATE = re.compile(r"\d{4}(-\d{2}){0,2}([ T]\d{2}:\d{2}(:\d{2})?)?$")
_YEAR = re.compile(r"(^|_)year$", re.IGNORECASE)
_NO_MEASURE = re.compile(r"(^|_)(id|ids|code|year|number|no|zip|rank)$|^(id|year|zip)", re.IGNORECASE)


class Size(NamedTuple):
    """How wide a drawing is, and what of that its labels take; letters keep their size, so a phone has its own."""

    width: int
    labels: int
    letters: int
    shown: str


SIZES = (Size(720, 220, 28, "at-desk"), Size(332, 112, 13, "on-phone"))
BAR_HEIGHT = 24


def chart(columns: Sequence[str], rows: Sequence[Row], *, truncated: bool) -> Markup | None:
    """Tiles need none; a date with measures is a line, a label with one measure is bars; all else stays a table."""
    if truncated or len(rows) < 2 or not columns:
        return None
    kinds = [_kind(name, [row[at] for row in rows]) for at, name in enumerate(columns)]
    measures = [at for at, kind in enumerate(kinds) if kind == "measure"]
    labels = [at for at, kind in enumerate(kinds) if kind != "measure"]
    if len(labels) != 1 or not measures:
        return None
    names = [row[labels[0]] for row in rows]
    if len(set(names)) != len(names):
        return None
    if kinds[labels[0]] == "date" and FEWEST_POINTS <= len(rows) <= MOST_POINTS and len(measures) <= MOST_LINES:
        ordered = sorted(rows, key=lambda row: str(row[labels[0]]))
        return both_sizes(lambda size: _line(size, columns, ordered, labels[0], measures))
    if len(rows) <= MOST_BARS and len(measures) == 1:
        return both_sizes(lambda size: _bars(size, columns, rows, labels[0], measures[0]))
    return None


def both_sizes(draw: Callable[[Size], Markup]) -> Markup:
    """A drawing for a workspace and one for a phone; the style sheet shows the one that fits."""
    return Markup("").join(draw(size) for size in SIZES)


def is_measure(name: str, values: Sequence[Cell]) -> bool:
    """Tell whether a column holds quantities: numbers, and no ids, years or codes."""
    numeric = all(
        isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) for value in values
    )
    return numeric and not _NO_MEASURE.search(name)


def _kind(name: str, values: Sequence[Cell]) -> str:
    if all(isinstance(value, str) and _DATE.match(value) for value in values):
        return "date"
    if _YEAR.search(name) and all(isinstance(value, int) and 1000 <= value <= 9999 for value in values):
        return "date"
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
                '<text x="{}" y="{}" text-anchor="end">{}</text>'
                '<rect class="bar" x="{}" y="{}" width="{}" height="{}"><title>{}: {}</title></rect>'
                '<text class="muted" x="{}" y="{}">{}</text>'
            ).format(
                size.labels - 8,
                top + 14,
                _short(row[label], size.letters),
                round(min(zero, end), 1),
                top,
                round(max(0.5, abs(end - zero)), 1),
                BAR_HEIGHT - 6,
                visible(str(row[label])),
                row[measure],
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
    frame = Frame(size, height=260, left=72, head=head, low=low, high=high, steps=len(rows) - 1)
    parts = [*frame.grid(), *frame.ends(_short(rows[0][label], 16), _short(rows[-1][label], 16))]
    for number, series in enumerate(values):
        points = " ".join(f"{frame.across(place):.1f},{frame.down(value):.1f}" for place, value in enumerate(series))
        parts.append(Markup('<polyline class="line{}" points="{}"/>').format(number, points))
        parts += [
            Markup('<circle class="dot{}" cx="{:.1f}" cy="{:.1f}" r="3.5"><title>{}: {}</title></circle>').format(
                number, frame.across(place), frame.down(value), visible(str(rows[place][label])), value
            )
            for place, value in enumerate(series)
            if len(series) <= MOST_DOTS
        ]
    if low > 0 or high < 0:
        parts.append(
            Markup('<text class="muted" x="{}" y="{}">does not begin at 0</text>').format(72, frame.height - 26)
        )
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
