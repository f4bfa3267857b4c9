"""The live interval holds at every look, is not much wider for it, and says how much more it takes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from simulated_months import Month, held, simulate_months
from sqlcrystal.measurement.live import (
    FEWEST,
    Asked,
    Tally,
    VerdictRate,
    bounds,
    live_lift,
    paired_verdicts_needed,
    verdict_selection,
    verdicts_needed,
    worst_case,
)

TRIALS, VERDICTS = 400, 2_000


def every_look(*, floor: float, lift: float, share: float, rng: np.random.Generator) -> Tally:
    """Many services at once, looked at after every single verdict."""
    shape = (TRIALS, VERDICTS)
    held_out = rng.random(shape) < share
    right = rng.random(shape) < np.where(held_out, floor, floor + lift)
    without, right_without = np.cumsum(held_out, axis=1), np.cumsum(held_out & right, axis=1)
    given = np.arange(1, VERDICTS + 1)
    return Tally(given - without, np.cumsum(right, axis=1) - right_without, without, right_without)


@pytest.mark.parametrize("share", [0.05, 0.2, 0.5])
@pytest.mark.parametrize(("floor", "lift"), [(0.6, 0.06), (0.3, 0.0), (0.9, 0.06), (0.05, 0.0)])
def test_an_interval_looked_at_after_every_verdict_holds_the_truth_throughout(
    floor: float, lift: float, share: float
) -> None:
    seen = bounds([every_look(floor=floor, lift=lift, share=share, rng=np.random.default_rng(7))])
    throughout = np.all((seen.low <= lift) & (lift <= seen.high), axis=1)
    assert np.mean(throughout) >= 0.95 - 0.022  # two standard errors of 400 services


def test_an_interval_of_fixed_sample_looked_at_as_often_does_not_hold() -> None:
    tally = every_look(floor=0.6, lift=0.0, share=0.5, rng=np.random.default_rng(7))
    seen = bounds([tally])
    half = 1.96 * np.sqrt(seen.variance)
    throughout = np.all(~tally.usable | (np.abs(seen.lift) <= half), axis=1)
    assert np.mean(throughout) < 0.75


@pytest.mark.parametrize("lift", [0.06, 0.0])
@pytest.mark.parametrize("both", [False, True])
def test_months_with_erring_users_hold_the_truth_at_every_daily_look_within_twice_the_width(
    lift: float, both: bool
) -> None:
    month = Month(lift=lift, both=both, errs=0.05)
    seen = simulate_months(month, months=300, rng=np.random.default_rng(1))
    assert seen.holds(lift) >= 0.95
    assert seen.holds(seen.in_traffic) >= 0.95
    assert seen.width_ratio <= 2


def test_wrong_verdicts_pull_the_lift_towards_zero_by_twice_their_share() -> None:
    month = Month(lift=0.10, share=0.5, asked=400)
    errs = simulate_months(replace(month, errs=0.1), months=100, rng=np.random.default_rng(3))
    assert float(np.mean(errs.seen.lift[:, -1])) == pytest.approx(0.10 * (1 - 2 * 0.1), abs=0.006)


def test_both_arms_answering_tells_more_from_the_same_verdicts() -> None:
    widths = []
    for both in (False, True):
        seen = simulate_months(Month(both=both, share=0.5), months=20, rng=np.random.default_rng(5)).seen
        widths.append(float(np.median((seen.high - seen.low)[:, -1])))
    assert widths[1] < 0.6 * widths[0]


def test_two_shares_held_out_in_turn_are_compared_each_within_itself() -> None:
    easy, hard = Tally(900, 810, 100, 90), Tally(100, 20, 900, 180)
    assert live_lift([easy, hard]).value_pp == pytest.approx(0.0)


@given(st.integers(0, FEWEST - 1), st.integers(0, 500))
def test_an_arm_with_few_verdicts_gives_no_interval(few: int, many: int) -> None:
    seen = live_lift([Tally(many, many, few, 0)])
    assert (seen.value_pp, seen.low_pp, seen.high_pp) == (None, None, None)
    assert seen.left_out == few + many


@given(st.integers(FEWEST, 300), st.integers(FEWEST, 300), st.data())
def test_the_ends_enclose_the_lift_and_stay_within_a_hundred_points(
    with_: int, without: int, data: st.DataObject
) -> None:
    tally = Tally(with_, data.draw(st.integers(0, with_)), without, data.draw(st.integers(0, without)))
    seen = live_lift([tally])
    assert seen.value_pp is not None
    assert -100 <= (seen.low_pp or 0) <= seen.value_pp <= (seen.high_pp or 0) <= 100
    mirrored = live_lift([Tally(tally.without, tally.right_without, tally.with_memory, tally.right_with)])
    assert mirrored.value_pp == pytest.approx(-seen.value_pp)
    assert mirrored.low_pp == pytest.approx(-(seen.high_pp or 0))


def test_the_verdicts_said_to_be_needed_tell_the_lift_from_zero_as_often_as_promised() -> None:
    needed = verdicts_needed(floor=0.6, share=0.5, effect_pp=8, power=0.8)
    assert needed is not None
    rng = np.random.default_rng(11)
    without = rng.binomial(needed, 0.5, size=2_000)
    with_ = needed - without
    seen = bounds([Tally(with_, rng.binomial(with_, 0.68), without, rng.binomial(without, 0.6))])
    assert float(np.mean(seen.low > 0)) == pytest.approx(0.8, abs=0.04)


def test_a_smaller_share_or_a_smaller_lift_needs_more_verdicts_and_no_share_none() -> None:
    half, tenth = (verdicts_needed(floor=0.6, share=share) for share in (0.5, 0.1))
    small = verdicts_needed(floor=0.6, share=0.5, effect_pp=2)
    assert half is not None
    assert tenth is not None
    assert small is not None
    assert half < tenth
    assert half < small
    assert verdicts_needed(floor=0.6, share=0.0) is None


CHOOSY = Month(lift=0.0, share=0.5, errs=0.0, judged_wrong=(0.25, 0.5), audit=0.1)


def test_users_who_judge_wrong_answers_less_make_a_lift_of_nothing() -> None:
    seen = simulate_months(CHOOSY, months=100, rng=np.random.default_rng(5))
    assert float(np.mean(seen.seen.lift[:, -1])) > 0.08
    assert seen.holds(0.0) < 0.5


@pytest.mark.parametrize("wrong", [(0.25, 0.5), (0.5, 0.25)])
def test_an_audit_that_people_ignore_covers_the_truth_and_is_as_wide_as_the_worst_case(
    wrong: tuple[float, float],
) -> None:
    heeded, ignored = (
        simulate_months(replace(CHOOSY, judged_wrong=wrong, heeds=heeds), months=100, rng=np.random.default_rng(8))
        for heeds in (True, False)
    )
    assert held(ignored.audited, 0.0) >= 0.95
    widths = [float(np.median((seen.audited.high - seen.audited.low)[:, -1])) for seen in (heeded, ignored)]
    assert widths[1] > 1.5 * widths[0]


def test_who_judges_all_alike_is_warned_of_nothing_and_who_does_not_is_warned() -> None:
    alike, choosy = (
        simulate_months(replace(CHOOSY, judged_wrong=wrong), months=100, rng=np.random.default_rng(9))
        for wrong in (None, (0.1, 0.5))
    )
    assert np.mean(alike.warned) <= 0.05
    assert np.mean(choosy.warned) >= 0.95


@pytest.mark.parametrize("lift", [0.06, 0.0])
@pytest.mark.parametrize("wrong", [(0.25, 0.5), (0.25, 0.25), (0.5, 0.25)])
@pytest.mark.parametrize("both", [False, True])
def test_worst_case_and_audit_hold_the_truth_whoever_judges(
    lift: float, wrong: tuple[float, float], both: bool
) -> None:
    month = replace(CHOOSY, lift=lift, judged_wrong=wrong, both=both)
    seen = simulate_months(month, months=200, rng=np.random.default_rng(6))
    assert held(seen.worst, lift) >= 0.95
    assert held(seen.audited, lift) >= 0.95
    assert float(np.mean(seen.audited.lift[:, -1])) == pytest.approx(lift, abs=0.02)


@given(st.integers(FEWEST, 300), st.integers(FEWEST, 300), st.integers(0, 200), st.integers(0, 200), st.data())
def test_the_worst_case_encloses_the_lift_of_every_way_the_rest_could_be_judged(
    with_: int, without: int, more_with: int, more_without: int, data: st.DataObject
) -> None:
    tally = Tally(with_, data.draw(st.integers(0, with_)), without, data.draw(st.integers(0, without)))
    worst = worst_case([(tally, Asked(with_ + more_with, without + more_without))])
    assert worst is not None
    judged = Tally(
        with_ + more_with,
        tally.right_with + data.draw(st.integers(0, more_with)),
        without + more_without,
        tally.right_without + data.draw(st.integers(0, more_without)),
    )
    value = live_lift([judged]).value_pp
    assert value is not None
    assert worst.low_pp <= value <= worst.high_pp
    assert worst.unjudged == pytest.approx(
        100 * (more_with + more_without) / (with_ + more_with + without + more_without)
    )


def test_verdict_rates_that_differ_by_arm_or_by_sign_of_trouble_are_told() -> None:
    def rates(*judged: int) -> list[VerdictRate]:
        kinds = [(memory, trouble) for memory in (True, False) for trouble in (True, False)]
        return [
            VerdictRate(memory=memory, trouble=trouble, asked=500, judged=count)
            for (memory, trouble), count in zip(kinds, judged, strict=True)
        ]

    assert not verdict_selection(rates(250, 250, 250, 250)).selective
    by_arm = verdict_selection(rates(100, 100, 300, 300))
    assert by_arm.by_arm_pp == pytest.approx(-40)
    assert by_arm.by_trouble_pp is None
    by_sign = verdict_selection(rates(100, 300, 100, 300))
    assert by_sign.by_arm_pp is None
    assert by_sign.by_trouble_pp == pytest.approx(-40)


def test_paired_answers_need_fewer_verdicts_than_one_arm() -> None:
    one_arm, paired = verdicts_needed(floor=0.6, share=0.1), paired_verdicts_needed(floor=0.6)
    assert one_arm is not None
    assert paired is not None
    assert paired < one_arm / 3
