"""Clustered inference for paired outcomes, and many comparisons at once: pure functions, explicit random generator.

The family of comparisons is what a study designates before it runs. A contrast that was not run, or whose p is
undefined, still counts towards its size: leaving it out afterwards would make the others look better than they are.
"""

from collections.abc import Mapping, Sequence
from math import sqrt

import numpy as np
from msgspec import Struct

from sqlcrystal.errors import ConfigError
from sqlcrystal.measurement import clusters
from sqlcrystal.measurement.clusters import DEFAULT_METHOD, METHODS, RESAMPLES, Floats, Interval, Problem, student
from sqlcrystal.measurement.outcomes import PairedOutcomes, QuestionTable

ALPHA = 0.05
POWER = 0.8
LATTICE = 10_000
"""Into how many steps the largest net change is divided where net changes are no whole questions."""
LARGEST_CONVOLUTION = 200_000_000
"""Databases times net questions up to which sign flips are counted exactly: a fraction of a second."""


class Estimate(Struct, frozen=True, kw_only=True):
    """A difference in percentage points with its 95 % interval and p; None, with the reason, where there is none."""

    value: float
    low: float | None
    high: float | None
    p_value: float | None
    method: str
    n_databases: int
    n_questions: int
    standard_error: float | None = None
    df: float | None = None
    undefined: str = ""
    """Why there is no interval, in words; empty where there is one."""


class Equivalence(Struct, frozen=True, kw_only=True):
    """Two one-sided tests: is the difference inside ± margin? Never so where nothing can be tested."""

    margin: float
    p_value: float | None
    equivalent: bool
    method: str
    undefined: str = ""


def difference(
    *,
    outcomes: PairedOutcomes,
    rng: np.random.Generator,
    method: str = DEFAULT_METHOD,
    resamples: int = RESAMPLES,
    null: float = 0.0,
) -> Estimate:
    """The paired difference b - a in percentage points, clustered by database, with p against `null`."""
    return difference_of(table=outcomes.differences, rng=rng, method=method, resamples=resamples, null=null)


def difference_of(
    *,
    table: QuestionTable,
    rng: np.random.Generator,
    method: str = DEFAULT_METHOD,
    resamples: int = RESAMPLES,
    null: float = 0.0,
) -> Estimate:
    """The same from the sums of each question."""
    check_method(method)
    problem = Problem(table, rng, resamples, null)
    why = clusters.undefined(problem.sums, problem.sizes) or clusters.too_alike(problem.table)
    interval = None if why else METHODS[method](problem)
    counts = {"databases": len(problem.table.names), "questions": len(problem.table.values)}
    return _estimate(problem.value, method, interval, why, **counts)


def difference_of_sums(*, sums: Floats, sizes: Floats) -> Estimate:
    """The same by CR2 from two numbers a database: its differences, summed in points, and its pairs.

    What an engine has added up over more pairs than fit into memory; questions are not counted apart.
    """
    why = clusters.undefined(sums, sizes)
    value = float(sums.sum() / sizes.sum())
    ends = None if why else student(value, clusters.cr2(sums, sizes), float(clusters.satterthwaite(sizes=sizes)))
    return _estimate(value, "cr2", ends, why, databases=len(sums), questions=int(sizes.sum()))


def check_method(method: str) -> None:
    """Refuse an interval method that there is none of, naming the choices."""
    if method not in METHODS:
        raise ConfigError.unknown("method", method, METHODS)


def question_level(*, outcomes: PairedOutcomes) -> Estimate:
    """The difference with questions for clusters: what one database alone can say, and about itself only."""
    return question_level_of(table=outcomes.differences)


def question_level_of(*, table: QuestionTable) -> Estimate:
    """The same from the sums of each question."""
    sums, sizes = table.values.T
    why, value = "", float(sums.sum() / sizes.sum())
    if not sums.any():
        why = "no interval: no answer differs"
    elif clusters.undefined(sums, sizes):
        why = "no interval: too few questions, or all of them changed alike"
    ends = None if why else student(value, clusters.cr2(sums, sizes), float(clusters.satterthwaite(sizes=sizes)))
    return _estimate(value, "question-level", ends, why, databases=len(table.names), questions=len(sums))


LARGEST_PP = 100.0
"""The largest difference that two accuracies can have, in points."""


def possible(end: float) -> float:
    """Keep an end of an interval among the differences there can be; none lies beyond, so nothing is lost."""
    return max(-LARGEST_PP, min(LARGEST_PP, end))


def _estimate(
    value: float, method: str, interval: Interval | None, why: str, *, databases: int, questions: int
) -> Estimate:
    return Estimate(
        value=value,
        low=possible(interval.low) if interval else None,
        high=possible(interval.high) if interval else None,
        p_value=interval.p_value if interval else None,
        method=method,
        n_databases=databases,
        n_questions=questions,
        standard_error=interval.standard_error if interval else None,
        df=interval.df if interval else None,
        undefined=why,
    )


def sign_flip_p(*, outcomes: PairedOutcomes) -> float:
    """Exact two-sided p from turning the sign of each database's net change; at best 2^(1 - G) with G databases.

    It assumes nothing but that without an effect a database would as soon lose as gain what it gained. Net changes are
    whole questions, so the distribution over all 2^G signs is a convolution, exact for any number of databases. Scores
    other than 0 and 1 are put on a lattice first, so fine that it moves no more than the last digits.
    """
    net = outcomes.differences.totals[:, 0] / 100
    whole = np.allclose(net, np.rint(net), rtol=0, atol=1e-9)
    signed = np.rint(net if whole else net * (LATTICE / np.abs(net).max())).astype(int)
    nets, observed = np.abs(signed), abs(int(signed.sum()))
    if len(nets) * int(nets.sum()) > LARGEST_CONVOLUTION:
        return _normal_tail(observed, float(np.sqrt(np.sum(nets.astype(float) ** 2))))
    chances = np.ones(1)
    for net in nets:
        wider = np.zeros(len(chances) + 2 * net)
        wider[: len(chances)] += chances / 2
        wider[2 * net :] += chances / 2
        chances = wider
    totals = np.arange(len(chances)) - (len(chances) - 1) // 2
    return min(1.0, float(chances[np.abs(totals) >= observed].sum()))


