"""Cluster-robust variances: the fast sums against the published matrices, written out the slow way."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sqlcrystal.measurement import clusters
from sqlcrystal.measurement.outcomes import paired
from sqlcrystal.measurement.statistics import detectable, difference, sign_flip_p

Matrix = NDArray[np.float64]


def published_cr2(
    differences: Matrix, design: Matrix, databases: NDArray[np.int64], contrast: Matrix
) -> tuple[float, float]:
    """CR2 and Satterthwaite's degrees of freedom as Pustejovsky and Tipton (2018) define them, matrix by matrix."""
    inverse = np.linalg.inv(design.T @ design)
    hat = design @ inverse @ design.T
    residual_maker = np.eye(len(differences)) - hat
    residuals = residual_maker @ differences
    variance, directions = 0.0, []
    for database in np.unique(databases):
        rows = databases == database
        values, vectors = np.linalg.eigh(residual_maker[np.ix_(rows, rows)])
        root = np.where(values > 1e-10, 1 / np.sqrt(np.maximum(values, 1e-10)), 0.0)
        adjustment = vectors @ np.diag(root) @ vectors.T
        weights = adjustment @ design[rows] @ inverse @ contrast
        variance += float(weights @ residuals[rows]) ** 2
        directions.append(residual_maker[rows].T @ weights)
    products = np.array([[first @ second for second in directions] for first in directions])
    return variance, float(np.trace(products) ** 2 / np.sum(products**2))


sizes = st.lists(st.integers(1, 30), min_size=3, max_size=8)


@settings(max_examples=60, deadline=None)
@given(sizes, st.integers(0, 2**32 - 1))
def test_cr2_from_sums_is_cr2_from_matrices(counts: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    databases = np.repeat(np.arange(len(counts)), counts)
    differences = rng.integers(-1, 2, len(databases)).astype(float)
    variance, df = published_cr2(differences, np.ones((len(databases), 1)), databases, np.ones(1))
    sums = np.bincount(databases, weights=differences).astype(np.float64)
    pairs = np.array(counts, dtype=np.float64)
    assert np.sum(clusters.cr2(sums, pairs) ** 2) == pytest.approx(variance, abs=1e-12)
    assert clusters.satterthwaite(sizes=pairs) == pytest.approx(df)


@settings(max_examples=40, deadline=None)
@given(sizes, st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_a_weighted_sum_of_two_means_has_the_published_variance_too(
    counts: list[int], weight: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    other = rng.integers(1, 20, len(counts))
    databases = np.concatenate([np.repeat(np.arange(len(counts)), counts), np.repeat(np.arange(len(counts)), other)])
    first = np.arange(len(databases)) < sum(counts)
    differences = rng.integers(-1, 2, len(databases)).astype(float)
    weights = np.array([weight, 1 - weight])
    design = np.stack([first, ~first], axis=1).astype(float)
    variance, df = published_cr2(differences, design, databases, weights)
    pairs = np.array([counts, other], dtype=float)
    sums = np.array([np.bincount(databases[mask], weights=differences[mask]) for mask in (first, ~first)])
    parts = np.einsum("k,kg->g", weights, clusters.cr2(sums, pairs))
    assert np.sum(parts**2) == pytest.approx(variance, abs=1e-12)
    assert clusters.satterthwaite(sizes=pairs, weights=weights) == pytest.approx(df)


@settings(max_examples=40, deadline=None)
@given(st.integers(3, 9), st.integers(4, 20), st.integers(0, 2**32 - 1))
def test_for_databases_of_one_size_cr2_is_the_jackknife(groups: int, questions: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = [
        (f"d{group}", f"q{question}", "1", int(rng.random() < 0.5), int(rng.random() < 0.6))
        for group in range(groups)
        for question in range(questions)
    ]
    robust, left_out = (difference(outcomes=paired(rows), rng=rng, method=name) for name in ("cr2", "jackknife"))
    assert robust.df == (None if robust.undefined else pytest.approx(groups - 1))
    for name in ("low", "high", "p_value"):
        assert getattr(robust, name) == (pytest.approx(getattr(left_out, name)) if not left_out.undefined else None)


def test_thousands_of_studies_are_analysed_as_one_by_one() -> None:
    rng = np.random.default_rng(0)
    sums, pairs = rng.normal(size=(50, 7)), rng.integers(1, 90, size=(50, 7)).astype(float)
    together, df = clusters.cr2(sums, pairs), clusters.satterthwaite(sizes=pairs)
    assert together == pytest.approx(np.array([clusters.cr2(sums[i], pairs[i]) for i in range(50)]))
    assert df == pytest.approx(np.array([clusters.satterthwaite(sizes=pairs[i]) for i in range(50)]))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-6, 6), min_size=1, max_size=9))
def test_sign_flips_count_every_sign(nets: list[int]) -> None:
    rows = [
        (f"d{group:02d}", f"q{question}", "1", int(net < 0), int(net > 0))
        for group, net in enumerate(nets)
        for question in range(abs(net) or 1)
    ]
    flips = [abs(sum(s * n for s, n in zip(signs, nets, strict=True))) for signs in product((-1, 1), repeat=len(nets))]
    exact = sum(total >= abs(sum(nets)) for total in flips) / len(flips)
    assert sign_flip_p(outcomes=paired(rows)) == pytest.approx(exact)


@pytest.mark.parametrize("groups", [1, 3, 8])
def test_the_smallest_sign_flip_p_is_two_to_the_one_minus_databases(groups: int) -> None:
    rows = [(f"d{group}", f"q{question}", "1", 0, 1) for group in range(groups) for question in range(3)]
    assert sign_flip_p(outcomes=paired(rows)) == 2.0 ** (1 - groups)


def test_sign_flips_over_a_thousand_databases_agree_with_their_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    rows = [
        (f"d{group:04d}", f"q{question}", "1", int(rng.random() < 0.3), int(rng.random() < 0.31))
        for group in range(1000)
        for question in range(10)
    ]
    exact = sign_flip_p(outcomes=paired(rows))
    monkeypatch.setattr("sqlcrystal.measurement.statistics.LARGEST_CONVOLUTION", 0)
    assert sign_flip_p(outcomes=paired(rows)) == pytest.approx(exact, abs=0.002)


def test_the_detectable_difference_is_found_in_four_studies_of_five() -> None:
    rng, groups = np.random.default_rng(1), 6
    effect = detectable(standard_error=1 / np.sqrt(groups), df=groups - 1.0)
    studies = rng.normal(effect, 1, size=(20_000, groups))
    pairs = np.ones_like(studies)
    error = np.sqrt(np.sum(clusters.cr2(studies, pairs) ** 2, axis=1))
    assert np.mean(np.abs(studies.mean(axis=1)) > 2.5706 * error) == pytest.approx(0.8, abs=0.01)
