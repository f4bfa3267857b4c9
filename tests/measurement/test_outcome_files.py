"""Scores of anybody's arms: two or more, whole or partial, with what is missing declared."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from sqlcrystal.errors import DataError
from sqlcrystal.measurement.comparison import compare, compare_arms
from sqlcrystal.measurement.outcome_files import read_arms, read_outcomes
from sqlcrystal.measurement.outcomes import paired
from sqlcrystal.measurement.statistics import holm, sign_flip_p


def written(folder: Path, header: str, *lines: str) -> Path:
    path = folder / "arms.csv"
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


def three_arms(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    lines = [
        f"d{database},q{question},{int(rng.random() < 0.5)},{int(rng.random() < 0.6)},{int(rng.random() < 0.7)}"
        for database in range(5)
        for question in range(30)
    ]
    return written(folder, "database,question,plain,cards,repair", *lines)


def test_more_than_two_arms_are_one_family(tmp_path: Path) -> None:
    family = compare_arms(read_arms([three_arms(tmp_path)]))
    assert (family.baseline, [member.arm for member in family.members]) == ("plain", ["cards", "repair"])
    alone = [member.comparison.p_value for member in family.members]
    assert [member.p_holm for member in family.members] == list(holm(alone))


def test_arms_can_be_named_and_the_first_is_the_baseline(tmp_path: Path) -> None:
    family = compare_arms(read_arms([three_arms(tmp_path)], ["repair", "plain"]))
    assert (family.baseline, [member.arm for member in family.members]) == ("repair", ["plain"])


def test_an_arm_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="missing column bird"):
        read_arms([three_arms(tmp_path)], ["plain", "bird"])


def test_a_blank_cell_is_a_pair_left_out_and_counted(tmp_path: Path) -> None:
    path = written(tmp_path, "database,question,a,b", "d,q1,0,1", "d,q2,,1", "d,q3,1,", "e,q1,1,1")
    outcomes = read_outcomes([path])
    assert (len(outcomes), outcomes.unevaluable) == (2, 2)


def test_scores_between_right_and_wrong_are_compared(tmp_path: Path) -> None:
    path = written(tmp_path, "database,question,a,b", "d,q1,0.25,0.75", "d,q2,0.5,0.5", "e,q1,1,0.9", "f,q1,0,1")
    found = compare(read_outcomes([path]))
    assert found.delta_pp == pytest.approx(100 * (0.5 + 0 - 0.1 + 1) / 4)
    assert (found.fixed, found.broke) == (2, 1)


def test_sign_flips_of_scores_are_those_of_every_sign(tmp_path: Path) -> None:
    gains = (0.3, 0.71, -0.2, 0.55, 0.13)
    outcomes = paired((f"d{place}", "q", "", max(0.0, -gain), max(0.0, gain)) for place, gain in enumerate(gains))
    totals = [
        abs(sum(sign * gain for sign, gain in zip(signs, gains, strict=True)))
        for signs in itertools.product((1, -1), repeat=5)
    ]
    assert sign_flip_p(outcomes=outcomes) == pytest.approx(np.mean(np.array(totals) >= abs(sum(gains)) - 1e-9))


@pytest.mark.parametrize("score", ["1.2", "-0.1", "nan", "yes"])
def test_a_score_that_is_none_is_named_with_its_line(tmp_path: Path, score: str) -> None:
    path = written(tmp_path, "database,question,a,b", f"d,q1,0,{score}")
    with pytest.raises(DataError, match=f"line 2: b is '{score}'; a score is from 0 to 1"):
        read_outcomes([path])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("d,q1,1", "line 2: not as many cells as the 4 columns have names"),
        ("d,q1,1,0,1", "line 2: not as many cells as the 4 columns have names"),
        (",q1,1,0", "line 2: database is blank; only a score may be"),
        ("d, ,1,0", "line 2: question is blank; only a score may be"),
    ],
)
def test_a_damaged_line_is_named_and_no_missing_score(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_outcomes([written(tmp_path, "database,question,a,b", line, "e,q1,1,0")])


def test_where_no_difference_is_large_enough_to_be_found_none_is_named() -> None:
    found = compare(paired([("d", "q", "", 0, 1), ("e", "q", "", 1, 1), ("f", "q", "", 0, 1)]))
    assert found.detectable_pp is None
    assert found.detectable_ci_pp is not None
    assert 90 < found.detectable_ci_pp[0] < found.detectable_ci_pp[1] == 100


def test_what_could_be_detected_has_an_interval_that_narrows_with_databases() -> None:
    def width(databases: int) -> float:
        rng = np.random.default_rng(1)
        rows = [
            (f"d{group}", f"q{question}", "", int(rng.random() < 0.4), int(rng.random() < 0.5))
            for group in range(databases)
            for question in range(40)
        ]
        found = compare(paired(rows))
        assert found.detectable_pp is not None
        assert found.detectable_ci_pp is not None
        low, high = found.detectable_ci_pp
        assert low < found.detectable_pp < high
        return (high - low) / found.detectable_pp

    assert width(40) < width(4)
