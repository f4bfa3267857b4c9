"""Planning: the closed form, the simulator and the paper agree with each other."""

from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from sqlcrystal.errors import ConfigError
from sqlcrystal.ledger.records import Outcome, read_ledger, write_ledger
from sqlcrystal.measurement.flips import pair_up
from sqlcrystal.measurement.outcomes import QuestionTable
from sqlcrystal.measurement.power import (
    CallProfile,
    PlannedStudy,
    effort,
    expected,
    expected_ratio,
    forecast,
    needed,
    prospect,
)
from sqlcrystal.measurement.simulation import (
    Truth,
    as_it_stands,
    drawn,
    intervals,
    sampling_variance,
    simulate,
    truth_from_pairs,
    without_noise,
)
from sqlcrystal.planning.power import PUBLISHED_CALLS, pilot_family, pilot_truth, published_truth
from sqlcrystal.study.report.facts import Facts
from synthetic_ledger import synthetic_ledger


@pytest.fixture(scope="module")
def paper() -> Truth:
    return published_truth()


@pytest.fixture(scope="module")
def papers_design(paper: Truth) -> PlannedStudy:
    return PlannedStudy(
        databases=11,
        questions=None,
        seeds=3,
        held_out=0.3,
        lift_pp=100 * paper.lift,
        spread_pp=100 * without_noise(paper)[1],
    )


def test_the_papers_table_is_the_papers_headline(paper: Truth) -> None:
    pairs = sum(0.9 * database.questions for database in paper.databases)
    assert pairs == pytest.approx(1383, abs=5)
    assert 100 * paper.lift == pytest.approx(4.34, abs=0.02)
    assert sum(0.9 * d.questions * d.fixed for d in paper.databases) == pytest.approx(127, abs=0.5)
    assert paper.repaired == pytest.approx(0.26, abs=0.005)


def test_the_paper_as_truth_predicts_the_papers_two_stage_interval(paper: Truth, papers_design: PlannedStudy) -> None:
    foreseen = expected(paper, papers_design, method="two-stage", studies=200, rng=np.random.default_rng(0))
    published = 7.49 - 1.50
    assert foreseen.width_pp == pytest.approx(published, rel=0.25)
    assert foreseen.interval_pp == pytest.approx((1.50, 7.49), abs=1.0)


def test_the_papers_databases_as_they_stand_predict_it_too(paper: Truth) -> None:
    rng, quiet = np.random.default_rng(0), without_noise(paper)[0]
    seen = simulate(as_it_stands(quiet, 200), quiet, seeds=3, held_out=0.3, rng=rng)
    simulated = intervals(seen, method="two-stage", rng=rng)
    assert float(np.mean(simulated.high - simulated.low)) == pytest.approx(7.49 - 1.50, rel=0.25)


def test_the_paper_as_truth_predicts_its_ratio(paper: Truth, papers_design: PlannedStudy) -> None:
    foreseen = expected_ratio(paper, papers_design, studies=300, rng=np.random.default_rng(0))
    assert foreseen is not None
    assert foreseen.interval is not None
    assert foreseen.ratio == pytest.approx(44.4, abs=3)
    assert foreseen.interval == pytest.approx((24, 65), abs=12)


@pytest.mark.parametrize(("seeds", "questions"), [(1, 60), (3, 90), (5, 60)])
def test_the_closed_form_of_sampling_is_what_simulations_show(paper: Truth, seeds: int, questions: int) -> None:
    rng = np.random.default_rng(1)
    evenly_sized = replace(paper, databases=tuple(replace(d, questions=questions) for d in paper.databases))
    seen = simulate(as_it_stands(evenly_sized, 2000), evenly_sized, seeds=seeds, held_out=0.3, rng=rng)
    shown = (seen.sums / seen.sizes / 100).var(axis=0)
    known = [
        sampling_variance(d, evenly_sized, questions=questions, seeds=seeds, held_out=0.3)
        for d in evenly_sized.databases
    ]
    assert shown == pytest.approx(np.array(known), rel=0.15)


def test_simulated_studies_have_the_lift_headroom_and_sizes_they_were_given(paper: Truth) -> None:
    rng = np.random.default_rng(2)
    seen = simulate(as_it_stands(paper, 500), paper, seeds=3, held_out=0.3, rng=rng)
    assert seen.sums.sum() / seen.sizes.sum() == pytest.approx(100 * paper.lift, abs=0.1)
    assert 100 * seen.headroom.sum() / seen.sizes.sum() == pytest.approx(9.76, abs=0.6)
    assert set(seen.sizes.sum(axis=1)) == {1383.0}


