"""Small and degenerate data: no interval is better than a false one, and the reason is said in words."""

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlcrystal.errors import ConfigError
from sqlcrystal.measurement import clusters
from sqlcrystal.measurement.clusters import METHODS
from sqlcrystal.measurement.comparison import Comparison, compare, new_database, spread
from sqlcrystal.measurement.outcomes import QuestionTable, paired
from sqlcrystal.measurement.settings import HeldOut, SeedCounts, crystallization_ratio, ratio_estimate, whole_headroom
from sqlcrystal.measurement.simulation import Population, drawn, simulate
from sqlcrystal.measurement.statistics import difference, equivalence
from sqlcrystal.planning.power import published_truth

Row = tuple[str, str, str, int, int]


def databases(*fixes: int, questions: int = 24, breaks: int = 0) -> list[Row]:
    """One database per number of fixes, each of so many questions, with as many breaks in each."""
    return [
        (f"d{group}", f"q{question}", "42", int(question >= questions - breaks), int(question < fixed))
        for group, fixed in enumerate(fixes)
        for question in range(questions)
    ]


@pytest.mark.parametrize("method", METHODS)
def test_databases_that_happen_to_agree_give_no_interval_and_no_p(method: str) -> None:
    comparison = compare(paired(databases(1, 1, 1)), method=method)
    assert (comparison.ci_low_pp, comparison.ci_high_pp, comparison.p_value) == (None, None, None)
    assert "every database moved by the same amount" in comparison.undefined
    assert comparison.sign_flip_p == 0.25


@pytest.mark.parametrize("method", METHODS)
def test_databases_that_agree_but_for_their_sizes_give_no_interval_either(method: str) -> None:
    rows = [*databases(1, 1), *((f"d{d}", f"q{q}", "42", 0, int(q == 0)) for d, q in product((2,), range(25)))]
    comparison = compare(paired(rows), method=method)
    assert (comparison.ci_low_pp, comparison.p_value) == (None, None)
    assert "more closely than chance" in comparison.undefined


def test_agreement_by_luck_is_found_in_about_one_study_of_a_thousand() -> None:
    rng, lucky = np.random.default_rng(8), 0
    for _ in range(3000):
        values = np.stack([100.0 * rng.integers(-1, 2, 400), np.ones(400)], axis=1)
        table = QuestionTable(np.repeat(np.arange(8), 50), values, tuple("abcdefgh"))
        lucky += bool(clusters.too_alike(table))
    assert lucky <= 12


@pytest.mark.parametrize("method", METHODS)
def test_arms_that_answer_alike_give_no_interval_and_no_p(method: str) -> None:
    comparison = compare(paired(databases(0, 0, 0, 0)), method=method)
    assert (comparison.delta_pp, comparison.ci_low_pp, comparison.p_value) == (0.0, None, None)
    assert "no database gained or lost anything" in comparison.undefined
    assert comparison.sign_flip_p == 1.0


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("fixes", "held"), [((3,), "one database"), ((2, 9), "two databases")])
def test_fewer_than_three_databases_give_no_clustered_interval(fixes: tuple[int, ...], held: str, method: str) -> None:
    comparison = compare(paired(databases(*fixes)), method=method)
    assert (comparison.ci_low_pp, comparison.p_value) == (None, None)
    assert held in comparison.undefined


def test_one_database_has_an_interval_over_its_questions_labelled_as_such() -> None:
    comparison = compare(paired(databases(6, questions=60, breaks=2)))
    alone = comparison.question_level
    assert alone is not None
    assert alone.method == "question-level"
    assert (alone.low or 0) < comparison.delta_pp < (alone.high or 0)
    assert alone.value == pytest.approx(100 * 4 / 60)


def test_the_question_level_interval_covers_at_its_nominal_rate() -> None:
    hits, runs = 0, 600
    for run in range(runs):
        rng = np.random.default_rng((11, run))
        rows = []
        for question in range(80):
            right = rng.random() < 0.6
            moved = rng.random() < 0.15
            rows += [("d", f"q{question}", seed, int(right), int(right ^ moved)) for seed in ("1", "2", "3")]
        alone = compare(paired(rows)).question_level
        assert alone is not None
        hits += alone.low is not None and alone.low <= 100 * 0.15 * (0.4 - 0.6) <= (alone.high or 0)
    assert 0.93 <= hits / runs <= 0.975


