"""`sqlcrystal compare` as a user runs it."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

import scoring_data

HEADER = "question_id,database,verdict,kind,seconds,sql,error\n"


def compare(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return scoring_data.run_cli("compare", *arguments, cache=folder / "cache")


def scored(folder: Path, name: str, verdicts: str, *, questions: int = 4) -> Path:
    """A file of `score --out` with so many questions a database; `g` stands for gold that failed."""
    lines = [
        f"q{place},d{place // questions},{int(bit == '1')},{'gold error' if bit == 'g' else 'match'},0.1,SELECT 1,\n"
        for place, bit in enumerate(verdicts)
    ]
    (folder / name).write_text(HEADER + "".join(lines))
    return folder / name


def pairs(folder: Path, rows: Sequence[tuple[object, ...]]) -> Path:
    path = folder / "pairs.csv"
    path.write_text("database,question,seed,a,b\n" + "".join(f"{','.join(map(str, row))}\n" for row in rows))
    return path


def test_json_has_the_promised_keys(tmp_path: Path) -> None:
    rows = [(f"d{d}", f"q{q}", s, int(q > 3), int(q > d)) for d in range(4) for q in range(9) for s in (1, 2, 3)]
    comparison = json.loads(compare(tmp_path, pairs(tmp_path, rows), "--json").stdout)
    promised = [
        *("n", "n_databases", "n_questions", "n_seeds", "a", "b", "delta_pp", "ci_low_pp", "ci_high_pp", "p_value"),
        *("fixed", "broke", "mcnemar_p", "resamples", "rng_seed", "method", "sign_flip_p", "detectable_pp"),
        *("leave_one_out", "between_sd_pp", "new_database_pp"),
    ]
    assert set(promised) <= set(comparison)
    assert (comparison["method"], comparison["n_seeds"], comparison["undefined"]) == ("cr2", 3, "")


@pytest.mark.parametrize("method", ["cr2", "jackknife", "two-stage"])
def test_the_method_can_be_chosen(tmp_path: Path, method: str) -> None:
    rows = [(f"d{d}", f"q{q}", 1, int(q > 3), int(q > d)) for d in range(4) for q in range(9)]
    done = compare(tmp_path, pairs(tmp_path, rows), "--method", method)
    assert done.returncode == 0
    assert f"interval by {method}" in done.stdout


def test_one_database_gets_an_interval_over_questions_and_is_told_so(tmp_path: Path) -> None:
    rows = [("shop", f"q{q}", 1, int(q % 3 == 0), int(q % 2 == 0)) for q in range(30)]
    done = compare(tmp_path, pairs(tmp_path, rows))
    assert "no clustered interval: one database" in done.stdout
    assert "over questions, which says nothing of other databases: [" in done.stdout
    assert "nan" not in done.stdout


def test_questions_whose_gold_fails_are_left_out_and_counted(tmp_path: Path) -> None:
    first, second = scored(tmp_path, "a.csv", "0011g011001"), scored(tmp_path, "b.csv", "0111g111011")
    comparison = json.loads(compare(tmp_path, first, second, "--json").stdout)
    assert (comparison["n"], comparison["unevaluable"], comparison["n_databases"]) == (10, 1, 3)


def test_a_question_that_one_file_lacks_is_named(tmp_path: Path) -> None:
    done = compare(tmp_path, scored(tmp_path, "a.csv", "0101"), scored(tmp_path, "b.csv", "010"))
    assert done.returncode == 2
    assert "b.csv: has no question 'q3' of database 'd0', which the other has" in done.stderr


def test_one_scored_file_alone_asks_for_a_second(tmp_path: Path) -> None:
    done = compare(tmp_path, scored(tmp_path, "a.csv", "0101"))
    assert done.returncode == 2
    assert "give a second one" in done.stderr


def test_a_file_that_holds_several_prediction_files_is_refused(tmp_path: Path) -> None:
    both = tmp_path / "both.csv"
    both.write_text("question_id,database,verdict,kind,predictions\nq,d,1,match,x.json\nq,d,0,match,y.json\n")
    done = compare(tmp_path, both, scored(tmp_path, "b.csv", "1"))
    assert "score each into its own" in done.stderr
