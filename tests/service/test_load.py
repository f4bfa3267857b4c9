"""Many clients at once, for a few seconds: `benchmarks/service_load.py` is the same for a minute, with its clock."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from servers import new_postgres_database, running_postgres

LOAD = Path(__file__).parents[2] / "benchmarks" / "service_load.py"


def hammered(*options: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, str(LOAD), *options], capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    account: dict[str, Any] = json.loads(done.stdout)
    return account


def lost_nothing(account: dict[str, Any]) -> None:
    assert account["errors"] == {}
    assert account["lost"] == 0
    assert account["twice"] == 0
    assert account["asked_and_confirmed"] > 20


def test_fifty_clients_lose_nothing() -> None:
    account = hammered("--seconds", "4", "--model-seconds", "0.3")
    lost_nothing(account)
    assert account["cut_off"] == 0
    assert account["overhead_ms"]["/api/ask"]["p95"] > 0


@pytest.mark.xdist_group("stores")
def test_two_processes_on_one_store_lose_nothing_while_one_is_killed() -> None:
    with running_postgres() as server:
        store = new_postgres_database(server, "load")
        lost_nothing(hammered("--seconds", "8", "--model-seconds", "0.3", "--processes", "2", "--store", store))
