"""The paper's figures, drawn from a ledger: the ladder, the two interval plots, and the width grids."""

import re
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from sqlcrystal.study.ledger import Arm
from sqlcrystal.study.report.comparisons import DECISIONS, MECHANISM, Finding, Planned, findings
from sqlcrystal.study.report.decision_tables import WRITER_NAMES, bank_fraction
from sqlcrystal.study.report.drawing import BLUE, INK, MARKERS, PALETTE, QUIET, VERMILION, Figure, Panel
from sqlcrystal.study.report.facts import Facts, accuracy
from sqlcrystal.study.report.paper import Published, published
from sqlcrystal.study.report.table import Absent
from sqlcrystal.study.report.value_tables import NO_MEMORY, database_effects, sample
from sqlcrystal.study.report.wording import interval, percent, points

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Drawn = Figure | Absent
PLAIN = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
"""Behind a label, so that no line runs through it."""


def all_figures(facts: Facts, *, against_paper: bool = False) -> tuple[Drawn, ...]:
    """The four figures, or what each would need."""
    paper = published().by_key if against_paper else {}
    return (
        crystallization(facts),
        intervals(facts, MECHANISM[:5], paper, key="mechanism", title="RQ2: what carries transfer"),
        intervals(facts, DECISIONS, paper, key="decisions", title="RQ3: which choices matter"),
        widths(facts),
    )


# ── the ladder ───────────────────────────────────────────────────────────────────────────────────────────────────────


def crystallization(facts: Facts) -> Drawn:
    """P_0, P_M and P_K with the lift and the headroom, and the effect in each database."""
    title, found = "RQ1: held-out transfer and the repair headroom", database_effects(facts)
    if not found:
        return Absent(key="crystallization", title=f"Figure: {title}", needs=NO_MEMORY)
    lift, ratio = facts.compare(facts.bare, facts.default), facts.ratio(facts.default)
    words = "(a) Held-out first-attempt accuracy without memory, with memory, and after on-demand repair"
    if lift:
        shift = f"{points(lift.delta_pp)} pp {interval(lift.ci_low_pp, lift.ci_high_pp)}"
        words = f"(a) Memory moves held-out first-attempt accuracy by {shift}"
    if ratio and ratio.ratio.mean is not None:
        words += f"; CR = {percent(ratio.ratio.mean)}%"
    gained = sum(effect.net > 0 for effect, _ in found)
    caption = (
        f"{words}. Points are means over seeds, small dots single seeds; the accuracy axis does not start at zero. "
        f"(b) Effect per database, seeds pooled: {gained} of {len(found)} gain. {sample(facts)}"
    )
    panels = (
        Panel(lambda axes: _ladder(axes, facts), 3.9, 3.9),
        Panel(lambda axes: _databases(axes, facts), max(3.9, 0.29 * len(found) + 1.1), 4.6),
    )
    return Figure("crystallization", title, caption, panels)


