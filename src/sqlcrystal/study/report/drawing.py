"""Drawing figures: panels on their own for the page, side by side for print; needs the `report` extra (matplotlib)."""

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlcrystal.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

INK = "#212123"
QUIET = "#8a8a8d"
# Okabe and Ito's palette: told apart under every common colour blindness.
BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9"
PALETTE = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)
MARKERS = ("o", "s", "^", "D", "v", "P")
LEAST_SPAN = 10.0
"""Points of accuracy that an axis shows at least, so that nothing looks like a change that is none."""
STYLE: dict[str, Any] = {
    "font.family": ["DejaVu Sans"],
    "font.size": 9.0,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
    "figure.dpi": 100,
}


@dataclass(frozen=True)
class Panel:
    """One set of axes and how large it wants to be, in inches."""

    draw: Callable[["Axes"], None]
    height: float
    width: float = 4.4


@dataclass(frozen=True)
class Figure:
    """A figure as a value: what it shows, in words and in panels."""

    key: str
    title: str
    caption: str
    panels: tuple[Panel, ...]
    opaque: bool = False
    """True if it brings its own ground, so that it can stand on any slide."""


def page_svgs(figure: Figure) -> tuple[str, ...]:
    """One inline SVG per panel: ids of its own, ink in the page's text colour, no fixed size."""
    drawings = []
    for index, panel in enumerate(figure.panels):
        text = _save(figure, (panel,), "svg").decode()
        drawings.append(_inline(text, f"{figure.key}-{index}", figure.title, panel.width))
    return tuple(drawings)


def files(figure: Figure) -> dict[str, bytes]:
    """The whole figure as SVG, PNG and PDF, the same bytes every time."""
    return {kind: _save(figure, figure.panels, kind) for kind in ("svg", "png", "pdf")}


def _save(figure: Figure, panels: tuple[Panel, ...], kind: str) -> bytes:
    try:
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure as Canvas
    except ImportError:
        raise ConfigError("figures need matplotlib; install it with: pip install 'sqlcrystal[report]'") from None
    settings: Any = {**STYLE, "svg.hashsalt": figure.key}
    with matplotlib.rc_context(settings):
        size = (sum(panel.width for panel in panels), max(panel.height for panel in panels))
        canvas = Canvas(figsize=size, layout="constrained")
        FigureCanvasAgg(canvas)
        _fill(canvas, panels)
        out = io.BytesIO()
        dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}[kind]
        canvas.savefig(out, format=kind, dpi=200, transparent=kind == "svg" and not figure.opaque, metadata=dated)
    return out.getvalue()


def _fill(canvas: "Canvas", panels: tuple[Panel, ...]) -> None:
    widths = [panel.width for panel in panels]
    axes = canvas.subplots(1, len(panels), squeeze=False, gridspec_kw={"width_ratios": widths})[0]
    for panel_axes, panel in zip(axes, panels, strict=True):
        panel.draw(panel_axes)


def _inline(svg: str, key: str, title: str, width: float) -> str:
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r'\bid="', f'id="{key}-', body)
    body = re.sub(r'href="#', f'href="#{key}-', body)
    body = re.sub(r"url\(#", f"url(#{key}-", body)
    body = body.replace(INK, "currentColor").replace("#ffffff", "var(--page)")
    label = title.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    head = re.sub(r'\s(width|height)="[^"]*"', "", body[: body.index(">")])
    # Panels share a line in proportion to their width, so that their letters are of one size.
    space = f"flex: {width:g} 1 {4.4 * width:.1f}rem; max-width: {7 * width:.1f}rem"
    return f'{head} style="{space}" role="img" aria-label="{label}"{body[body.index(">") :]}'


def accuracy_span(values: Sequence[float]) -> tuple[float, float]:
    """An axis that holds the values with some air, and never fewer points than tell something from nothing."""
    low, high = min(values), max(values)
    room = max(high - low, LEAST_SPAN)
    middle = (low + high) / 2
    bottom, top = min(low - 0.15 * room, middle - room / 2), max(high + 0.15 * room, middle + room / 2)
    # A label at an end of the scale keeps off the axis, for its label's sake.
    return max(-0.04 * room if low <= 0 else 0.0, bottom), min(100.0, top) if high < 100 else 101.0
