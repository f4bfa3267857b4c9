"""Databases as clusters: what each of them adds to the uncertainty of a mean over all questions.

Sums and sizes have one entry per database on their last axis; axes before it are independent studies, so that one study
and thousands of simulated ones are analysed by the same lines. The working model of CR2 is the usual one, independent
pairs of equal variance: the adjustment and the degrees of freedom then depend on the databases' sizes alone.
"""

import numpy as np
from numpy.typing import NDArray

from sqlcrystal.measurement.outcomes import QuestionTable

Floats = NDArray[np.float64]

FEWEST_DATABASES = 3
LUCK = 0.001
"""Below this chance, databases are said to agree by luck."""
NO_SPREAD = 1e-9
"""Deviations below this are rounding: sums are counts of questions, in percent."""


def undefined(sums: Floats, sizes: Floats) -> str:
    """Tell why databases give no interval, in words; empty where they do."""
    groups = sums.shape[-1]
    if groups < FEWEST_DATABASES:
        few = "one database" if groups == 1 else "two databases"
        return f"no clustered interval: {few}, and it takes at least three"
    spread = np.abs(sums - sizes * sums.sum() / sizes.sum())
    if float(spread.max()) > NO_SPREAD * max(1.0, float(np.abs(sums).max())):
        return ""
    if not sums.any():
        return "no clustered interval: no database gained or lost anything"
    return "no clustered interval: every database moved by the same amount, which leaves no spread to judge by"


def too_alike(table: QuestionTable) -> str:
    """Why databases that agree almost exactly give no interval either, in words; empty where chance can have it so.

    With few changes, databases can agree by luck: three of them with one fix each would be all but certain. So their
    variance is held against what drawing questions alone must give it, and a ratio that chance gives once in a thousand
    studies is not believed.
    """
    from scipy.special import chdtr

    between = float(np.sum(cr2(*table.totals.T[:2]) ** 2))
    sampling = float(np.sum(cr2(*table.values.T[:2]) ** 2))
    df = float(satterthwaite(sizes=table.totals[:, 1]))
    if chdtr(df, df * between / sampling) >= LUCK:
        return ""
    return "no clustered interval: the databases agree more closely than chance would have it, by luck of few changes"


def cr2(sums: Floats, sizes: Floats) -> Floats:
    """Tell what each database adds to the error of the pooled mean; the squares add up to the CR2 variance.

    Bell and McCaffrey's adjustment: the residual of a database that holds the share h of all pairs is pulled towards
    zero, and divided by the root of 1 - h to make up for it.
    """
    total = sizes.sum(axis=-1, keepdims=True)
    mean = sums.sum(axis=-1, keepdims=True) / total
    return np.asarray((sums - sizes * mean) / (total * np.sqrt(1 - sizes / total)))


def jackknife(sums: Floats, sizes: Floats) -> Floats:
    """The same for the jackknife that leaves one database out at a time."""
    groups = sums.shape[-1]
    left = left_out(sums, sizes)
    return np.asarray(np.sqrt((groups - 1) / groups) * (left.mean(axis=-1, keepdims=True) - left))


def left_out(sums: Floats, sizes: Floats) -> Floats:
    """The pooled mean without each database in turn."""
    return np.asarray((sums.sum(axis=-1, keepdims=True) - sums) / (sizes.sum(axis=-1, keepdims=True) - sizes))


def satterthwaite(*, sizes: Floats, weights: Floats | None = None) -> Floats:
    """Degrees of freedom of the CR2 variance under its working model: G - 1 for equal databases, fewer for unequal.

    With `weights`, `sizes` has a row per mean before its last axis, and the variance is that of their weighted sum.
    """
    rows = sizes[..., None, :] if weights is None else sizes
    factors = np.ones(1) if weights is None else np.asarray(weights, dtype=float)
    totals = rows.sum(axis=-1)
    share = rows / totals[..., None]
    scale = factors**2 / totals
    leverage = share / np.sqrt(1 - share)
    diagonal = np.einsum("...k,...kg->...g", scale, share)
    products = np.einsum("...kg,...lg->...kl", leverage, leverage)
    squares = np.einsum("...kg,...lg->...kl", leverage**2, leverage**2)
    off_diagonal = np.einsum("...k,...l,...kl->...", scale, scale, products**2 - squares)
    return np.asarray(diagonal.sum(axis=-1) ** 2 / ((diagonal**2).sum(axis=-1) + off_diagonal))