def test_where_databases_give_an_interval_questions_alone_are_not_offered() -> None:
    assert compare(paired(databases(1, 2, 4))).question_level is None


def test_a_single_question_has_no_interval_of_any_kind() -> None:
    comparison = compare(paired([("d", "q", "1", 0, 1)]))
    assert comparison.question_level is not None
    assert comparison.question_level.undefined


def test_outcomes_without_seeds_are_not_called_preliminary() -> None:
    comparison = compare(paired([(d, q, "", a, b) for d, q, _, a, b in databases(1, 2, 4)]))
    assert (comparison.n_seeds, comparison.status) == (0, "one run of each")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("fixes", [(0, 0, 0), (1, 1, 1), (3,)])
def test_equivalence_never_passes_where_nothing_can_be_tested(fixes: tuple[int, ...], method: str) -> None:
    tested = equivalence(
        table=paired(databases(*fixes)).differences,
        margin_pp=50,
        rng=np.random.default_rng(0),
        method=method,
        resamples=200,
    )
    assert (tested.p_value, tested.equivalent) == (None, False)
    assert tested.undefined


def test_a_margin_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="margin"):
        equivalence(table=paired(databases(1, 2, 3)).differences, margin_pp=0, rng=np.random.default_rng(0))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 5), st.booleans(), st.booleans()),
        min_size=1,
        unique_by=lambda row: row[:2],
    ),
    st.sampled_from(sorted(METHODS)),
)
def test_no_outcomes_give_nan_or_an_impossible_p(rows: list[tuple[int, int, bool, bool]], method: str) -> None:
    comparison = compare(
        paired([(f"d{d}", f"q{q}", "", int(a), int(b)) for d, q, a, b in rows]), method=method, resamples=99
    )
    for name in Comparison.__struct_fields__:
        value = getattr(comparison, name)
        assert not (isinstance(value, float) and not np.isfinite(value)), name
    assert (comparison.p_value is None) == bool(comparison.undefined)
    assert comparison.p_value is None or 0 < comparison.p_value <= 1
    assert 2.0 ** (1 - comparison.n_databases) <= comparison.sign_flip_p <= 1


# ── beside every contrast ────────────────────────────────────────────────────────────────────────────────────────────


def test_no_interval_reaches_beyond_the_largest_difference_there_can_be() -> None:
    outcomes = paired(databases(24, 24, 24, 23, 24, 18))
    result = compare(outcomes)
    assert result.delta_pp > 94
    assert result.ci_high_pp == 100
    assert result.macro_ci_pp is not None
    assert result.new_database_pp is not None
    assert (result.macro_ci_pp[1], result.new_database_pp[1]) == (100, 100)
    assert all(end is not None and end < 94 for end in (result.ci_low_pp, result.macro_ci_pp[0]))


def test_leaving_one_database_out_names_the_ones_that_matter() -> None:
    left_out = compare(paired(databases(1, 2, 12))).leave_one_out
    assert left_out is not None
    assert (left_out.without_for_low, left_out.without_for_high) == ("d2", "d0")
    assert (left_out.low_pp, left_out.high_pp) == pytest.approx((100 * 3 / 48, 100 * 14 / 48))


def test_databases_that_differ_no_more_than_chance_have_no_spread_between_them() -> None:
    assert compare(paired(databases(2, 3, 2, 3))).between_sd_pp == 0


def test_the_spread_between_databases_is_recovered_and_predicts_new_ones() -> None:
    rng, spreads, hits = np.random.default_rng(5), [], 0
    for _ in range(300):
        effects = rng.normal(0.1, 0.08, size=11)
        rows = [
            (f"d{group:02d}", f"q{question}", "1", *_answers(rng, effect))
            for group, effect in enumerate(effects[:10])
            for question in range(150)
        ]
        comparison = compare(paired(rows))
        assert comparison.between_sd_pp is not None
        assert comparison.new_database_pp is not None
        spreads.append(comparison.between_sd_pp**2)
        hits += comparison.new_database_pp[0] <= 100 * effects[10] <= comparison.new_database_pp[1]
    assert np.sqrt(np.mean(spreads)) == pytest.approx(8, abs=0.5)
    assert 0.92 <= hits / 300 <= 0.98


def unequal(*sizes: int, lifts: Sequence[int]) -> list[Row]:
    """Databases of so many questions each, so many of which are fixed."""
    return [
        (f"d{group}", f"q{question}", "1", 0, int(question < lift))
        for group, (size, lift) in enumerate(zip(sizes, lifts, strict=True))
        for question in range(size)
    ]


