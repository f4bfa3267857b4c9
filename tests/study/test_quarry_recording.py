"""The shipped recording: all of Quarry answered by both embedded models, with the verdicts of the live run."""

import csv
from pathlib import Path

import pytest

from sqlcrystal.benchmarks.catalogue import load_benchmark
from sqlcrystal.benchmarks.oracle import GoldOracle
from sqlcrystal.databases import open_database
from sqlcrystal.models.opening import open_model
from sqlcrystal.models.recorded import Recorded
from sqlcrystal.models.recording import Recording
from sqlcrystal.solving.solver import SingleShot
from sqlcrystal.types import Sampling

RECORDINGS = Path(__file__).resolve().parents[2] / "studies" / "recordings"
AS_RECORDED = Sampling(max_tokens=384)


def live_verdicts(model: str) -> dict[str, bool]:
    with (RECORDINGS / "quarry-p0.csv").open(encoding="utf-8", newline="") as file:
        return {row["question"]: row["right"] == "1" for row in csv.DictReader(file) if row["model"] == model}


@pytest.mark.parametrize("name", ["qwen2.5-coder-1.5b", "qwen2.5-coder-0.5b"])
def test_replaying_the_shipped_recording_gives_the_verdicts_of_the_live_run(name: str) -> None:
    benchmark = load_benchmark("quarry")
    with Recording(RECORDINGS / "quarry.jsonl.xz") as recording:
        model = Recorded(open_model(name), recording, "replay")
        databases = {key: open_database(place, name=key) for key, place in benchmark.locations.items()}
        oracle = GoldOracle(benchmark.cases, databases.__getitem__)
        verdicts = {}
        for case in benchmark.cases:
            database = databases[case.question.database]
            attempt = SingleShot(model, database, sampling=AS_RECORDED).solve(case.question)
            verdicts[case.question.id] = attempt.sql is not None and oracle.right(case.question, attempt.sql)
    assert verdicts == live_verdicts(name)


def test_the_default_model_finds_the_first_edition_neither_too_easy_nor_too_hard() -> None:
    asked = {case.question.id for case in load_benchmark("quarry-1").cases}
    verdicts = [right for question, right in live_verdicts("qwen2.5-coder-1.5b").items() if question in asked]
    assert len(verdicts) == 259
    assert 35 <= 100 * sum(verdicts) / len(verdicts) <= 65