def _normal_tail(observed: int, spread: float) -> float:
    """The limit of the sign flips for thousands of databases, with the usual half step of a lattice of step two."""
    from scipy.special import ndtr

    return min(1.0, 2 * float(ndtr(-(observed - 1) / spread)))


def mcnemar_p(*, fixed: int, broke: int) -> float:
    """Exact two-sided McNemar p: a diagnostic that treats pairs as independent, which clustered pairs are not."""
    from scipy.special import bdtr

    return min(1.0, 2 * float(bdtr(min(fixed, broke), fixed + broke, 0.5)))


def detectable(*, standard_error: float, df: float, power: float = POWER, alpha: float = ALPHA) -> float:
    """The smallest true difference that a two-sided t-test at level alpha finds with the given power."""
    from scipy.special import nctdtrinc, stdtrit

    return float(nctdtrinc(df, 1 - power, float(stdtrit(df, 1 - alpha / 2)))) * standard_error


def detectable_ends(*, standard_error: float, df: float) -> tuple[float, float]:
    """A 95 % interval of it: a standard error from few databases is itself uncertain, by the χ² of its variance."""
    from scipy.special import chdtri

    middle = detectable(standard_error=standard_error, df=df)
    return middle * sqrt(df / float(chdtri(df, 0.025))), middle * sqrt(df / float(chdtri(df, 0.975)))


def equivalence(
    *,
    table: QuestionTable,
    margin_pp: float,
    rng: np.random.Generator,
    method: str = DEFAULT_METHOD,
    resamples: int = RESAMPLES,
    alpha: float = ALPHA,
) -> Equivalence:
    """Hierarchical TOST over the sums of each question: both one-sided tests against ± margin must reject.

    Something must differ to be tested, and the larger of two standard errors decides. With few changes databases can
    agree by luck, and their spread then promises more than the changes themselves can: so the error with questions for
    clusters is tested, too, with the degrees of freedom of the databases.
    """
    from scipy.special import stdtr

    if margin_pp <= 0:
        raise ConfigError(f"margin: {margin_pp:g} is no margin; it must be greater than 0 points")
    one_sided = []
    for null, side in ((-margin_pp, 1), (margin_pp, -1)):
        tested = difference_of(table=table, rng=rng, method=method, resamples=resamples, null=null)
        if tested.p_value is None:
            return Equivalence(
                margin=margin_pp, p_value=None, equivalent=False, method=method, undefined=tested.undefined
            )
        inside = side * (tested.value - null) > 0
        one_sided.append(tested.p_value / 2 if inside else 1 - tested.p_value / 2)
    alone = question_level_of(table=table)
    if alone.standard_error is not None:
        df = float(clusters.satterthwaite(sizes=table.totals[:, 1]))
        one_sided.append(float(stdtr(df, (abs(alone.value) - margin_pp) / alone.standard_error)))
    p_value = max(one_sided)
    return Equivalence(margin=margin_pp, p_value=p_value, equivalent=p_value < alpha, method=method)


class FamilyReading(Struct, frozen=True, kw_only=True):
    """One designated contrast, read both ways."""

    name: str
    primary: bool
    p_value: float | None
    """As tested; None where the contrast was not run or has no p."""
    holm_p: float | None
    """Adjusted within the family; None for the primary contrast, which is not adjusted, and where p is undefined."""
    supported_alone: bool
    """The paper's reading: p below 5 %, unadjusted."""
    supported: bool
    """Ours: the primary contrast by its own p; another by Holm's, and only once the primary contrast is supported."""


def holm(p_values: Sequence[float | None]) -> tuple[float | None, ...]:
    """Adjusted p-values in the given order, over all of them; an undefined p stays undefined and counts as 1."""
    ranked = [1.0 if p_value is None else p_value for p_value in p_values]
    order = sorted(range(len(ranked)), key=lambda index: ranked[index])
    adjusted: list[float | None] = [None] * len(ranked)
    floor = 0.0
    for rank, index in enumerate(order):
        floor = max(floor, min(1.0, (len(ranked) - rank) * ranked[index]))
        if p_values[index] is not None:
            adjusted[index] = floor
    return tuple(adjusted)


def read_family(p_values: Mapping[str, float | None], *, primary: str | None = None) -> dict[str, FamilyReading]:
    """Read every designated contrast of a study; without a primary contrast Holm's adjustment covers them all.

    Testing the primary contrast first at 5 %, and the others only after it, keeps the chance of any false claim at 5 %.
    """
    if primary is not None and primary not in p_values:
        raise ConfigError.unknown("primary contrast", primary, p_values)
    others = [name for name in p_values if name != primary]
    adjusted = dict(zip(others, holm([p_values[name] for name in others]), strict=True))
    opened = primary is None or _below(p_values[primary])
    return {
        name: FamilyReading(
            name=name,
            primary=name == primary,
            p_value=p_value,
            holm_p=adjusted.get(name),
            supported_alone=_below(p_value),
            supported=opened and _below(p_value if name == primary else adjusted[name]),
        )
        for name, p_value in p_values.items()
    }


def _below(p_value: float | None) -> bool:
    return p_value is not None and p_value < ALPHA
