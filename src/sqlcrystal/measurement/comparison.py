"""Paired inference on anybody's outcomes: what `sqlcrystal compare` answers, and what stands beside every contrast."""

from math import sqrt

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from sqlcrystal.measurement.heterogeneity import LeaveOneOut, leave_one_out, macro_average, new_database, spread, uneven
from sqlcrystal.measurement.intervals import DEFAULT_METHOD, RESAMPLES
from sqlcrystal.measurement.multiplicity import holm
from sqlcrystal.measurement.outcomes import NO_SEED, ArmScores, PairedOutcomes
from sqlcrystal.measurement.statistics import (
    Estimate,
    detectable,
    detectable_ends,
    difference,
    mcnemar_p,
    question_level,
    sign_flip_p,
)

ENOUGH_SEEDS = 3


class Comparison(Struct, frozen=True, kw_only=True):
    """Arm b against arm a, accuracies in percent, differences in percentage points; None where there is no answer."""

    n: int
    unevaluable: int
    """Pairs beyond n that are left out because one side could not be judged."""
    n_databases: int
    n_questions: int
    n_seeds: int
    """0 where the outcomes know no seeds."""
    a: float
    b: float
    delta_pp: float
    ci_low_pp: float | None
    ci_high_pp: float | None
    p_value: float | None
    undefined: str
    """Why there is no clustered interval, in words; empty where there is one."""
    df: float | None
    sign_flip_p: float
    """Exact over databases; its smallest value is 2^(1 - databases)."""
    question_level: Estimate | None
    """With questions for clusters, only where databases give no interval: it speaks for these databases alone."""
    detectable_pp: float | None
    """The smallest true difference that a study like this one finds with 80 % power."""
    detectable_ci_pp: tuple[float, float] | None
    """Its 95 % interval, from how uncertain the standard error itself is."""
    leave_one_out: LeaveOneOut | None
    between_sd_pp: float | None
    """How much the databases' true differences differ, as a standard deviation."""
    new_database_pp: tuple[float, float] | None
    """A 95 % prediction interval for the true difference in a database that was not in the study."""
    macro_pp: float | None
    """The mean over databases, each counting once, whatever its size."""
    macro_ci_pp: tuple[float, float] | None
    uneven: str
    """A warning where one database holds half of the pairs or more; empty where none does."""
    fixed: int
    broke: int
    mcnemar_p: float
    method: str
    resamples: int
    rng_seed: int
    status: str


def compare(
    outcomes: PairedOutcomes, *, method: str = DEFAULT_METHOD, resamples: int = RESAMPLES, rng_seed: int = 0
) -> Comparison:
    """The paired difference with a database-clustered interval, and everything that stands beside it."""
    rng = np.random.default_rng(rng_seed)
    estimate = difference(outcomes=outcomes, rng=rng, method=method, resamples=resamples)
    # The spread between databases and what could be detected are properties of the data, not of the interval's method.
    scale = estimate if estimate.standard_error else difference(outcomes=outcomes, rng=rng)
    found = spread(table=outcomes.differences)
    # Databases that agree by luck would promise as much about a new one.
    judged = found if not estimate.undefined else None
    macro = macro_average(judged) if judged else None
    seeds = len(set(outcomes.seeds) - {NO_SEED})
    return Comparison(
        n=len(outcomes),
        unevaluable=outcomes.unevaluable,
        n_databases=estimate.n_databases,
        n_questions=estimate.n_questions,
        n_seeds=seeds,
        a=100 * float(outcomes.a.mean()),
        b=100 * float(outcomes.b.mean()),
        delta_pp=estimate.value,
        ci_low_pp=estimate.low,
        ci_high_pp=estimate.high,
        p_value=estimate.p_value,
        undefined=estimate.undefined,
        df=estimate.df,
        sign_flip_p=sign_flip_p(outcomes=outcomes),
        question_level=question_level(outcomes=outcomes) if estimate.undefined else None,
        detectable_pp=_detectable(scale),
        detectable_ci_pp=_detectable_ends(scale),
        leave_one_out=leave_one_out(outcomes=outcomes),
        between_sd_pp=sqrt(found.between) if found else None,
        new_database_pp=new_database(judged) if judged else None,
        macro_pp=found.mean if found else None,
        macro_ci_pp=(macro.low, macro.high) if macro else None,
        uneven=uneven(table=outcomes.differences),
        fixed=outcomes.fixed,
        broke=outcomes.broke,
        mcnemar_p=mcnemar_p(fixed=outcomes.fixed, broke=outcomes.broke),
        method=method,
        resamples=resamples,
        rng_seed=rng_seed,
        status=_status(seeds),
    )


def _detectable(estimate: Estimate) -> float | None:
    if estimate.standard_error is None or estimate.df is None:
        return None
    return detectable(standard_error=estimate.standard_error, df=estimate.df)


def _detectable_ends(estimate: Estimate) -> tuple[float, float] | None:
    if estimate.standard_error is None or estimate.df is None:
        return None
    return detectable_ends(standard_error=estimate.standard_error, df=estimate.df)


def _status(seeds: int) -> str:
    if not seeds:
        return "one run of each"
    return "complete" if seeds >= ENOUGH_SEEDS else "preliminary: fewer than three seeds"


class FamilyMember(Struct, frozen=True, kw_only=True):
    """One arm against the baseline, with its p adjusted over all arms that were compared."""

    arm: str
    comparison: Comparison
    p_holm: float | None


class ArmFamily(Struct, frozen=True, kw_only=True):
    """Several arms against one baseline: one family."""

    baseline: str
    members: tuple[FamilyMember, ...]


def compare_arms(
    scores: ArmScores, *, method: str = DEFAULT_METHOD, resamples: int = RESAMPLES, rng_seed: int = 0
) -> ArmFamily:
    """Compare every arm with the first; Holm's adjustment runs over all of them."""
    baseline, *others = scores.arms
    compared = {
        arm: compare(scores.pair(baseline, arm), method=method, resamples=resamples, rng_seed=rng_seed)
        for arm in others
    }
    adjusted = holm([comparison.p_value for comparison in compared.values()])
    members = (
        FamilyMember(arm=arm, comparison=comparison, p_holm=p_holm)
        for (arm, comparison), p_holm in zip(compared.items(), adjusted, strict=True)
    )
    return ArmFamily(baseline=baseline, members=tuple(members))


def mirrored(comparison: Comparison) -> Comparison:
    """The same comparison read the other way round: a against b."""
    turned = comparison.question_level
    left = comparison.leave_one_out
    return replace(
        comparison,
        a=comparison.b,
        b=comparison.a,
        delta_pp=-comparison.delta_pp,
        ci_low_pp=_minus(comparison.ci_high_pp),
        ci_high_pp=_minus(comparison.ci_low_pp),
        question_level=replace(turned, value=-turned.value, low=_minus(turned.high), high=_minus(turned.low))
        if turned
        else None,
        leave_one_out=LeaveOneOut(
            low_pp=-left.high_pp,
            high_pp=-left.low_pp,
            without_for_low=left.without_for_high,
            without_for_high=left.without_for_low,
        )
        if left
        else None,
        new_database_pp=_turned(comparison.new_database_pp),
        macro_pp=_minus(comparison.macro_pp),
        macro_ci_pp=_turned(comparison.macro_ci_pp),
        fixed=comparison.broke,
        broke=comparison.fixed,
    )


def _turned(ends: tuple[float, float] | None) -> tuple[float, float] | None:
    return (-ends[1], -ends[0]) if ends else None


def _minus(value: float | None) -> float | None:
    return None if value is None else -value