@pytest.mark.parametrize("lift", [0.0, 2.0, 4.34])
def test_the_closed_form_of_power_is_what_simulations_show(
    paper: Truth, papers_design: PlannedStudy, lift: float
) -> None:
    design = replace(papers_design, lift_pp=lift)
    shown = expected(paper, design, method="cr2", studies=1000, rng=np.random.default_rng(3))
    assert forecast(paper, design).power == pytest.approx(shown.told_from_zero, abs=0.04)
    assert 0.93 <= shown.covered <= 0.97


def test_a_study_of_the_needed_size_has_the_power_and_one_less_has_not(
    paper: Truth, papers_design: PlannedStudy
) -> None:
    design = replace(papers_design, lift_pp=2.0)
    count = needed(paper, design, "databases")
    assert count is not None
    assert forecast(paper, replace(design, databases=count)).power >= 0.8
    assert forecast(paper, replace(design, databases=count - 1)).power < 0.8


def test_no_number_of_questions_makes_up_for_too_few_databases(paper: Truth, papers_design: PlannedStudy) -> None:
    assert needed(paper, replace(papers_design, lift_pp=1.0), "questions") is None
    assert needed(paper, replace(papers_design, lift_pp=1.0), "databases") is not None


def test_a_plan_for_a_hundred_thousand_databases_is_worked_out_at_once(
    paper: Truth, papers_design: PlannedStudy
) -> None:
    foreseen = forecast(paper, replace(papers_design, databases=100_000, questions=1_000, lift_pp=0.1))
    assert foreseen.n_questions == 100_000_000
    assert foreseen.power > 0.999
    assert foreseen.detectable_pp is not None
    assert foreseen.detectable_pp < 0.02


def test_the_vectorised_bootstrap_is_the_bootstrap(paper: Truth) -> None:
    from sqlcrystal.measurement.clusters import two_stage_totals

    rng = np.random.default_rng(6)
    population = drawn(paper, studies=3, databases=6, lift=0.04, spread=0.03, rng=rng)
    seen = simulate(population, paper, seeds=3, held_out=0.3, rng=rng)
    many = intervals(seen, method="two-stage", rng=rng, resamples=8000)
    for study in range(3):
        table: QuestionTable = seen.table(study)
        totals = two_stage_totals(table=table, rng=rng, resamples=8000)
        low, high = np.quantile(totals[:, 0] / totals[:, 1], [0.025, 0.975])
        assert (many.low[study], many.high[study]) == pytest.approx((low, high), abs=0.35)


def test_a_pilot_becomes_a_truth_with_its_own_figures() -> None:
    def row(seed: int, question: int, right: bool) -> Outcome:
        return Outcome(
            arm="W0",
            setting="transfer",
            seed=seed,
            question=f"q{question}",
            database=f"d{question % 2}",
            difficulty="",
            right=right,
            first_right=right,
            rules={},
            kind="match",
            sql=None,
        )

    before = [row(seed, question, question >= 6) for seed in (1, 2) for question in range(10)]
    after = [
        row(seed, question, question >= 4 or (question == 0 and seed == 1)) for seed in (1, 2) for question in range(10)
    ]
    truth = truth_from_pairs(name="pilot", pairs=pair_up(before, after), repaired=None, held_out=0.5)
    assert [database.questions for database in truth.databases] == [10, 10]
    assert 100 * truth.lift == pytest.approx(25)
    assert truth.fixes_repeat == pytest.approx(4 / 5)
    assert truth.breaks_repeat == 0.5


def test_taking_noise_out_keeps_the_lift_and_narrows_the_databases(paper: Truth) -> None:
    quiet, spread = without_noise(paper)
    assert quiet.lift == pytest.approx(paper.lift, abs=0.002)
    assert spread < np.std([database.lift for database in paper.databases], ddof=1)


def test_the_papers_calls_come_out_of_its_own_account(paper: Truth, papers_design: PlannedStudy) -> None:
    one_seed = forecast(paper, replace(papers_design, seeds=1))
    planned = effort(one_seed, PUBLISHED_CALLS)
    assert planned.calls_unrecorded == pytest.approx(1534 * 2.92 + 2 * 461, rel=0.01)


def test_hours_are_unknown_until_somebody_has_measured_a_call(paper: Truth, papers_design: PlannedStudy) -> None:
    seen = forecast(paper, papers_design)
    assert effort(seen, PUBLISHED_CALLS).hours is None
    timed: CallProfile = replace(PUBLISHED_CALLS, seconds_per_call=2.0)
    assert effort(seen, timed, jobs=8).hours == pytest.approx(effort(seen, timed).calls * 2 / 8 / 3600, rel=1e-4)


def test_a_family_asks_more_of_a_contrast(paper: Truth, papers_design: PlannedStudy) -> None:
    alone, among = forecast(paper, papers_design), forecast(paper, replace(papers_design, family=4))
    assert among.power < alone.power
    assert (among.detectable_pp or 0) > (alone.detectable_pp or 100)
    assert (needed(paper, replace(papers_design, family=4), "databases") or 0) > 10


