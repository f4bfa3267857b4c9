"""The figure of retrieval width: accuracy by cards retrieved and card format, and by size of the bank."""

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sqlcrystal.ledger.records import Arm
from sqlcrystal.study.report.comparisons import finding
from sqlcrystal.study.report.decision_tables import bank_fraction
from sqlcrystal.study.report.drawing import MARKERS, PALETTE, QUIET, Figure, Panel, accuracy_span
from sqlcrystal.study.report.facts import Facts, percent_right
from sqlcrystal.study.report.table import Absent
from sqlcrystal.study.report.value_tables import sample
from sqlcrystal.study.report.wording import points, probability

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH_KEYS = ("width", "width-3", "width-5", "wide-full")
BANK_KEYS = ("half-bank", "quarter-bank", "three-quarter-bank")

Grid = dict[str, list[tuple[float, Arm]]]


def widths(facts: Facts) -> Figure | Absent:
    """Width × writer, and bank size × width; a panel has two lines at least."""
    title = "Retrieval width, card format and bank size"
    by_writer = _grid(facts.varying("writer", "k"), lambda arm: arm.writer, lambda arm: float(arm.k))
    sized = [arm for arm in facts.varying("bank", "k") if bank_fraction(arm) is not None]
    partial = {arm.k for arm in sized if bank_fraction(arm) != 100}
    by_bank = _grid(
        [arm for arm in sized if arm.k in partial], lambda arm: f"k={arm.k}", lambda arm: bank_fraction(arm) or 0.0
    )
    panels = [
        Panel(lambda axes, grid=grid, label=label, name=name: _lines(axes, facts, grid, label, name), 4.4, 4.4)  # type: ignore[misc]
        for grid, label, name in (
            (by_writer, f"Cards retrieved, k{_line_beneath(facts, WIDTH_KEYS)}", "Width by card format"),
            (by_bank, f"Share of the bank (%){_line_beneath(facts, BANK_KEYS)}", "Bank size by width"),
        )
        if len(grid) > 1
    ]
    if not panels:
        needs = "widths k = 1, 3, 10 of two writers, or banks of 25%, 50%, 75% at two widths"
        return Absent(key="widths", title=f"Figure: {title}", needs=needs)
    caption = (
        f"Held-out transfer accuracy: lines join all {facts.split}s together, faint marks are single {facts.split}s,"
        " the dashed line is no memory. The accuracy axis need not start at zero."
        f" {_contrast_sentences(facts)} {sample(facts)}"
    )
    return Figure("widths", title, caption, tuple(panels))


def _contrast_sentences(facts: Facts) -> str:
    """The width and bank-size contrasts with their p values: clustered for the endpoint, pooled beside it."""
    compared = [comparison for key in (*WIDTH_KEYS, *BANK_KEYS) if (comparison := finding(facts, key))]
    return " ".join(
        f"{comparison.name}: {points(comparison.result.delta_pp)} pp, p {probability(comparison.result.p_value)}"
        f" (pooled McNemar {probability(comparison.result.mcnemar_p)})."
        for comparison in compared
    )


def _line_beneath(facts: Facts, keys: Sequence[str]) -> str:
    """The first of these contrasts that was run, for a line beneath an axis."""
    comparison = next((comparison for key in keys if (comparison := finding(facts, key))), None)
    return (
        f"\n{comparison.name}: {points(comparison.result.delta_pp)} pp, p {probability(comparison.result.p_value)}"
        if comparison
        else ""
    )


def _grid(arms: Sequence[Arm], line: Callable[[Arm], str], place: Callable[[Arm], float]) -> Grid:
    """Arms by line and place, lines of one point left out."""
    grid: Grid = {}
    for arm in arms:
        grid.setdefault(line(arm), []).append((place(arm), arm))
    return {
        name: sorted(places, key=lambda placed: placed[0])
        for name, places in sorted(grid.items(), key=lambda item: [int(part) for part in re.findall(r"\d+", item[0])])
        if len(places) > 1
    }


def _lines(axes: "Axes", facts: Facts, grid: Grid, label: str, title: str) -> None:
    floor = percent_right(facts.rows(facts.bare))
    if floor is not None:
        axes.axhline(floor, color=QUIET, linewidth=1.0, linestyle=(0, (4, 3)), label="no memory")
    positions = sorted({x for members in grid.values() for x, _ in members})
    step = 0.06 * (len(positions) - 1) / max(len(grid), 1)
    for index, (name, members) in enumerate(grid.items()):
        colour, marker = PALETTE[index % len(PALETTE)], MARKERS[index % len(MARKERS)]
        shift = step * (index - (len(grid) - 1) / 2)
        xs = [positions.index(x) + shift for x, _ in members]
        seeds = [_by_seed(facts, arm) for _, arm in members]
        for x, values in zip(xs, seeds, strict=True):
            axes.scatter([x] * len(values), values, s=12, color=colour, alpha=0.35, marker=marker, linewidth=0)
        axes.plot(
            xs,
            [percent_right(facts.rows(arm)) or 0.0 for _, arm in members],
            color=colour,
            marker=marker,
            markersize=5.5,
            linewidth=1.6,
            label=name,
        )
    axes.set_xticks(range(len(positions)), [f"{x:g}" for x in positions])
    axes.set_xlabel(label)
    axes.set_ylabel("Held-out execution accuracy (%)")
    axes.set_title(title)
    every_seed = [value for members in grid.values() for _, arm in members for value in _by_seed(facts, arm)]
    axes.set_ylim(*accuracy_span([*every_seed, *([floor] if floor is not None else [])]))
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=min(4, len(grid) + 1), columnspacing=1.2)


def _by_seed(facts: Facts, arm: Arm) -> list[float]:
    return [value for value in facts.by_seed(facts.rows(arm)).values() if value is not None]
