"""Everything to know of a study before it is run: what `sqlcrystal power` answers."""

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from sqlcrystal.measurement.collecting import CallProfile, StudyEffort, effort
from sqlcrystal.measurement.power import (
    Dimension,
    ExpectedInterval,
    ExpectedRatio,
    Forecast,
    PlannedStudy,
    expected,
    expected_ratio,
    forecast,
    needed,
)
from sqlcrystal.measurement.statistics import POWER
from sqlcrystal.measurement.truth import Truth

DIMENSIONS: tuple[Dimension, ...] = ("databases", "questions", "seeds")
SLOW_METHOD_STUDIES = 300
"""Bootstrapped studies: each costs as much as thousands of the others."""
LARGEST_SIMULATED = 2_000_000
"""Questions of a study beyond which there is nothing left to simulate: the closed form is then exact enough."""
MOST_QUESTIONS = 400_000_000
"""Questions simulated in all: some minutes."""


class Curve(Struct, frozen=True, kw_only=True):
    """One line of a figure."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]


class Prospect(Struct, frozen=True, kw_only=True):
    """The resolution of a design, its expected intervals, the size that a lift needs, and the cost."""

    truth: str
    forecast: Forecast
    power_wanted: float
    expected: tuple[ExpectedInterval, ...]
    ratio: ExpectedRatio | None
    needed: dict[str, int | None]
    """The size that gives the wanted power when the other two stay as they are; None where no size does."""
    effort: StudyEffort
    power_by_lift: tuple[Curve, ...]
    detectable_by_databases: tuple[Curve, ...]


def prospect(
    truth: Truth,
    calls: CallProfile,
    design: PlannedStudy,
    *,
    studies: int,
    rng: np.random.Generator,
    power: float = POWER,
    arms: int = 1,
    jobs: int = 1,
) -> Prospect:
    """Plan a study: in closed form, then simulated with the same truth."""
    truth.check_lift(design.lift_pp)
    closed_form = forecast(truth, design)
    simulable = closed_form.n_questions <= LARGEST_SIMULATED
    count = min(studies, max(50, MOST_QUESTIONS // closed_form.n_questions))
    by_method = {"cr2": count, "two-stage": min(count, SLOW_METHOD_STUDIES)} if simulable else {}
    return Prospect(
        truth=truth.name,
        forecast=closed_form,
        power_wanted=power,
        expected=tuple(
            expected(truth, design, method=method, studies=many, rng=rng) for method, many in by_method.items()
        ),
        ratio=expected_ratio(truth, design, studies=count, rng=rng) if simulable else None,
        needed={dimension: needed(truth, design, dimension, power=power) for dimension in DIMENSIONS},
        effort=effort(closed_form, calls, arms=arms, jobs=jobs),
        power_by_lift=_power_by_lift(truth, design, closed_form),
        detectable_by_databases=_detectable_by_databases(truth, design),
    )


def _power_by_lift(truth: Truth, design: PlannedStudy, closed_form: Forecast) -> tuple[Curve, ...]:
    """The power at each lift: as designed, with half the databases, with twice as many."""
    most = 100 * (1 - truth.floor)
    lifts = np.linspace(0, min(most, 2 * max(closed_form.detectable_pp, abs(design.lift_pp))), 41)
    return tuple(
        Curve(
            name=f"{count} databases",
            x=tuple(map(float, lifts)),
            y=tuple(forecast(truth, replace(design, databases=count, lift_pp=float(lift))).power for lift in lifts),
        )
        for count in sorted({max(3, design.databases // 2), design.databases, 2 * design.databases})
    )


def _detectable_by_databases(truth: Truth, design: PlannedStudy) -> tuple[Curve, ...]:
    """The lift found with 80 % power, against databases: with one seed and with the design's, at two sizes."""
    counts = [int(count) for count in np.unique(np.geomspace(3, max(100, 4 * design.databases), 30).astype(int))]
    size = forecast(truth, design).n_questions // design.databases
    return tuple(
        Curve(
            name=f"{questions} questions each, {seeds} seed{'s' if seeds > 1 else ''}",
            x=tuple(map(float, counts)),
            y=tuple(
                forecast(truth, replace(design, databases=count, questions=questions, seeds=seeds)).detectable_pp
                for count in counts
            ),
        )
        for questions, seeds in dict.fromkeys(((size, 1), (size, design.seeds), (4 * size, design.seeds)))
    )
