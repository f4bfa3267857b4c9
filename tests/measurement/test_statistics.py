"""Clustered inference: right in simulation, deterministic, and honest about what it does not know."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plain_bootstrap import outcomes_like_the_paper, plain_two_stage
from sqlcrystal.errors import ConfigError, DataError
from sqlcrystal.measurement.clusters import METHODS, two_stage_totals
from sqlcrystal.measurement.comparison import compare
from sqlcrystal.measurement.outcome_files import read_outcomes
from sqlcrystal.measurement.outcomes import PairedOutcomes, paired
from sqlcrystal.measurement.settings import HeldOut, SeedCounts, crystallization_ratio, ratio_estimate
from sqlcrystal.measurement.statistics import difference, equivalence, mcnemar_p


def test_the_fast_two_stage_bootstrap_draws_from_the_same_distribution_as_plain_loops() -> None:
    rows = outcomes_like_the_paper()
    totals = two_stage_totals(table=paired(rows).differences, rng=np.random.default_rng(0))
    fast, slow = totals[:, 0] / totals[:, 1], np.array(plain_two_stage(rows, 600))
    assert np.mean(fast) == pytest.approx(np.mean(slow), abs=0.25)
    assert np.std(fast) == pytest.approx(np.std(slow), rel=0.12)


@pytest.mark.parametrize("groups", [5, 11])
def test_the_default_interval_covers_a_null_effect_at_its_nominal_rate(groups: int) -> None:
    runs, hits = 400, 0
    for run in range(runs):
        rng = np.random.default_rng((3, run))
        rows = [
            (f"d{group}", f"q{question}", "42", int(rng.random() < 0.6), int(rng.random() < 0.6))
            for group in range(groups)
            for question in range(int(rng.integers(15, 60)))
        ]
        estimate = difference(outcomes=paired(rows), rng=rng)
        hits += estimate.low is not None and estimate.high is not None and estimate.low <= 0 <= estimate.high
    assert 0.92 <= hits / runs <= 0.98


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_interval(method: str) -> None:
    outcomes = paired(outcomes_like_the_paper())
    first, second = (
        difference(outcomes=outcomes, rng=np.random.default_rng(5), method=method, resamples=500) for _ in range(2)
    )
    assert first == second


@pytest.mark.parametrize("method", METHODS)
def test_swapping_the_arms_mirrors_the_estimate(method: str) -> None:
    rows = outcomes_like_the_paper()
    forward = compare(paired(rows), method=method)
    backward = compare(paired([(d, q, s, b, a) for d, q, s, a, b in rows]), method=method)
    assert backward.delta_pp == pytest.approx(-forward.delta_pp)
    assert (backward.fixed, backward.broke) == (forward.broke, forward.fixed)
    assert forward.ci_high_pp is not None
    assert backward.ci_low_pp == pytest.approx(-forward.ci_high_pp, abs=0.3)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(0, 2), st.booleans(), st.booleans()),
        min_size=1,
        unique_by=lambda row: row[:3],
    )
)
def test_the_ledger_adds_up_for_any_outcomes(rows: list[tuple[int, int, int, bool, bool]]) -> None:
    outcomes = paired([(str(d), str(q), str(s), int(a), int(b)) for d, q, s, a, b in rows])
    comparison = compare(outcomes, resamples=100)
    assert comparison.delta_pp == pytest.approx(100 * (comparison.fixed - comparison.broke) / comparison.n)
    assert comparison.delta_pp == pytest.approx(comparison.b - comparison.a)


def test_fewer_than_three_seeds_is_called_preliminary() -> None:
    assert compare(paired([("d", "q", "1", 0, 1), ("e", "q", "1", 1, 1)])).status.startswith("preliminary")


def test_an_unknown_method_names_the_choices() -> None:
    with pytest.raises(ConfigError, match="cr2, jackknife, two-stage"):
        compare(paired([("d", "q", "1", 0, 1)]), method="magic")


def test_identical_arms_are_equivalent_and_a_large_lift_is_not() -> None:
    same = paired([(d, q, s, a, a if i % 40 else 1 - a) for i, (d, q, s, a, _) in enumerate(outcomes_like_the_paper())])
    lifted = paired(outcomes_like_the_paper(lift=0.2))
    rng = np.random.default_rng(0)
    assert equivalence(table=same.differences, margin_pp=2.5, rng=rng).equivalent
    assert not equivalence(table=lifted.differences, margin_pp=2.5, rng=rng).equivalent


def test_no_discordant_pairs_is_no_evidence() -> None:
    assert mcnemar_p(fixed=0, broke=0) == 1.0


def test_no_headroom_makes_the_ratio_undefined_and_keeps_the_lift() -> None:
    ratio = crystallization_ratio(seeds=[SeedCounts(n=100, floor=50, memory=60, repaired=50, repair_floor=50)])
    assert ratio.pooled is None
    assert ratio.lift_pp == 10


def test_the_ratio_estimate_agrees_with_the_counts() -> None:
    rng = np.random.default_rng(0)
    rows = []
    for seed in ("42", "7", "13"):
        for index in range(200):
            floor = bool(rng.random() < 0.5)
            repaired = floor or bool(rng.random() < 0.3)
            memory = (repaired and bool(rng.random() < 0.8)) or (floor and bool(rng.random() < 0.9))
            rows.append(
                HeldOut(
                    database=f"d{index % 11}",
                    question=f"q{index}",
                    seed=seed,
                    floor=floor,
                    memory=memory,
                    repair_floor=floor,
                    repaired=repaired,
                )
            )
    counts = [
        SeedCounts(
            n=200,
            floor=sum(row.floor for row in rows if row.seed == seed),
            memory=sum(row.memory for row in rows if row.seed == seed),
            repaired=sum(row.repaired for row in rows if row.seed == seed),
            repair_floor=sum(row.repair_floor for row in rows if row.seed == seed),
        )
        for seed in ("13", "42", "7")
    ]
    estimate = ratio_estimate(outcomes=rows, rng=rng)
    assert estimate.value == pytest.approx(crystallization_ratio(seeds=counts).pooled)
    assert estimate.shape == "bounded"
    assert (estimate.low or 0) < (estimate.value or 0) < (estimate.high or 0)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("database,question,seed,a\nd,q,1,0\n", "missing column b"),
        ("database,question,seed,a,b\nd,q,1,0,2\n", "line 2: b is '2'"),
        ("database,question,seed,a,b\nd,q,1,0,1\nd,q,1,0,1\n", "appears twice"),
        ("database,question,seed,a,b\n", "empty"),
    ],
)
def test_a_broken_pairs_file_is_named_in_one_line(tmp_path: object, content: str, complaint: str) -> None:
    path = tmp_path / "pairs.csv"  # type: ignore[operator]
    path.write_text(content)
    with pytest.raises(DataError, match=complaint):
        read_outcomes([path])


def test_outcomes_count_fixes_and_breaks() -> None:
    outcomes: PairedOutcomes = paired([("d", "1", "s", 0, 1), ("d", "2", "s", 1, 0), ("d", "3", "s", 0, 1)])
    assert (outcomes.fixed, outcomes.broke) == (2, 1)
