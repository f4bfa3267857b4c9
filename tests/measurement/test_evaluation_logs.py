"""Logs of other evaluators are arms: the same samples, scores and epochs, whichever format holds them."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from sqlcrystal.errors import ConfigError, DataError
from sqlcrystal.measurement.comparison import compare_arms
from sqlcrystal.measurement.outcome_files import read_arms, read_log

DATABASES = ("shop", "zoo", "bank")
RIGHT = {"base": 3, "cards": 2}
"""Of each database's questions, every so-manieth is wrong."""


def right(arm: str, number: int) -> bool:
    return number % RIGHT[arm] != 0 if arm == "base" else number % 5 != 0


def inspect_samples(arm: str, epochs: int = 1, **more: Any) -> list[dict[str, Any]]:
    return [
        {
            "id": f"{database}-{number}",
            "epoch": epoch,
            "input": "How many?",
            "target": "SELECT 1",
            "metadata": {"db_id": database},
            "scores": {"execution": {"value": "C" if right(arm, number) else "I", "answer": "SELECT 1"}, **more},
        }
        for database in DATABASES
        for number in range(12)
        for epoch in range(1, epochs + 1)
    ]


def inspect_json(folder: Path, arm: str, **options: Any) -> Path:
    path = folder / f"{arm}.json"
    log = {"version": 2, "status": "success", "eval": {"task": "text2sql"}, "samples": inspect_samples(arm, **options)}
    path.write_text(json.dumps(log))
    return path


def inspect_eval(folder: Path, arm: str, **options: Any) -> Path:
    path = folder / f"{arm}.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps({"version": 2, "eval": {"task": "text2sql"}}))
        for sample in inspect_samples(arm, **options):
            archive.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", json.dumps(sample))
    return path


def harness(folder: Path, arm: str, **_: Any) -> Path:
    path = folder / f"samples_text2sql_{arm}.jsonl"
    lines = [
        {
            "doc_id": place * 12 + number,
            "doc": {"question": "How many?", "db_id": database},
            "target": "SELECT 1",
            "resps": [["SELECT 1"]],
            "filtered_resps": ["SELECT 1"],
            "filter": "none",
            "metrics": ["exact_match"],
            "exact_match": float(right(arm, number)),
        }
        for place, database in enumerate(DATABASES)
        for number in range(12)
    ]
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    return path


@pytest.mark.parametrize("write", [inspect_json, inspect_eval, harness])
def test_two_logs_are_compared_over_their_databases(write: Any, tmp_path: Path) -> None:
    family = compare_arms(read_arms([write(tmp_path, "base"), write(tmp_path, "cards")]))
    found = family.members[0].comparison
    expected = [sum(right(arm, number) for number in range(12)) / 12 for arm in RIGHT]
    assert (found.n, found.n_databases, found.n_seeds) == (36, 3, 0)
    assert (found.a, found.b) == pytest.approx([100 * share for share in expected], abs=0.01)


def test_epochs_are_seeds(tmp_path: Path) -> None:
    scores = read_arms([inspect_eval(tmp_path, "base", epochs=2), inspect_eval(tmp_path, "cards", epochs=2)])
    assert compare_arms(scores).members[0].comparison.n_seeds == 2


def test_a_sample_without_a_score_is_left_out_and_counted(tmp_path: Path) -> None:
    path = inspect_json(tmp_path, "base")
    log = json.loads(path.read_text())
    log["samples"][0]["scores"] = None
    path.write_text(json.dumps(log))
    assert compare_arms(read_arms([path, inspect_json(tmp_path, "cards")])).members[0].comparison.unevaluable == 1


def test_one_of_several_scores_must_be_chosen(tmp_path: Path) -> None:
    files = [inspect_json(tmp_path, arm, judge={"value": 0.5}) for arm in RIGHT]
    with pytest.raises(ConfigError, match="choose one with --score: execution, judge"):
        read_arms(files)
    assert set(read_arms(files, score="judge").scores["base.json"]) == {0.5}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"samples": [{"id": 1, "scores": {"s": {"value": 7}}}]}', "the score is 7; a score is C, P, I, N"),
        ('{"results": {}}', "holds no samples"),
        ("{", "not JSON"),
        ('{"samples": [{"id": 1, "scores": {}}]}', "no sample has a score"),
    ],
)
def test_what_is_no_log_is_refused_in_one_line(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(content)
    with pytest.raises(DataError, match=message):
        read_arms([path, inspect_json(tmp_path, "base")])


def test_a_field_that_samples_have_not_is_told_with_those_they_have(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has no field 'table'; it has db_id"):
        read_arms([inspect_json(tmp_path, arm) for arm in RIGHT], cluster="table")


def test_one_log_alone_is_no_comparison(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="give one file for each arm"):
        read_arms([inspect_json(tmp_path, "base")])


def test_inspects_letters_are_right_half_right_and_wrong(tmp_path: Path) -> None:
    samples = [{"id": letter, "scores": {"match": {"value": letter}}} for letter in "CPIN"]
    path = tmp_path / "letters.json"
    path.write_text(json.dumps({"eval": {"task": "t"}, "samples": samples}))
    assert [score for _, score in sorted(read_log(path).items())] == [1.0, 0.0, 0.0, 0.5]
