"""Paired inference on anybody's outcomes: what `sqlcrystal compare` answers."""

import numpy as np
from msgspec import Struct

from sqlcrystal.measurement.outcomes import PairedOutcomes
from sqlcrystal.measurement.statistics import DEFAULT_METHOD, RESAMPLES, difference, mcnemar_p

ENOUGH_SEEDS = 3


class Comparison(Struct, frozen=True, kw_only=True):
    """Arm b against arm a, accuracies in percent, differences in percentage points."""

    n: int
    n_databases: int
    n_questions: int
    n_seeds: int
    a: float
    b: float
    delta_pp: float
    ci_low_pp: float
    ci_high_pp: float
    p_value: float
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
    """The paired difference with a database-clustered interval, and the counts behind it."""
    found = difference(outcomes=outcomes, rng=np.random.default_rng(rng_seed), method=method, resamples=resamples)
    seeds = len(set(outcomes.seeds))
    return Comparison(
        n=len(outcomes),
        n_databases=found.n_databases,
        n_questions=found.n_questions,
        n_seeds=seeds,
        a=100 * float(outcomes.a.mean()),
        b=100 * float(outcomes.b.mean()),
        delta_pp=found.value,
        ci_low_pp=found.low,
        ci_high_pp=found.high,
        p_value=found.p_value,
        fixed=outcomes.fixed,
        broke=outcomes.broke,
        mcnemar_p=mcnemar_p(fixed=outcomes.fixed, broke=outcomes.broke),
        method=method,
        resamples=resamples,
        rng_seed=rng_seed,
        status="complete" if seeds >= ENOUGH_SEEDS else "preliminary: fewer than three seeds",
    )
