"""A family of contrasts: what was designated is what is adjusted, run or not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlcrystal.errors import ConfigError
from sqlcrystal.measurement.statistics import holm, read_family

p_values = st.one_of(st.none(), st.floats(0, 1))


def test_holm_multiplies_the_smallest_by_the_size_of_the_family() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx((0.03, 0.06, 0.06))


def test_a_contrast_that_was_not_run_still_counts_and_stays_undefined() -> None:
    assert holm([0.01, None, 0.03]) == pytest.approx((0.03, None, 0.06))


@given(st.lists(p_values, min_size=1, max_size=8))
def test_an_undefined_p_never_helps_another(given_values: list[float | None]) -> None:
    run = [p for p in given_values if p is not None]
    alone = dict(zip(run, holm(run), strict=True))
    for p_value, adjusted in zip(given_values, holm(given_values), strict=True):
        assert (adjusted is None) == (p_value is None)
        assert p_value is None or (adjusted or 0) >= (alone[p_value] or 0)


def test_the_primary_contrast_is_read_first_and_unadjusted() -> None:
    read = read_family({"memory": 0.04, "width": 0.02, "verification": 0.001}, primary="memory")
    assert (read["memory"].supported, read["memory"].holm_p) == (True, None)
    assert (read["width"].holm_p, read["verification"].holm_p) == pytest.approx((0.02, 0.002))
    assert read["width"].supported


@pytest.mark.parametrize("primary", [0.2, None])
def test_nothing_is_claimed_past_a_primary_contrast_that_fails(primary: float | None) -> None:
    read = read_family({"memory": primary, "width": 0.0001}, primary="memory")
    assert not read["width"].supported
    assert read["width"].supported_alone


def test_both_readings_stand_beside_each_other() -> None:
    read = read_family({"memory": 0.01, "width": 0.03, "verification": 0.04, "pairing": None}, primary="memory")
    assert (read["width"].supported_alone, read["width"].supported) == (True, False)
    assert (read["pairing"].p_value, read["pairing"].holm_p, read["pairing"].supported) == (None, None, False)


def test_without_a_primary_contrast_all_share_the_adjustment() -> None:
    assert read_family({"width": 0.02, "pairing": 0.5})["width"].holm_p == pytest.approx(0.04)


def test_a_primary_contrast_outside_the_family_is_refused() -> None:
    with pytest.raises(ConfigError, match="primary contrast"):
        read_family({"width": 0.02}, primary="memory")
