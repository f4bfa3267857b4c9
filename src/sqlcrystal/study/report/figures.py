"""The report's figures, drawn from a ledger: ladder, interval plots, width grids, and the headline for a talk."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from sqlcrystal.ledger.records import Arm, Outcome, Side
from sqlcrystal.measurement import settings
from sqlcrystal.study.design import SETTINGS
from sqlcrystal.study.report.comparisons import (
    DECISIONS,
    INGREDIENTS,
    MECHANISM,
    NOTHING_BANKED,
    SOLVERS,
    Finding,
    Planned,
    finding,
    findings,
    headline,
    oriented,
    verdict,
)
from sqlcrystal.study.report.decision_tables import bank_fraction
from sqlcrystal.study.report.drawing import (
    BLUE,
    GREEN,
    INK,
    MARKERS,
    PALETTE,
    QUIET,
    VERMILION,
    Figure,
    Panel,
    accuracy_span,
)
from sqlcrystal.study.report.facts import Facts, percent_right
from sqlcrystal.study.report.paper import Published, published
from sqlcrystal.study.report.table import METHOD_NAMES, Absent, interval, judged, percent, plural, points, probability
from sqlcrystal.study.report.value_tables import NO_MEMORY, database_effects, sample

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Drawn = Figure | Absent


def all_figures(facts: Facts, *, against_paper: bool = False) -> tuple[Drawn, ...]:
    """Draw the four figures of the paper and two of ours, or say what each would need."""
    paper = published().by_key if against_paper else {}
    return (
        crystallization(facts),
        intervals(facts, MECHANISM, paper, key="mechanism", title="RQ2: what carries transfer"),
        intervals(facts, DECISIONS, paper, key="decisions", title="RQ3: which choices matter"),
        widths(facts),
        ingredients(facts),
        intervals(facts, SOLVERS, paper, key="solvers", title="What the solver sees, and what it falls back on"),
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
    if ratio and ratio.ratio.pooled is not None:
        words += f"; CR = {percent(ratio.ratio.pooled)}%"
    gained = sum(effect.net > 0 for effect, _ in effects)
    spread = (
        f" (b) Effect per database, {facts.split}s pooled: {gained} of {len(effects)} gain." if len(effects) > 1 else ""
    )
    caption = (
        f"{words}. Bars are all {facts.split}s together, small dots single ones; the accuracy axis need not start"
        f" at zero.{spread} {sample(facts)}"
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
    steps = _steps(facts)
    reached = [settings.accuracy(rows).percent or 0.0 for _, rows, _ in steps]
    everything = list(reached)
    for x, ((_, rows, colour), share) in enumerate(zip(steps, reached, strict=True)):
        axes.hlines(share, x - 0.28, x + 0.28, color=colour, linewidth=3, zorder=3)
        seeds = [value for value in facts.by_seed(rows).values() if value is not None]
        everything += seeds
        spread = [x + 0.09 * (index - (len(seeds) - 1) / 2) for index in range(len(seeds))]
        axes.scatter(spread, seeds, s=18, facecolor="white", edgecolor=colour, linewidth=1.1, zorder=4)
        beside = "bottom" if x and share == reached[0] else "center"  # off the dashed line of the floor
        axes.annotate(f"{share:.1f}%", (x - 0.31, share), ha="right", va=beside, fontsize=8.5, fontweight="bold")
    axes.hlines(reached[0], 0.3, len(steps) - 0.3, color=QUIET, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
    for x, share in list(enumerate(reached))[1:]:
        _bracket(axes, x + 0.36, reached[0], share, f"{points(share - reached[0], 1)} pp")
    ratio = facts.ratio(facts.default)
    crystallized = ratio.ratio.pooled if ratio else None
    title = f"CR = {crystallized:.0f}% of the headroom" if crystallized is not None else "CR is undefined"
    axes.set_title(f"(a) {title}")
    axes.set_ylim(*accuracy_span(everything))
    axes.set_xlim(-0.45 - 0.14 * len(steps), len(steps) + 0.12)  # room for the first label
    axes.set_xticks(range(len(steps)), [label for label, _, _ in steps])
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


def confirmatory_contrasts(facts: Facts) -> Drawn:
    """Draw the headline, and after it the contrasts that the study had fixed beforehand."""
    first, confirmatory, _ = _by_standing(facts)
    title = "Confirmatory contrasts, the headline first" if confirmatory else "The headline contrast"
    return _forest(facts, "contrasts", title, [*first, *confirmatory])


def exploratory_contrasts(facts: Facts) -> Drawn:
    """Draw the contrasts that are tried out, after the others."""
    return _forest(facts, "exploratory", "Exploratory contrasts", _by_standing(facts)[2])


def _by_standing(facts: Facts) -> tuple[list[Finding], list[Finding], list[Finding]]:
    """The headline, the other confirmatory contrasts, and the exploratory ones."""
    lead = headline(facts)
    contrasts = [contrast for contrast in oriented(facts) if _is_held_out(contrast)]
    first = [contrast for contrast in contrasts if lead and {contrast.a, contrast.b} == {lead.a, lead.b}] or (
        [lead] if lead else []
    )
    others = [contrast for contrast in contrasts if contrast not in first]
    return (
        first,
        [contrast for contrast in others if contrast.confirmatory],
        [contrast for contrast in others if not contrast.confirmatory],
    )


def _forest(facts: Facts, key: str, title: str, contrasts: list[Finding]) -> Drawn:
    judged_at_all = any(contrast.result.p_value is not None for contrast in contrasts)
    if not judged_at_all or verdict(facts) == NOTHING_BANKED:
        return Absent(key=key, title=f"Figure: {title}", needs="contrasts in the study file whose arms were run")
    return Figure(key, title, f"{_how_to_read(facts)} {sample(facts)}", forest_panels(contrasts, {}))


def _is_held_out(contrast: Finding) -> bool:
    """Tell whether a contrast is on held-out questions: replay's gain of a hundred points would flatten all others."""
    return all(SETTINGS[Side.of(label).setting].asks == "held-out" for label in (contrast.a, contrast.b))


