"""How much a difference differs between databases, and what a new database may expect."""

from math import sqrt

import numpy as np
from msgspec import Struct

from sqlcrystal.measurement import clusters
from sqlcrystal.measurement.outcomes import PairedOutcomes
from sqlcrystal.measurement.statistics import Estimate


class LeaveOneOut(Struct, frozen=True, kw_only=True):
    """The pooled difference without each database in turn: its range, and which databases the ends are due to."""

    low_pp: float
    high_pp: float
    without_for_low: str
    without_for_high: str


def leave_one_out(*, outcomes: PairedOutcomes) -> LeaveOneOut | None:
    """How far one database alone moves the result; None with one database."""
    table = outcomes.differences
    if len(table.names) < 2:
        return None
    left = clusters.left_out(table.totals[:, 0], table.totals[:, 1])
    low, high = int(left.argmin()), int(left.argmax())
    return LeaveOneOut(
        low_pp=float(left[low]),
        high_pp=float(left[high]),
        without_for_low=table.names[low],
        without_for_high=table.names[high],
    )


def between_database_sd(*, outcomes: PairedOutcomes) -> float | None:
    """The standard deviation of the databases' true differences, by moments; None below three databases.

    The variance of the observed differences, less what sampling questions explains. A question's seeds stay together.
    Unweighted, because a database in which nothing differs has an estimated sampling variance of zero, which would
    carry all the weight.
    """
    table = outcomes.differences
    sums, sizes = table.totals.T
    groups = len(table.names)
    if groups < clusters.FEWEST_DATABASES:
        return None
    observed = sums / sizes
    residuals = table.values[:, 0] - table.values[:, 1] * observed[table.database]
    questions = np.bincount(table.database, minlength=groups)
    squares = np.bincount(table.database, weights=residuals**2, minlength=groups)
    # A database of one question says nothing about its own sampling variance: it takes the others' average.
    estimable = questions > 1
    if not estimable.any():
        return None
    sampling = squares[estimable] / sizes[estimable] ** 2 * questions[estimable] / (questions[estimable] - 1)
    return sqrt(max(0.0, float(observed.var(ddof=1) - sampling.mean())))


def new_database(*, estimate: Estimate, between_sd: float | None) -> tuple[float, float] | None:
    """A 95 % prediction interval for the true difference of a database that was not in the study."""
    from scipy.special import stdtrit

    if estimate.standard_error is None or between_sd is None:
        return None
    reach = float(stdtrit(estimate.n_databases - 1, 0.975)) * sqrt(between_sd**2 + estimate.standard_error**2)
    return estimate.value - reach, estimate.value + reach
