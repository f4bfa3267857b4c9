"""The paper's figures, drawn from a ledger: the ladder, the interval plots, and the width grids."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from sqlcrystal.ledger.records import Arm, Outcome
from sqlcrystal.measurement import settings
from sqlcrystal.study.report.comparisons import (
    DECISIONS,
    MECHANISM,
    Planned,
    finding,
    findings,
    headline,
    oriented,
)
from sqlcrystal.study.report.decision_tables import bank_fraction
from sqlcrystal.study.report.drawing import BLUE, GREEN, INK, MARKERS, PALETTE, QUIET, VERMILION, Figure, Panel
from sqlcrystal.study.report.facts import Facts, percent_right
from sqlcrystal.study.report.forest import forest_panels
from sqlcrystal.study.report.paper import Published, published
from sqlcrystal.study.report.table import Absent
from sqlcrystal.study.report.value_tables import NO_MEMORY, database_effects, sample
from sqlcrystal.study.report.verdict import NOTHING_BANKED, verdict
from sqlcrystal.study.report.wording import METHOD_NAMES, judged, percent, points, probability

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Drawn = Figure | Absent
WIDTH_KEYS = ("width", "width-3", "width-5", "wide-full")
BANK_KEYS = ("half-bank", "quarter-bank", "three-quarter-bank")
LEAST_SPAN = 10.0
"""Points of accuracy that an axis shows at least, so that nothing looks like a change that is none."""


def all_figures(facts: Facts, *, against_paper: bool = False) -> tuple[Drawn, ...]:
    """The four figures of the paper, or what each would need."""
    paper = published().by_key if against_paper else {}
    return (
        crystallization(facts),
        intervals(facts, MECHANISM, paper, key="mechanism", title="RQ2: what carries transfer"),
        intervals(facts, DECISIONS, paper, key="decisions", title="RQ3: which choices matter"),
        widths(facts),
    )


# ── the ladder ───────────────────────────────────────────────────────────────────────────────────────────────────────


def crystallization(facts: Facts) -> Drawn:
    """P_0, P_M, P_K and P_E with the lift and the headroom, and the effect in each database."""
    title, effects = "RQ1: held-out transfer and the repair headroom", database_effects(facts)
    if not effects or verdict(facts) == NOTHING_BANKED:
        needs = NO_MEMORY if not effects else "cards: none was banked"
        return Absent(key="crystallization", title=f"Figure: {title}", needs=needs)
    lift, ratio = headline(facts), facts.ratio(facts.default)
    words = "(a) Held-out first-attempt accuracy without memory, with memory, and after on-demand repair"
    if lift:
        change = f"{points(lift.result.delta_pp)} pp, {judged(lift.result)}"
        words = f"(a) Held-out accuracy with memory against without: {change}"
    if ratio and ratio.ratio.mean is not None:
        words += f"; CR = {percent(ratio.ratio.mean)}%"
    gained = sum(effect.net > 0 for effect, _ in effects)
    spread = f" (b) Effect per database, seeds pooled: {gained} of {len(effects)} gain." if len(effects) > 1 else ""
    caption = (
        f"{words}. Bars are all seeds together, small dots single seeds; the accuracy axis need not start at zero."
        f"{spread} {sample(facts)}"
    )
    panels = (
        Panel(lambda axes: _ladder(axes, facts), 3.9, 4.2),
        Panel(lambda axes: _databases(axes, facts), max(3.9, 0.29 * len(effects) + 1.1), 4.6),
    )
    return Figure("crystallization", title, caption, panels if len(effects) > 1 else panels[:1])


def _steps(facts: Facts) -> list[tuple[str, tuple[Outcome, ...], str]]:
    steps = [
        ("No\nmemory\n$P_0$", facts.rows(facts.bare), QUIET),
        (f"{facts.default.name}\nmemory\n$P_M$", facts.rows(facts.default), BLUE),
        ("Repair,\nengine\n$P_E$", facts.engine_repairs, GREEN),
        ("Repair,\noracle\n$P_K$", facts.repairs, VERMILION),
    ]
    return [(label, rows, colour) for label, rows, colour in steps if rows]


def _ladder(axes: "Axes", facts: Facts) -> None:
    known = _steps(facts)
    reached = [settings.accuracy(rows).percent or 0.0 for _, rows, _ in known]
    everything = list(reached)
    for x, ((_, rows, colour), share) in enumerate(zip(known, reached, strict=True)):
        axes.hlines(share, x - 0.28, x + 0.28, color=colour, linewidth=3, zorder=3)
        seeds = [value for value in facts.by_seed(rows).values() if value is not None]
        everything += seeds
        spread = [x + 0.09 * (index - (len(seeds) - 1) / 2) for index in range(len(seeds))]
        axes.scatter(spread, seeds, s=18, facecolor="white", edgecolor=colour, linewidth=1.1, zorder=4)
        beside = "bottom" if x and share == reached[0] else "center"  # off the dashed line of the floor
        axes.annotate(f"{share:.1f}%", (x - 0.31, share), ha="right", va=beside, fontsize=8.5, fontweight="bold")
    axes.hlines(reached[0], 0.3, len(known) - 0.3, color=QUIET, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
    for x, share in list(enumerate(reached))[1:]:
        _bracket(axes, x + 0.36, reached[0], share, f"{points(share - reached[0], 1)} pp")
    ratio = facts.ratio(facts.default)
    crystallized = ratio.ratio.mean if ratio else None
    title = f"CR = {crystallized:.0f}% of the headroom" if crystallized is not None else "CR is undefined"
    axes.set_title(f"(a) {title}")
    axes.set_ylim(*_span(everything))
    axes.set_xlim(-0.45 - 0.14 * len(known), len(known) + 0.12)  # room for the first label
    axes.set_xticks(range(len(known)), [label for label, _, _ in known])
    axes.tick_params(axis="x", length=0)
    axes.set_ylabel("Held-out execution accuracy (%)")


def _span(values: Sequence[float]) -> tuple[float, float]:
    """An axis that holds the values with some air, and never fewer points than tell something from nothing."""
    low, high = min(values), max(values)
    room = max(high - low, LEAST_SPAN)
    middle = (low + high) / 2
    bottom, top = min(low - 0.15 * room, middle - room / 2), max(high + 0.15 * room, middle + room / 2)
    # What stands at an end of the scale keeps off the axis, for its label's sake.
    return max(-0.04 * room if low <= 0 else 0.0, bottom), min(100.0, top) if high < 100 else 101.0


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
    effects = database_effects(facts)[::-1]
    values = [effect.delta_pp for effect, _ in effects]
    colours = [BLUE if value > 0 else VERMILION if value < 0 else QUIET for value in values]
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.hlines(range(len(effects)), 0, values, color=colours, linewidth=1.6)
    axes.scatter(values, range(len(effects)), color=colours, s=34, zorder=3)
    axes.set_yticks(range(len(effects)), [effect.name for effect, _ in effects])
    axes.tick_params(axis="y", length=0)
    low, high = min(0.0, *values), max(0.0, *values)
    room = max(high - low, 1.0)
    axes.set_xlim(low - 0.08 * room, high + 0.52 * room)
    for y, (effect, cards) in enumerate(effects):
        axes.annotate(f"{points(effect.delta_pp, 1)}", (high + 0.24 * room, y), ha="right", va="center", fontsize=7.5)
        axes.annotate(
            f"{effect.n} · {cards}", (high + 0.50 * room, y), ha="right", va="center", fontsize=7.5, color=QUIET
        )
    axes.annotate("pp", (high + 0.24 * room, len(effects) - 0.35), ha="right", va="bottom", fontsize=7.5)
    axes.annotate(
        "n · cards", (high + 0.50 * room, len(effects) - 0.35), ha="right", va="bottom", fontsize=7.5, color=QUIET
    )
    axes.set_ylim(-0.7, len(effects) + 0.1)
    axes.set_xticks([tick for tick in axes.get_xticks() if low - 0.08 * room <= tick <= high + 0.05 * room])
    axes.set_xlabel("Change with memory (percentage points)")
    axes.set_title("(b) By database")


# ── interval plots ───────────────────────────────────────────────────────────────────────────────────────────────────


def every_contrast(facts: Facts) -> Drawn:
    """All contrasts of the study with their intervals, the headline first."""
    title, lead = "All contrasts, the headline first", headline(facts)
    named = list(oriented(facts))
    first = [contrast for contrast in named if lead and {contrast.a, contrast.b} == {lead.a, lead.b}] or (
        [lead] if lead else []
    )
    confirmatory = [contrast for contrast in named if contrast.confirmatory and contrast not in first]
    ordered = [
        *first,
        *confirmatory,
        *(contrast for contrast in named if contrast not in first and contrast not in confirmatory),
    ]
    judged_at_all = any(contrast.result.p_value is not None for contrast in ordered)
    if not judged_at_all or verdict(facts) == NOTHING_BANKED:
        return Absent(
            key="contrasts", title=f"Figure: {title}", needs="contrasts in the study file whose arms were run"
        )
    return Figure("contrasts", title, f"{_explained(facts)} {sample(facts)}", forest_panels(ordered, {}))


def _explained(facts: Facts) -> str:
    return (
        f"Paired differences in held-out accuracy with 95% intervals ({METHOD_NAMES[facts.method]}, clustered by"
        " database). Filled: supported. Circles are confirmatory, the first of them unadjusted and the others after"
        " Holm's adjustment; squares are exploratory."
    )


def intervals(
    facts: Facts, planned: Sequence[Planned], paper: Mapping[str, Published], *, key: str, title: str
) -> Drawn:
    """Effects with 95 % intervals; filled points are told from zero."""
    compared = findings(facts, planned)
    if len(compared) < 2:
        needs = "two or more of these comparisons: " + " ".join(plan.asks for plan in planned)
        return Absent(key=key, title=f"Figure: {title}", needs=needs.rstrip("."))
    theirs = " Diamonds: the figures published in the paper, another model and benchmark." if paper else ""
    return Figure(key, title, f"{_explained(facts)}{theirs} {sample(facts)}", forest_panels(compared, paper))


# ── width and bank size ──────────────────────────────────────────────────────────────────────────────────────────────


def widths(facts: Facts) -> Drawn:
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
            (by_writer, f"Cards retrieved, k{_beneath(facts, WIDTH_KEYS)}", "Width by card format"),
            (by_bank, f"Share of the bank (%){_beneath(facts, BANK_KEYS)}", "Bank size by width"),
        )
        if len(grid) > 1
    ]
    if not panels:
        needs = "widths k = 1, 3, 10 of two writers, or banks of 25%, 50%, 75% at two widths"
        return Absent(key="widths", title=f"Figure: {title}", needs=needs)
    caption = (
        "Held-out transfer accuracy: lines join all seeds together, faint marks are single seeds, the dashed line is no"
        f" memory. The accuracy axis need not start at zero. {_tested(facts)} {sample(facts)}"
    )
    return Figure("widths", title, caption, tuple(panels))


def _tested(facts: Facts) -> str:
    """The width and bank-size contrasts with their p values: clustered for the endpoint, pooled beside it."""
    compared = [comparison for key in (*WIDTH_KEYS, *BANK_KEYS) if (comparison := finding(facts, key))]
    return " ".join(
        f"{comparison.name}: {points(comparison.result.delta_pp)} pp, p {probability(comparison.result.p_value)}"
        f" (pooled McNemar {probability(comparison.result.mcnemar_p)})."
        for comparison in compared
    )


def _beneath(facts: Facts, keys: Sequence[str]) -> str:
    """The first of these contrasts that was run, for a line beneath an axis."""
    comparison = next((comparison for key in keys if (comparison := finding(facts, key))), None)
    return (
        f"\n{comparison.name}: {points(comparison.result.delta_pp)} pp, p {probability(comparison.result.p_value)}"
        if comparison
        else ""
    )


Grid = dict[str, list[tuple[float, Arm]]]


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
    every = sorted({x for members in grid.values() for x, _ in members})
    step = 0.06 * (len(every) - 1) / max(len(grid), 1)
    for index, (name, members) in enumerate(grid.items()):
        colour, marker = PALETTE[index % len(PALETTE)], MARKERS[index % len(MARKERS)]
        shift = step * (index - (len(grid) - 1) / 2)
        xs = [every.index(x) + shift for x, _ in members]
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
    axes.set_xticks(range(len(every)), [f"{x:g}" for x in every])
    axes.set_xlabel(label)
    axes.set_ylabel("Held-out execution accuracy (%)")
    axes.set_title(title)
    every_seed = [value for members in grid.values() for _, arm in members for value in _by_seed(facts, arm)]
    axes.set_ylim(*_span([*every_seed, *([floor] if floor is not None else [])]))
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=min(4, len(grid) + 1), columnspacing=1.2)


def _by_seed(facts: Facts, arm: Arm) -> list[float]:
    return [value for value in facts.by_seed(facts.rows(arm)).values() if value is not None]