def test_a_database_that_holds_most_pairs_is_named_beside_the_mean_over_databases() -> None:
    found = compare(paired(unequal(300, 40, 40, 40, 40, lifts=(60, 2, 1, 3, 2))))
    assert found.uneven.startswith("the database d0 holds 65 % of the pairs")
    assert found.macro_pp == pytest.approx((20 + 5 + 2.5 + 7.5 + 5) / 5)
    assert found.macro_ci_pp is not None
    assert found.macro_ci_pp[0] < (found.macro_pp or 0) < found.macro_ci_pp[1]


def test_databases_of_ordinary_sizes_call_for_no_warning() -> None:
    assert compare(paired(unequal(60, 40, 40, 40, 40, lifts=(6, 2, 1, 3, 2)))).uneven == ""


def test_databases_that_differ_by_chance_alone_still_leave_a_new_one_room() -> None:
    """Not seeing a spread is not knowing that there is none: the interval is wider than the mean's own."""
    found = compare(paired(databases(2, 5, 3, 6, 4)))
    assert found.between_sd_pp == 0
    assert found.new_database_pp is not None
    assert found.macro_ci_pp is not None
    assert found.new_database_pp[0] < found.macro_ci_pp[0] - 0.1


@pytest.mark.parametrize("between", [0.0, 0.05])
def test_a_new_database_is_held_as_often_as_the_interval_says(between: float) -> None:
    rng, truth = np.random.default_rng(7), published_truth()
    drew = drawn(truth, studies=300, databases=11, lift=0.0434, spread=between, rng=rng, questions=60)
    seen = simulate(drew.without_the_last(), truth, seeds=3, held_out=0.3, rng=rng)
    held = 0
    for study, true in enumerate(drew.lift_pp[:, -1]):
        found = spread(table=seen.table(study))
        ends = new_database(found) if found else None
        held += ends is None or ends[0] <= true <= ends[1]
    assert 0.92 <= held / 300 <= 0.985


def test_equivalence_is_seldom_found_at_the_margin_itself_however_few_answers_differ() -> None:
    rng, shape = np.random.default_rng(3), (300, 10)
    population = Population(np.full(shape, 60), np.full(shape, 0.4), np.full(shape, 0.025), np.zeros(shape))
    seen = simulate(population, published_truth(), seeds=1, held_out=0.3, rng=rng)
    found = sum(equivalence(table=seen.table(study), margin_pp=2.5, rng=rng).equivalent for study in range(300))
    assert found / 300 <= 0.075


def _answers(rng: np.random.Generator, effect: float) -> tuple[int, int]:
    """A pair that differs by `effect` in expectation; two pairs of five differ at all."""
    draw = rng.random()
    return int(0.2 + effect / 2 <= draw < 0.4), int(draw < 0.2 + effect / 2)


def test_a_wider_interval_can_detect_less() -> None:
    even, uneven = compare(paired(databases(2, 3, 4, 5))), compare(paired(databases(0, 0, 2, 12)))
    assert even.detectable_pp is not None
    assert uneven.detectable_pp is not None
    assert even.detectable_pp < uneven.detectable_pp


# ── the ratio ────────────────────────────────────────────────────────────────────────────────────────────────────────


def held_out(rng: np.random.Generator, *, groups: int, lift: float, headroom: float) -> list[HeldOut]:
    rows = []
    for group in range(groups):
        own = lift + rng.normal(0, 0.04)
        for question in range(int(rng.integers(15, 60))):
            floor = bool(rng.random() < 0.5)
            memory = (floor and rng.random() > 0.06) or (not floor and rng.random() < 0.06 + 2 * max(0.0, own))
            repaired = floor or bool(rng.random() < 2 * headroom)
            rows.append(
                HeldOut(
                    database=f"d{group:02d}",
                    question=f"q{question}",
                    seed="1",
                    floor=floor,
                    memory=bool(memory),
                    repair_floor=floor,
                    repaired=repaired,
                )
            )
    return rows


