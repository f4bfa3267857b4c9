"""The figure of `sqlcrystal power`: power against the lift, and the detectable lift against databases."""

from typing import TYPE_CHECKING

from sqlcrystal.measurement.prospect import Curve, Prospect
from sqlcrystal.study.report.drawing import MARKERS, PALETTE, QUIET, Figure, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes


TICKS = tuple(digit * 10.0**power for power in range(-3, 7) for digit in (1, 2, 5))


def power_figure(foreseen: Prospect) -> Figure:
    """Two panels, drawn as a report's figures are."""
    design = foreseen.forecast.design
    caption = (
        f"Planned by {foreseen.truth}: standard deviation of the lift between databases {design.spread_pp:.2f} pp,"
        f" {100 * design.held_out:.0f} % held out. Two-sided 5 % test clustered by database."
    )
    return Figure(
        "power",
        "What a study of this kind can find out",
        caption,
        (Panel(lambda axes: _powers(axes, foreseen), 3.4), Panel(lambda axes: _detectable(axes, foreseen), 3.4)),
    )


def _powers(axes: "Axes", foreseen: Prospect) -> None:
    design = foreseen.forecast.design
    axes.axhline(100 * foreseen.power_wanted, color=QUIET, linewidth=0.8, linestyle=(0, (4, 3)))
    axes.axvline(design.lift_pp, color=QUIET, linewidth=0.8, linestyle=(0, (4, 3)))
    _draw(axes, foreseen.power_by_lift, scale=100)
    axes.set_xlabel("True lift (percentage points)")
    axes.set_ylabel("Power (%)")
    axes.set_ylim(0, 102)
    axes.set_title(f"(a) {design.seeds} seeds")
    axes.legend(loc="lower right")


def _detectable(axes: "Axes", foreseen: Prospect) -> None:
    axes.axhline(foreseen.forecast.design.lift_pp, color=QUIET, linewidth=0.8, linestyle=(0, (4, 3)))
    _draw(axes, foreseen.detectable_by_databases, scale=1)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.minorticks_off()
    for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        ticks = [tick for tick in TICKS if low <= tick <= high]
        axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xlabel("Databases")
    axes.set_ylabel("Lift found with 80 % power (pp)")
    axes.set_title("(b) What more databases buy")
    axes.legend(loc="upper right")


def _draw(axes: "Axes", curves: tuple[Curve, ...], *, scale: float) -> None:
    for index, curve in enumerate(curves):
        axes.plot(
            curve.x,
            [scale * y for y in curve.y],
            color=PALETTE[index],
            marker=MARKERS[index],
            markevery=5,
            markersize=4,
            linewidth=1.6,
            label=curve.name,
        )
