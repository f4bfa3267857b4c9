"""The headline as one figure for a talk: two shares from zero, their difference with its interval, in large letters."""

from typing import TYPE_CHECKING

from sqlcrystal.measurement import settings
from sqlcrystal.study.report.comparisons import NOTHING_BANKED, headline, verdict
from sqlcrystal.study.report.drawing import BLUE, INK, QUIET, Figure, Panel
from sqlcrystal.study.report.facts import Facts
from sqlcrystal.study.report.table import Absent
from sqlcrystal.study.report.value_tables import NO_MEMORY, sample
from sqlcrystal.study.report.wording import interval, plural, points

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
