"""`sqlcrystal study`: a bundled study runs against any endpoint by one override, and can be planned before."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from model_endpoints import Handler, Server, completion, serving
from sqlcrystal.interfaces.cli.study import Pace
from sqlcrystal.types import Message, Sampling
from study_player import Player

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Server]:
    player = Player()

    def answer(handler: Handler, body: dict[str, Any], attempt: int) -> None:
        messages = [Message(**message) for message in body["messages"]]
        reply = player.chat(messages, sampling=Sampling(temperature=body["temperature"]))
        handler.reply(200, completion(reply.text))

    with serving(answer) as server:
        yield server


def sqlcrystal(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sqlcrystal.interfaces.cli.app", *arguments]
    return subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "120"},
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )


def test_the_smoke_study_runs_on_an_endpoint_by_one_override_and_then_has_nothing_to_send(
    endpoint: Server, tmp_path: Path
) -> None:
    study = ["studies/smoke.toml", "--set", f"model={endpoint.base_url}#player", "--out", str(tmp_path), "--json"]
    planned = json.loads(sqlcrystal("study", "plan", *study).stdout)
    assert planned["recorded"] == 0
    done = sqlcrystal("study", "run", *study, "--jobs", "2")
    assert done.returncode == 0, done.stderr
    ran = json.loads(done.stdout)
    assert ran["left_out"] == {}
    assert ran["sent"] == sum(map(len, endpoint.attempts.values()))
    assert 0.5 <= planned["calls"] / ran["sent"] <= 2
    assert {(row["arm"], row["setting"]) for row in ran["accuracy"]} >= {("none", "repair"), ("W0", "retention")}
    assert json.loads(sqlcrystal("study", "plan", *study).stdout)["calls"] == 0
    again = json.loads(sqlcrystal("study", "run", str(tmp_path), "--set", "mode=fill", "--json").stdout)
    assert (again["folder"], again["sent"], again["left_out"]) == (str(tmp_path), 0, {})  # a folder knows its study
    assert {"ledger.json", "results.csv", "recording.sqlite", "log"} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["run", "studies/none.toml"], "studies/none.toml: cannot be read"),
        (["run", "studies/smoke.toml", "--set", "model=gpt"], "model: unknown value 'gpt'; choose from"),
        (["run", "studies/smoke.toml", "--engine", "slurm"], "--engine: unknown value 'slurm'; choose from local, ray"),
        (["plan", "studies/smoke.toml", "--set", "sedes=[1]"], "key: unknown value 'sedes'"),
        (["run", "studies/paper.toml", "--set", "benchmark.data=/nowhere"], "--data: /nowhere is not a folder"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(arguments: list[str], complaint: str, tmp_path: Path) -> None:
    done = sqlcrystal("study", *arguments, "--out", str(tmp_path / "out"))
    assert done.returncode == 2
    assert complaint in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""


def test_the_pace_forgets_what_the_recording_answered_at_once() -> None:
    pace = Pace(0.0)
    for _ in range(500):
        pace.step(0.1)
    assert pace.step(60.0) > 1
    assert [120 * pace.step(now) for now in (180.0, 240.0, 300.0)] == pytest.approx([2, 2, 3])