@pytest.mark.parametrize("method", ["cr2", "jackknife"])
def test_the_ratio_and_the_lift_never_contradict_each_other(method: str) -> None:
    shapes = set()
    for run in range(200):
        rng = np.random.default_rng((2, run))
        rows = held_out(rng, groups=5 + run % 7, lift=0.04, headroom=(0.02, 0.1)[run % 2])
        lift = difference(
            outcomes=paired((r.database, r.question, r.seed, int(r.floor), int(r.memory)) for r in rows),
            rng=rng,
            method=method,
        )
        ratio = ratio_estimate(outcomes=rows, rng=rng, method=method)
        if ratio.value is None or lift.low is None or lift.high is None:
            continue
        shapes.add(ratio.shape)
        kept = ratio.shape == "unbounded" or (
            (ratio.low or 0) <= 0 <= (ratio.high or 0)
            if ratio.shape == "bounded"
            else not (ratio.low or 0) < 0 < (ratio.high or 0)
        )
        assert kept == (lift.low <= 0 <= lift.high)
    assert "bounded" in shapes


def one_seed(*, memory: Sequence[int], repaired: Sequence[int]) -> list[HeldOut]:
    """Databases of 20 questions, all wrong at first: how many of each are right with memory, and after repair."""
    return [
        HeldOut(
            database=f"d{group}",
            question=f"q{question}",
            seed="1",
            floor=False,
            memory=question < remembered,
            repair_floor=False,
            repaired=question < mended,
        )
        for group, (remembered, mended) in enumerate(zip(memory, repaired, strict=True))
        for question in range(20)
    ]


def test_a_headroom_that_cannot_be_told_from_zero_leaves_the_ratio_unbounded() -> None:
    rows = one_seed(memory=(1, 4, 2, 5), repaired=(3, 0, 0, 0))
    estimate = ratio_estimate(outcomes=rows, rng=np.random.default_rng(0))
    assert estimate.shape in ("outside", "unbounded")
    assert estimate.value is not None


def test_resamples_without_headroom_are_counted() -> None:
    rows = one_seed(memory=(1, 7, 2, 12), repaired=(20, 0, 0, 0))
    estimate = ratio_estimate(outcomes=rows, rng=np.random.default_rng(0), method="two-stage", resamples=4000)
    assert estimate.undefined_share == pytest.approx(0.75**4, abs=0.03)


class SeenOnce(NamedTuple):
    """A question before and after repair."""

    seed: int
    question: str
    database: str
    right: bool
    first_right: bool


def seeds_of(*counts: tuple[int, int]) -> list[HeldOut]:
    """Six databases of ten questions under each seed: in all of them so many lifts, and so many repairs."""
    rows = []
    for seed, (lifts, repairs) in enumerate(counts):
        for group in range(6):
            rows += [
                HeldOut(
                    database=f"d{group}",
                    question=f"{seed}-{question}",
                    seed=str(seed),
                    floor=False,
                    memory=question < (lifts + group) // 6,
                    repair_floor=False,
                    repaired=question < (repairs + 5 - group) // 6,
                )
                for question in range(10)
            ]
    return rows


@pytest.mark.parametrize(
    ("counts", "pooled"),
    [(((5, 1), (6, 20), (3, 19)), 100 * 14 / 40), (((5, 0), (6, 20), (3, 20)), 100 * 14 / 40)],
    ids=["a seed with a headroom of one", "a seed without headroom"],
)
def test_the_ratio_pools_its_seeds_and_lies_in_its_interval(counts: tuple[tuple[int, int], ...], pooled: float) -> None:
    estimate = ratio_estimate(outcomes=seeds_of(*counts), rng=np.random.default_rng(0))
    assert estimate.value == pytest.approx(pooled)
    assert estimate.shape == "bounded"
    assert (estimate.low or 0) < (estimate.value or 0) < (estimate.high or 0)
    by_seed = [SeedCounts(n=60, floor=0, memory=lifts, repaired=repairs, repair_floor=0) for lifts, repairs in counts]
    headline = crystallization_ratio(seeds=by_seed)
    assert headline.pooled == pytest.approx(pooled)
    assert headline.per_seed == tuple(100 * lifts / repairs if repairs else None for lifts, repairs in counts)
    assert (headline.mean is None) == (None in headline.per_seed)


def test_a_headroom_over_all_questions_counts_each_of_them_once() -> None:
    rows = [SeenOnce(seed, f"q{number}", "d", number < 6, number < 3) for seed in (1, 2) for number in range(10)]
    whole = whole_headroom(rows)
    assert whole is not None
    assert (whole.n, whole.floor, whole.repaired, whole.headroom_pp) == (10, 3, 6, 30)
    assert whole.share(15) == 50
