"""Interval plots: differences with their intervals, each under its name and the question it answers."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sqlcrystal.study.report.comparisons import Finding
from sqlcrystal.study.report.drawing import BLUE, INK, QUIET, VERMILION, Panel
from sqlcrystal.study.report.paper import Published
from sqlcrystal.study.report.wording import interval, plural, points

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Ends = tuple[float, float]
ROW = 0.6
"""Inches a comparison takes."""
LONGEST = 12
"""Comparisons in one panel; more are set in further panels with the same axis."""


def forest_panels(findings: Sequence[Finding], paper: Mapping[str, Published]) -> tuple[Panel, ...]:
    """The comparisons in as few panels as are readable, all on one scale; those of fewer seeds come last."""
    findings = sorted(findings, key=lambda finding: -finding.result.n_seeds)
    ends = _range(findings, paper)
    count = -(-len(findings) // LONGEST)
    size = -(-len(findings) // count)
    parts = [findings[start : start + size] for start in range(0, len(findings), size)]
    return tuple(_panel(part, ends, paper) for part in parts)


def _panel(findings: Sequence[Finding], ends: Ends, paper: Mapping[str, Published]) -> Panel:
    height = ROW * len(findings) + (0.85 if paper else 0.6)
    return Panel(lambda axes: _draw(axes, findings, ends, paper), height, 4.3)


def _range(findings: Sequence[Finding], paper: Mapping[str, Published]) -> Ends:
    """The widest interval, zero included."""
    values = [0.0]
    for finding in findings:
        result, theirs = finding.result, paper.get(finding.key)
        shown = (result.delta_pp, result.ci_low_pp, result.ci_high_pp)
        published = (theirs.delta_pp, theirs.low_pp, theirs.high_pp) if theirs else ()
        values += [value for value in (*shown, *published) if value is not None]
    room = max(max(values) - min(values), 2.0)
    return min(values) - 0.05 * room, max(values) + 0.05 * room


def _draw(axes: "Axes", findings: Sequence[Finding], ends: Ends, paper: Mapping[str, Published]) -> None:
    axes.set_xlim(*ends)
    axes.set_ylim(-0.35, len(findings) - 0.1)
    for y, finding in enumerate(reversed(findings)):
        # The zero line stands beside the interval only, so that it crosses no letter.
        axes.vlines(0, y - 0.32, y + 0.12, color=QUIET, linewidth=0.8)
        _interval(axes, y, finding)
        theirs = paper.get(finding.key)
        if theirs is not None:
            _published(axes, y - 0.2, theirs)
        _label(axes, y, finding, ends)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("Change in held-out accuracy (percentage points)")
    if paper:
        axes.plot([], [], color=BLUE, marker="o", linewidth=1.8, label="this study")
        axes.plot([], [], color=VERMILION, marker="D", markersize=4, linewidth=1.1, label="paper")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.42 / (ROW * len(findings))), ncols=2)


def _interval(axes: "Axes", y: float, finding: Finding) -> None:
    result = finding.result
    if result.ci_low_pp is not None and result.ci_high_pp is not None:
        axes.hlines(y, result.ci_low_pp, result.ci_high_pp, color=BLUE, linewidth=1.8)
    axes.scatter(
        result.delta_pp,
        y,
        s=40,
        marker="o" if finding.confirmatory else "s",
        zorder=3,
        edgecolor=BLUE,
        linewidth=1.4,
        facecolor=BLUE if finding.supported else "white",
    )


def _published(axes: "Axes", y: float, theirs: Published) -> None:
    if theirs.delta_pp is None:
        return
    if theirs.low_pp is not None and theirs.high_pp is not None:
        axes.hlines(y, theirs.low_pp, theirs.high_pp, color=VERMILION, linewidth=1.1)
    axes.scatter(theirs.delta_pp, y, s=20, marker="D", color=VERMILION, zorder=3)


def _label(axes: "Axes", y: float, finding: Finding, ends: Ends) -> None:
    figures = f"{points(finding.result.delta_pp)} {interval(finding.result.ci_low_pp, finding.result.ci_high_pp, 1)}"
    if finding.result.ci_low_pp is None:
        figures = f"{points(finding.result.delta_pp)}, no interval"
    top = y + (0.5 if finding.asks else 0.3)
    name = finding.name + (f" ({plural(finding.result.n_seeds, finding.split)})" if finding.preliminary else "")
    axes.annotate(name, (ends[0], top), ha="left", va="center", fontsize=8.5, fontweight="bold", color=INK)
    axes.annotate(figures, (ends[1], top), ha="right", va="center", fontsize=8.5, color=INK)
    if finding.asks:
        axes.annotate(finding.asks, (ends[0], y + 0.27), ha="left", va="center", fontsize=7.5, color=INK)
