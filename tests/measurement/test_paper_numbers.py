"""The paper's own numbers come out of its own counts."""

import pytest

from sqlcrystal.measurement.cost import Share, amortization_horizon, headroom_share, tokens_per_point
from sqlcrystal.measurement.settings import SeedCounts, crystallization_ratio
from sqlcrystal.measurement.statistics import mcnemar_p

N = 461
FLOORS_27B, HEADROOM_27B = (283, 291, 284), (46, 44, 45)
FLOORS_9B, HEADROOM_9B = (236, 248, 233), (54, 67, 59)


def ratios(percent: tuple[float, ...], floors: tuple[int, ...], headroom: tuple[int, ...]) -> tuple[float | None, ...]:
    seeds = [
        SeedCounts(n=N, floor=floor, memory=round(accuracy * N / 100), repaired=floor + gap, repair_floor=floor)
        for accuracy, floor, gap in zip(percent, floors, headroom, strict=True)
    ]
    return (*crystallization_ratio(seeds=seeds).per_seed, crystallization_ratio(seeds=seeds).mean)


@pytest.mark.parametrize(
    ("row", "percent", "published"),
    [
        ("T1 resample", (63.3, 63.8, 64.0), (19.6, 6.8, 24.4)),
        ("T3sub, T1-matched", (66.6, 67.0, 66.8), (52.2, 40.9, 53.3)),
        ("T2 one bit", (65.1, 64.0, 63.3), (37.0, 9.1, 17.8)),
        ("T3sub, T2-matched", (65.9, 65.9, 66.2), (45.7, 29.5, 46.7)),
        ("T4 self-vote", (64.9, 64.9, 64.2), (34.8, 18.2, 26.7)),
        ("T3sub, T4-matched", (65.1, 66.2, 63.1), (37.0, 31.8, 15.6)),
        ("W0 default", (65.9, 66.8, 66.4), (45.7, 38.6, 48.9)),
    ],
)
def test_the_27b_ratios_follow_from_the_accuracies(
    row: str, percent: tuple[float, ...], published: tuple[float, ...]
) -> None:
    assert ratios(percent, FLOORS_27B, HEADROOM_27B)[:3] == pytest.approx(published, abs=0.05)


@pytest.mark.parametrize(
    ("row", "percent", "published"),
    [
        ("W0 verbatim", (59.7, 57.3, 57.3), (72.2, 23.9, 52.5)),
        ("W3+A anchor", (56.0, 58.4, 56.6), (40.7, 31.3, 47.5)),
        ("W5 capsule", (55.5, 56.4, 58.1), (37.0, 17.9, 59.3)),
    ],
)
def test_the_9b_ratios_follow_from_the_accuracies(
    row: str, percent: tuple[float, ...], published: tuple[float, ...]
) -> None:
    assert ratios(percent, FLOORS_9B, HEADROOM_9B)[:3] == pytest.approx(published, abs=0.05)


@pytest.mark.parametrize(
    ("arm", "percent", "mean"),
    [
        ("W0 k=5", (65.9, 66.8, 66.4), 44.4),
        ("W0 k=10", (67.9, 67.5, 67.7), 57.6),
        ("all-foreign", (59.7, 59.9, 59.4), -24.6),
        ("schema-similar", (59.7, 62.0, 59.9), -15.5),
        ("random same-DB", (65.1, 64.9, 63.1), 23.6),
        ("W5 capsule", (64.0, 65.9, 67.0), 37.1),
    ],
)
def test_the_mean_ratio_is_the_mean_of_the_seeds(arm: str, percent: tuple[float, ...], mean: float) -> None:
    assert ratios(percent, FLOORS_27B, HEADROOM_27B)[3] == pytest.approx(mean, abs=0.05)


def test_the_headline_counts_give_the_headline() -> None:
    seeds = [
        SeedCounts(n=N, floor=floor, memory=memory, repaired=floor + gap, repair_floor=floor)
        for floor, memory, gap in zip(FLOORS_27B, (304, 308, 306), HEADROOM_27B, strict=True)
    ]
    ratio = crystallization_ratio(seeds=seeds)
    assert ratio.per_seed == pytest.approx((45.7, 38.6, 48.9), abs=0.05)
    assert ratio.mean == pytest.approx(44.4, abs=0.05)
    assert ratio.lift_pp == pytest.approx(4.34, abs=0.005)


@pytest.mark.parametrize(
    ("contrast", "fixed", "broke", "published", "within"),
    [
        ("half vs full bank", 42, 51, 0.41, 0.005),
        ("quarter vs full bank", 55, 96, 0.001, 0.0005),
        ("k=10 vs k=5 at full bank", 36, 18, 0.020, 0.0005),
        ("random vs none", 105, 73, 0.020, 0.0005),
        ("random vs W0", 41, 69, 0.010, 0.0005),
        ("foreign vs none", 51, 84, 0.006, 0.0005),
        ("schema-similar vs foreign", 62, 50, 0.30, 0.005),
        ("schema-similar vs none", 42, 63, 0.05, 0.005),
        ("subset metric", 123, 61, 6e-6, 0.5e-6),
        ("simple", 60, 37, 0.025, 0.0005),
        ("moderate", 51, 25, 0.004, 0.0005),
        ("challenging", 16, 5, 0.027, 0.0005),
    ],
)
def test_exact_mcnemar_gives_the_published_p(
    contrast: str, fixed: int, broke: int, published: float, within: float
) -> None:
    assert mcnemar_p(fixed=fixed, broke=broke) == pytest.approx(published, abs=within)


@pytest.mark.parametrize(("construction", "published"), [(4.56e6, 7.5e3), (5.96e6, 9.9e3)])
def test_the_amortization_horizon_is_construction_over_recurring_overhead(
    construction: float, published: float
) -> None:
    horizon = amortization_horizon(construction_tokens=construction, overhead_tokens=604)
    assert horizon == pytest.approx(published, abs=50)


def test_memory_pays_139_tokens_a_point_and_serve_time_repair_more() -> None:
    memory = tokens_per_point(tokens_per_query=604, lift_pp=100 * 60 / 1383)
    assert memory == pytest.approx(139, abs=0.5)
    assert memory is not None
    assert 359 / memory == pytest.approx(2.6, abs=0.05)


def test_one_round_with_memory_buys_80_percent_of_what_three_rounds_buy() -> None:
    assert headroom_share(floor=62.19, reached=69.99, ceiling=71.95) == pytest.approx(80, abs=0.5)


def test_the_raw_vote_is_right_in_4_percent() -> None:
    assert Share(145, 3718).percent == pytest.approx(3.9, abs=0.05)
