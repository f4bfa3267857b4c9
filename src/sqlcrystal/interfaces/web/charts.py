"""A chart where rows suit one, as SVG of our own: never a total nobody asked for, never a column left out."""

import math
import re
from collections.abc import Sequence

from markupsafe import Markup

from sqlcrystal.outgoing import visible
from sqlcrystal.types import Cell, Row

WIDTH, ROW_HEIGHT, LABELS = 720, 24, 220
MOST_BARS, MOST_LINES, FEWEST_POINTS, MOST_POINTS = 30, 4, 3, 400
_DATE = re.compile(r"\d{4}(-\d{2}){0,2}([ T]\d{2}:\d{2}(:\d{2})?)?$")
_NO_MEASURE = re.compile(r"(^|_)(id|ids|code|year|number|no|zip|rank)$|^(id|year|zip)", re.IGNORECASE)


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
        return _line(columns, sorted(rows, key=lambda row: str(row[labels[0]])), labels[0], measures)
    if len(rows) <= MOST_BARS and len(measures) == 1:
        return _bars(columns, rows, labels[0], measures[0])
    return None


def _kind(name: str, values: Sequence[Cell]) -> str:
    if all(isinstance(value, str) and _DATE.match(value) for value in values):
        return "date"
    numeric = all(
        isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) for value in values
    )
    return "measure" if numeric and not _NO_MEASURE.search(name) else "label"


def _bars(columns: Sequence[str], rows: Sequence[Row], label: int, measure: int) -> Markup:
    values = [float(row[measure] or 0) for row in rows]
    low, high = min(0.0, *values), max(0.0, *values)
    span = (high - low) or 1.0
    room = WIDTH - LABELS - 80
    zero = LABELS + room * -low / span
    height = ROW_HEIGHT * len(rows) + 8
    title = f"{columns[measure]} by {columns[label]}, {len(rows)} bars from zero"
    parts = [Markup('<line class="axis" x1="{0}" x2="{0}" y1="0" y2="{1}"/>').format(round(zero, 1), height)]
    for place, (row, value) in enumerate(zip(rows, values, strict=True)):
        top = place * ROW_HEIGHT + 4
        end = LABELS + room * (value - low) / span
        parts.append(
            Markup(
                '<text x="{}" y="{}" text-anchor="end">{}</text>'
                '<rect class="bar" x="{}" y="{}" width="{}" height="{}"/>'
                '<text class="muted" x="{}" y="{}">{}</text>'
            ).format(
                LABELS - 8,
                top + 15,
                _short(row[label]),
                round(min(zero, end), 1),
                top,
                round(max(0.5, abs(end - zero)), 1),
                ROW_HEIGHT - 6,
                round(max(zero, end) + 6, 1),
                top + 15,
                row[measure],
            )
        )
    return drawing(title, height, parts)


def _line(columns: Sequence[str], rows: Sequence[Row], label: int, measures: Sequence[int]) -> Markup:
    height, left, bottom = 260, 72, 36
    values = [[float(row[at] or 0) for row in rows] for at in measures]
    low, high = min(map(min, values)), max(map(max, values))
    span = (high - low) or 1.0
    step = (WIDTH - left - 16) / (len(rows) - 1)

    def spot(place: int, value: float) -> str:
        return f"{left + place * step:.1f},{8 + (height - bottom - 16) * (1 - (value - low) / span):.1f}"

    parts = [
        Markup('<text class="muted" x="{}" y="14" text-anchor="end">{:g}</text>').format(left - 8, high),
        Markup('<text class="muted" x="{}" y="{}" text-anchor="end">{:g}</text>').format(
            left - 8, height - bottom, low
        ),
        Markup('<text class="muted" x="{}" y="{}">{}</text>').format(left, height - 12, _short(rows[0][label])),
        Markup('<text class="muted" x="{}" y="{}" text-anchor="end">{}</text>').format(
            WIDTH - 16, height - 12, _short(rows[-1][label])
        ),
    ]
    for number, series in enumerate(values):
        points = " ".join(spot(place, value) for place, value in enumerate(series))
        parts.append(Markup('<polyline class="line{}" points="{}"/>').format(number, points))
    names = ", ".join(columns[at] for at in measures)
    return drawing(f"{names} over {columns[label]}, {len(rows)} points from {low:g} to {high:g}", height, parts)


def drawing(title: str, height: int, parts: Sequence[Markup], *, width: int = WIDTH) -> Markup:
    """One SVG with a sentence for who cannot see it."""
    head = Markup('<svg role="img" viewBox="0 0 {} {}" aria-label="{}">').format(width, height, visible(title))
    return head + Markup("").join(parts) + Markup("</svg>")


def _short(value: Cell) -> str:
    text = "NULL" if value is None else visible(str(value))
    return text if len(text) <= 28 else text[:27] + "…"