def _ladder(axes: "Axes", facts: Facts) -> None:
    steps = [
        ("No memory\n$P_0$", facts.rows(facts.bare), QUIET),
        (f"{facts.default.writer} memory\n$P_M$", facts.rows(facts.default), BLUE),
        ("On-demand\nrepair $P_K$", facts.repairs, VERMILION),
    ]
    known = [(label, rows, colour) for label, rows, colour in steps if rows]
    means = [accuracy(rows) or 0.0 for _, rows, _ in known]
    for x, ((_, rows, colour), mean) in enumerate(zip(known, means, strict=True)):
        axes.hlines(mean, x - 0.28, x + 0.28, color=colour, linewidth=3, zorder=3)
        seeds = [value for value in facts.by_seed(rows).values() if value is not None]
        spread = [x + 0.09 * (index - (len(seeds) - 1) / 2) for index in range(len(seeds))]
        axes.scatter(spread, seeds, s=18, facecolor="white", edgecolor=colour, linewidth=1.1, zorder=4)
        axes.annotate(f"{mean:.1f}%", (x - 0.31, mean), ha="right", va="center", fontsize=8.5, fontweight="bold")
    axes.hlines(means[0], 0.3, len(known) - 0.3, color=QUIET, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
    for x, mean in list(enumerate(means))[1:]:
        name = "lift" if x == 1 else "headroom"
        _bracket(axes, x + 0.36, means[0], mean, f"{name}\n{points(mean - means[0], 1)} pp")
    ratio = facts.ratio(facts.default)
    crystallized = ratio.ratio.mean if ratio else None
    axes.set_title(
        "(a) " + (f"CR = {crystallized:.0f}% of the headroom" if crystallized is not None else "CR is undefined")
    )
    everything = [v for _, rows, _ in known for v in facts.by_seed(rows).values() if v is not None]
    room = max(max(everything) - min(everything), 2.0)
    axes.set_ylim(max(0.0, min(everything) - 0.25 * room), min(100.0, max(everything) + 0.2 * room))
    axes.set_xlim(-0.85, len(known) + 0.12)
    axes.set_xticks(range(len(known)), [label for label, _, _ in known])
    axes.tick_params(axis="x", length=0)
    axes.set_ylabel("Held-out execution accuracy (%)")


def _bracket(axes: "Axes", x: float, low: float, high: float, text: str) -> None:
    if abs(high - low) > 0:
        axes.annotate(
            "",
            (x, high),
            (x, low),
            arrowprops={"arrowstyle": "->", "color": INK, "linewidth": 1.0, "shrinkA": 0, "shrinkB": 0},
        )
    axes.annotate(text, (x + 0.05, (low + high) / 2), ha="left", va="center", fontsize=7.5)


def _databases(axes: "Axes", facts: Facts) -> None:
    found = database_effects(facts)[::-1]
    values = [effect.delta_pp for effect, _ in found]
    colours = [BLUE if value > 0 else VERMILION if value < 0 else QUIET for value in values]
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.hlines(range(len(found)), 0, values, color=colours, linewidth=1.6)
    axes.scatter(values, range(len(found)), color=colours, s=34, zorder=3)
    axes.set_yticks(range(len(found)), [effect.name for effect, _ in found])
    axes.tick_params(axis="y", length=0)
    low, high = min(0.0, *values), max(0.0, *values)
    room = max(high - low, 1.0)
    axes.set_xlim(low - 0.08 * room, high + 0.52 * room)
    for y, (effect, cards) in enumerate(found):
        axes.annotate(f"{points(effect.delta_pp, 1)}", (high + 0.24 * room, y), ha="right", va="center", fontsize=7.5)
        axes.annotate(
            f"{effect.n} · {cards}", (high + 0.50 * room, y), ha="right", va="center", fontsize=7.5, color=QUIET
        )
    axes.annotate("pp", (high + 0.24 * room, len(found) - 0.35), ha="right", va="bottom", fontsize=7.5)
    axes.annotate(
        "n · cards", (high + 0.50 * room, len(found) - 0.35), ha="right", va="bottom", fontsize=7.5, color=QUIET
    )
    axes.set_ylim(-0.7, len(found) + 0.1)
    axes.set_xticks([tick for tick in axes.get_xticks() if low - 0.08 * room <= tick <= high + 0.05 * room])
    axes.set_xlabel("Change with memory (percentage points)")
    axes.set_title("(b) By database")


# ── interval plots ───────────────────────────────────────────────────────────────────────────────────────────────────


def intervals(facts: Facts, planned: Sequence[Planned], paper: dict[str, Published], *, key: str, title: str) -> Drawn:
    """Effects with 95 % intervals; filled points are told from zero."""
    found = findings(facts, planned)
    if not found:
        needs = "both arms of: " + "; ".join(plan.name for plan in planned)
        return Absent(key=key, title=f"Figure: {title}", needs=needs)
    left = [plan.name for plan in planned if plan.key not in {one.key for one in found}]
    caption = (
        "Paired differences in held-out accuracy with 95% intervals (CR2, clustered by database). Filled points:"
        " p < .05, after Holm's adjustment where a confirmatory contrast (circle; squares are exploratory) has one. "
        + ("Diamonds: the figures published in the paper, another model and benchmark. " if paper else "")
        + (f"Not in this study: {'; '.join(left)}. " if left else "")
        + sample(facts)
    )
    panel = Panel(lambda axes: _forest(axes, found, paper), 0.52 * len(found) + (1.2 if paper else 1.0), 5.2)
    return Figure(key, title, caption, (panel,))


def _forest(axes: "Axes", found: Sequence[Finding], paper: dict[str, Published]) -> None:
    axes.axvline(0, color=INK, linewidth=0.8)
    ends = [0.0]
    for y, one in enumerate(reversed(found)):
        result = one.found
        low, high = (result.delta_pp if end is None else end for end in (result.ci_low_pp, result.ci_high_pp))
        ends += [low, high]
        axes.hlines(y, low, high, color=BLUE, linewidth=1.8)
        shape = "o" if one.confirmatory else "s"
        axes.scatter(
            result.delta_pp,
            y,
            s=44,
            marker=shape,
            zorder=3,
            edgecolor=BLUE,
            linewidth=1.4,
            facecolor=BLUE if one.supported else "white",
        )
        theirs = paper.get(one.key)
        if theirs is not None and theirs.delta_pp is not None:
            ends.append(theirs.delta_pp)
            if theirs.low_pp is not None and theirs.high_pp is not None:
                ends += [theirs.low_pp, theirs.high_pp]
                axes.hlines(y - 0.22, theirs.low_pp, theirs.high_pp, color=VERMILION, linewidth=1.1)
            axes.scatter(theirs.delta_pp, y - 0.22, s=22, marker="D", color=VERMILION, zorder=3)
    room = max(max(ends) - min(ends), 2.0)
    axes.set_xlim(min(ends) - 0.05 * room, max(ends) + 0.05 * room)
    left, right = axes.get_xlim()
    for y, one in enumerate(reversed(found)):
        figures = f"{points(one.found.delta_pp)} {interval(one.found.ci_low_pp, one.found.ci_high_pp, 1)}"
        axes.annotate(one.name, (left, y + 0.27), ha="left", va="center", fontsize=8.5, bbox=PLAIN)
        axes.annotate(figures, (right, y + 0.27), ha="right", va="center", fontsize=8, bbox=PLAIN)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_ylim(-0.55, len(found) - 0.4)
    axes.set_xlabel("Change in held-out accuracy (percentage points)")
    if paper:
        axes.plot([], [], color=BLUE, marker="o", linewidth=1.8, label="this study")
        axes.plot([], [], color=VERMILION, marker="D", markersize=4, linewidth=1.1, label="paper")
        below = -0.5 / (0.52 * len(found))
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, below), ncols=2)