@pytest.mark.parametrize("lift_pp", [50.0, -70.0])
def test_a_lift_that_cannot_be_is_refused(paper: Truth, papers_design: PlannedStudy, lift_pp: float) -> None:
    with pytest.raises(ConfigError, match=r"cannot be; 62\.\d % are right without it"):
        prospect(
            paper,
            PUBLISHED_CALLS,
            replace(papers_design, lift_pp=lift_pp),
            studies=50,
            rng=np.random.default_rng(0),
        )


def test_a_plan_too_small_for_any_lift_names_none_and_no_interval_beyond_what_can_be(paper: Truth) -> None:
    tiny = PlannedStudy(databases=3, questions=4, seeds=1, held_out=0.3, lift_pp=4.0, spread_pp=0.0)
    foreseen = prospect(paper, PUBLISHED_CALLS, tiny, studies=50, rng=np.random.default_rng(0))
    assert foreseen.forecast.detectable_pp is None
    ends = [*foreseen.forecast.interval_pp, *(end for each in foreseen.expected for end in each.interval_pp or ())]
    assert max(map(abs, ends)) <= 100
    assert all(0 <= lift <= 38.1 for curve in foreseen.power_by_lift for lift in curve.x)
    assert all(lift <= 38.1 for curve in foreseen.detectable_by_databases for lift in curve.y)


def test_power_is_a_chance_however_large_the_lift(paper: Truth) -> None:
    planned = PlannedStudy(databases=9, questions=2_000, seeds=3, held_out=0.3, lift_pp=1.0, spread_pp=0.0)
    powers = [forecast(paper, replace(planned, lift_pp=float(lift))).power for lift in np.linspace(0, 38, 300)]
    assert all(0 <= power <= 1 for power in powers)
    assert powers[-1] == pytest.approx(1)


def test_a_pilot_in_which_nothing_changed_gives_no_nan(papers_design: PlannedStudy) -> None:
    still = tuple(replace(database, fixed=0.0, broke=0.0) for database in published_truth().databases)
    truth = replace(published_truth(), databases=still)
    design = replace(papers_design, lift_pp=0.0, spread_pp=0.0)
    foreseen = prospect(truth, PUBLISHED_CALLS, design, studies=50, rng=np.random.default_rng(0))
    assert "nan" not in repr(foreseen)
    assert [expected.interval_pp for expected in foreseen.expected] == [None, None]


# ── a pilot's own contrasts ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def pilot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pilot")
    write_ledger(synthetic_ledger(only=("none", "W0", "k=1", "k=10", "permuted")), folder)
    return folder


def test_any_contrast_of_a_pilot_can_be_planned_for(pilot: Path) -> None:
    facts = Facts(read_ledger(pilot))
    seen = facts.compare(facts.arms["k=1"], facts.arms["k=10"])
    assert seen is not None
    truth = pilot_truth(pilot, "k=1,k=10")
    assert 100 * truth.lift == pytest.approx(seen.delta_pp, abs=0.1)
    assert truth.name.startswith("k=10 − k=1")


def test_only_a_contrast_with_no_memory_has_a_ratio_to_the_repair_headroom(pilot: Path) -> None:
    contrasts = ("", "none,W0", "none,k=10", "k=1,k=10", "none/repair,W0")
    assert [pilot_truth(pilot, each).repaired > 0 for each in contrasts] == [True, True, True, False, False]


def test_a_contrast_may_name_settings(pilot: Path) -> None:
    assert pilot_truth(pilot, "none/repair, W0").lift < 0


def test_a_confirmatory_contrast_is_planned_within_its_family(pilot: Path) -> None:
    designated = [one for one in read_ledger(pilot).manifest.contrasts if one.confirmatory]
    assert pilot_family(pilot, "k=1,k=10") == len(designated) - 1 == 3
    assert (pilot_family(pilot, "none,W0"), pilot_family(pilot, "none,k=10")) == (1, 1)


def test_an_arm_that_the_pilot_lacks_is_named_with_the_choices(pilot: Path) -> None:
    with pytest.raises(ConfigError, match="W9"):
        pilot_truth(pilot, "none,W9")


def test_folds_that_hold_every_question_out_once_tell_smaller_lifts_than_three_seeds(paper: Truth) -> None:
    def detectable(**design: float) -> float:
        planned = PlannedStudy(databases=11, questions=60, lift_pp=4.0, spread_pp=0.0, **design)  # type: ignore[arg-type]
        found = forecast(paper, planned).detectable_pp
        assert found is not None
        return found

    assert detectable(seeds=1, held_out=1.0, folds=5) < detectable(seeds=3, held_out=0.3)