def _how_to_read(facts: Facts) -> str:
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
    return Figure(key, title, f"{_how_to_read(facts)}{theirs} {sample(facts)}", forest_panels(compared, paper))


def ingredients(facts: Facts) -> Drawn:
    """Draw the ladder of ingredients: each part of a card against no memory, up to the whole card."""
    title = "What a card carries: one ingredient each, against no memory"
    parts, whole = findings(facts, INGREDIENTS), headline(facts)
    if len(parts) < 2 or whole is None:
        return Absent(key="ingredients", title=f"Figure: {title}", needs="arms with the writers W0-placebo … W0-values")
    ladder = [*sorted(parts, key=lambda part: part.result.delta_pp), whole]
    caption = f"{_how_to_read(facts)} From the least to the most, then the whole card. {sample(facts)}"
    return Figure("ingredients", title, caption, forest_panels(ladder, {}))


# ── interval plots, row by row ───────────────────────────────────────────────────────────────────────────────────────

Ends = tuple[float, float]
ROW = 0.56
"""Inches a comparison takes."""
LONGEST = 12
"""Comparisons in one panel; more are set in further panels with the same axis."""


def forest_panels(compared: Sequence[Finding], paper: Mapping[str, Published]) -> tuple[Panel, ...]:
    """The comparisons in as few panels as are readable, all on one scale; those of fewer seeds come last."""
    compared = sorted(compared, key=lambda contrast: -contrast.result.n_seeds)
    ends = _range(compared, paper)
    count = -(-len(compared) // LONGEST)
    size = -(-len(compared) // count)
    parts = [compared[start : start + size] for start in range(0, len(compared), size)]
    return tuple(_panel(part, ends, paper) for part in parts)


def _panel(compared: Sequence[Finding], ends: Ends, paper: Mapping[str, Published]) -> Panel:
    height = ROW * len(compared) + (0.85 if paper else 0.6)
    return Panel(lambda axes: _draw(axes, compared, ends, paper), height, 4.3)


def _range(compared: Sequence[Finding], paper: Mapping[str, Published]) -> Ends:
    """The widest interval, zero included."""
    values = [0.0]
    for contrast in compared:
        result, theirs = contrast.result, paper.get(contrast.key)
        shown = (result.delta_pp, result.ci_low_pp, result.ci_high_pp)
        published = (theirs.delta_pp, theirs.low_pp, theirs.high_pp) if theirs else ()
        values += [value for value in (*shown, *published) if value is not None]
    room = max(max(values) - min(values), 2.0)
    return min(values) - 0.05 * room, max(values) + 0.05 * room


def _draw(axes: "Axes", compared: Sequence[Finding], ends: Ends, paper: Mapping[str, Published]) -> None:
    axes.set_xlim(*ends)
    axes.set_ylim(-0.35, len(compared) - 0.1)
    for y, contrast in enumerate(reversed(compared)):
        # The zero line stands beside the interval only, so that it crosses no letter.
        axes.vlines(0, y - 0.32, y + 0.12, color=QUIET, linewidth=0.8)
        _interval(axes, y, contrast)
        theirs = paper.get(contrast.key)
        if theirs is not None:
            _published(axes, y - 0.2, theirs)
        _label(axes, y, contrast, ends)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("Change in held-out accuracy (percentage points)")
    if paper:
        axes.plot([], [], color=BLUE, marker="o", linewidth=1.8, label="this study")
        axes.plot([], [], color=VERMILION, marker="D", markersize=4, linewidth=1.1, label="paper")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.42 / (ROW * len(compared))), ncols=2)