# ── width and bank size ──────────────────────────────────────────────────────────────────────────────────────────────


def widths(facts: Facts) -> Drawn:
    """Width × writer, and bank size × width."""
    title = "Retrieval width, card format and bank size"
    by_writer = _grid(
        facts.varying("writer", "k"), lambda arm: WRITER_NAMES.get(arm.writer, arm.writer), lambda arm: float(arm.k)
    )
    by_bank = _grid(
        [a for a in facts.varying("bank", "k") if bank_fraction(a) is not None],
        lambda arm: f"k={arm.k}",
        lambda arm: bank_fraction(arm) or 0.0,
    )
    panels = []
    if by_writer:
        panels.append(
            Panel(lambda axes: _lines(axes, facts, by_writer, "Cards retrieved, k", "(a) Width × format"), 3.5, 4.4)
        )
    if by_bank:
        mark = "(b)" if by_writer else "(a)"
        panels.append(
            Panel(
                lambda axes: _lines(axes, facts, by_bank, "Share of the bank (%)", f"{mark} Bank size × width"),
                3.5,
                4.4,
            )
        )
    if not panels:
        return Absent(
            key="widths", title=f"Figure: {title}", needs="arms with k = 1, 3, 10, or with bank 25%, 50%, 75%"
        )
    caption = (
        "Held-out transfer accuracy: lines join means over seeds, faint marks are single seeds, the dashed line is no"
        f" memory. The accuracy axis does not start at zero. {sample(facts)}"
    )
    return Figure("widths", title, caption, tuple(panels))


Grid = dict[str, list[tuple[float, Arm]]]


def _grid(arms: Sequence[Arm], line: Callable[[Arm], str], place: Callable[[Arm], float]) -> Grid:
    """Arms by line and place, lines of one point left out."""
    made: Grid = {}
    for arm in arms:
        made.setdefault(line(arm), []).append((place(arm), arm))
    return {
        name: sorted(points, key=lambda one: one[0])
        for name, points in sorted(made.items(), key=lambda item: [int(part) for part in re.findall(r"\d+", item[0])])
        if len(points) > 1
    }


def _lines(axes: "Axes", facts: Facts, grid: Grid, label: str, title: str) -> None:
    floor = accuracy(facts.rows(facts.bare))
    if floor is not None:
        axes.axhline(floor, color=QUIET, linewidth=1.0, linestyle=(0, (4, 3)), label="no memory")
    every = sorted({x for members in grid.values() for x, _ in members})
    step = 0.06 * (len(every) - 1) / max(len(grid), 1)
    for index, (name, members) in enumerate(grid.items()):
        colour, marker = PALETTE[index % len(PALETTE)], MARKERS[index % len(MARKERS)]
        shift = step * (index - (len(grid) - 1) / 2)
        xs = [every.index(x) + shift for x, _ in members]
        seeds = [[v for v in facts.by_seed(facts.rows(arm)).values() if v is not None] for _, arm in members]
        for x, values in zip(xs, seeds, strict=True):
            axes.scatter([x] * len(values), values, s=12, color=colour, alpha=0.35, marker=marker, linewidth=0)
        axes.plot(
            xs,
            [fmean(values) for values in seeds],
            color=colour,
            marker=marker,
            markersize=5.5,
            linewidth=1.6,
            label=name,
        )
    axes.set_xticks(range(len(every)), [f"{x:g}" for x in every])
    axes.set_xlabel(label)
    axes.set_ylabel("Held-out execution accuracy (%)")
    axes.set_title(title)
    axes.margins(y=0.12)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.19), ncols=min(3, len(grid) + 1), columnspacing=1.2)
