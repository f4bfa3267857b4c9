"""Units travel to Ray workers; a killed worker costs its calls in flight, and the tables are the local engine's."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from model_endpoints import Handler, Server, completion, serving
from sqlcrystal.config import StudyFile, parse_study
from sqlcrystal.ledger.folder import RECORDING
from sqlcrystal.ledger.records import Outcome
from sqlcrystal.study.opening import run_study
from sqlcrystal.types import Message, Sampling
from study_player import Player

ray = pytest.importorskip("ray", reason="the ray extra is not installed")

ARMS = [
    {"name": "none", "retriever": "none", "settings": ["transfer", "repair"]},
    {"name": "k=1", "k": 1},
    {"name": "T4", "source": "T4"},
]


def study(model: str) -> StudyFile:
    document = {"name": "ray", "benchmark": {"name": "quarry-1", "only": ["clinic"]}, "seeds": [42], "arm": ARMS}
    return parse_study({**document, "model": model, "budget": 1})


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Server]:
    player = Player()

    def answer(handler: Handler, body: dict[str, Any], attempt: int) -> None:
        messages = [Message(**message) for message in body["messages"]]
        time.sleep(0.02)
        handler.reply(200, completion(player.chat(messages, sampling=Sampling(temperature=body["temperature"])).text))

    with serving(answer) as server:
        yield server


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    yield
    ray.shutdown()


def worker_processes() -> list[int]:
    """The processes of this machine that hold a worker of ours."""
    numbers = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if command.startswith(b"ray::Worker"):
                numbers.append(int(entry.name))
    return numbers


def kill_a_worker_in_mid_run(endpoint: Server, killed: list[int], over: threading.Event) -> None:
    """Once the endpoint has answered a few calls of this run, end one of the two workers for good."""
    begun = sum(map(len, endpoint.attempts.values()))
    while not over.wait(0.05):  # on a busy machine the workers alone take half a minute to start
        if sum(map(len, endpoint.attempts.values())) > begun + 15 and (workers := worker_processes()):
            os.kill(workers[0], signal.SIGKILL)
            killed.append(workers[0])
            return


@pytest.mark.xdist_group("ray")
def test_a_killed_worker_costs_its_calls_in_flight_and_the_tables_are_the_local_engines(
    endpoint: Server, cluster: None, tmp_path: Path
) -> None:
    killed: list[int] = []
    chosen = study(f"{endpoint.base_url}#player")
    over = threading.Event()
    killer = threading.Thread(target=kill_a_worker_in_mid_run, args=(endpoint, killed, over))
    killer.start()
    try:
        travelled = run_study(chosen, tmp_path / "ray", engine="ray", jobs=2)
    finally:
        over.set()
        killer.join()
    sent_by_ray = sum(map(len, endpoint.attempts.values()))
    assert killed
    assert travelled.left_out == {}

    local = run_study(chosen, tmp_path / "local", jobs=2)
    sent_locally = sum(map(len, endpoint.attempts.values())) - sent_by_ray
    assert travelled.sent == local.sent == sent_locally
    assert sent_by_ray <= sent_locally + 2
    assert [timeless(row) for row in travelled.ledger.outcomes] == [timeless(row) for row in local.ledger.outcomes]
    assert travelled.ledger.cards == local.ledger.cards

    # The seconds a call took differ from run to run; read from one recording, the two engines write the same bytes.
    replay = replace(chosen, mode="replay", recordings=(str(tmp_path / "ray" / RECORDING),))
    run_study(replay, tmp_path / "replayed", jobs=2)
    for name in ("results.csv", "results.parquet"):
        assert (tmp_path / "ray" / name).read_bytes() == (tmp_path / "replayed" / name).read_bytes()


def timeless(row: Outcome) -> Outcome:
    return replace(row, seconds=0.0)