def _interval(axes: "Axes", y: float, contrast: Finding) -> None:
    result = contrast.result
    if result.ci_low_pp is not None and result.ci_high_pp is not None:
        axes.hlines(y, result.ci_low_pp, result.ci_high_pp, color=BLUE, linewidth=1.8)
    axes.scatter(
        result.delta_pp,
        y,
        s=40,
        marker="o" if contrast.confirmatory else "s",
        zorder=3,
        edgecolor=BLUE,
        linewidth=1.4,
        facecolor=BLUE if contrast.supported else "white",
    )


def _published(axes: "Axes", y: float, theirs: Published) -> None:
    if theirs.delta_pp is None:
        return
    if theirs.low_pp is not None and theirs.high_pp is not None:
        axes.hlines(y, theirs.low_pp, theirs.high_pp, color=VERMILION, linewidth=1.1)
    axes.scatter(theirs.delta_pp, y, s=20, marker="D", color=VERMILION, zorder=3)


def _label(axes: "Axes", y: float, contrast: Finding, ends: Ends) -> None:
    figures = f"{points(contrast.result.delta_pp)} {interval(contrast.result.ci_low_pp, contrast.result.ci_high_pp, 1)}"
    if contrast.result.ci_low_pp is None:
        figures = f"{points(contrast.result.delta_pp)}, no interval"
    top = y + (0.5 if contrast.asks else 0.3)
    name = contrast.name + (f" ({plural(contrast.result.n_seeds, contrast.split)})" if contrast.preliminary else "")
    axes.annotate(name, (ends[0], top), ha="left", va="center", fontsize=8.5, fontweight="bold", color=INK)
    axes.annotate(figures, (ends[1], top), ha="right", va="center", fontsize=8.5, color=INK)
    if contrast.asks:
        axes.annotate(contrast.asks, (ends[0], y + 0.27), ha="left", va="center", fontsize=7.5, color=INK)


# ── widths ───────────────────────────────────────────────────────────────────────────────────────────────────────────

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


TITLE = "The headline, for a talk"


def talk_figure(facts: Facts) -> Figure | Absent:
    """Draw the headline alone, in the proportions of a slide."""
    lift = headline(facts)
    if lift is None or lift.result.ci_low_pp is None or verdict(facts) == NOTHING_BANKED:
        return Absent(key="headline", title=f"Figure: {TITLE}", needs=NO_MEMORY)
    return Figure("headline", TITLE, sample(facts), (Panel(lambda axes: _slide(axes, facts), 4.5, 8.0),), opaque=True)


def _slide(axes: "Axes", facts: Facts) -> None:
    lift = headline(facts)
    assert lift is not None
    result, manifest = lift.result, facts.manifest
    shares = [settings.accuracy(facts.rows(arm)).percent or 0.0 for arm in (facts.bare, facts.default)]
    low, high = (shares[0] + (end or 0.0) for end in (result.ci_low_pp, result.ci_high_pp))
    for y, (share, colour) in enumerate(((shares[1], BLUE), (shares[0], QUIET))):
        axes.barh(y, share, height=0.56, color=colour, zorder=2)
        axes.annotate(f"{share:.1f} %", (0.8, y), va="center", fontsize=19, fontweight="bold", color="white", zorder=3)
    axes.hlines(-0.5, low, high, color=INK, linewidth=2)
    axes.vlines([low, high], -0.58, -0.42, color=INK, linewidth=2)
    axes.vlines(shares[0], -0.72, 1.0, color=INK, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    axes.annotate(
        f"{points(result.delta_pp, 1)} points\n95 % interval {interval(result.ci_low_pp, result.ci_high_pp, 1)}",
        (high + 1.0, -0.5),
        ha="left",
        va="center",
        fontsize=15,
    )
    databases = plural(len({row.database for row in facts.rows(facts.bare)}), "database")
    title = f"New questions answered right: {manifest.model}"
    axes.figure.suptitle(title, fontsize=16, fontweight="bold", x=0.02, ha="left")
    axes.set_xlabel(f"% of held-out questions, {manifest.benchmark}, {databases}", fontsize=12)
    axes.set_xlim(0, max(*shares, high) * 2)
    axes.set_ylim(-0.85, 1.4)
    axes.set_yticks([0, 1], ["with memory", "without memory"], fontsize=16)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
