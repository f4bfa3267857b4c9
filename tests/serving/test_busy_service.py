"""A service under load and under fire: what was acknowledged is there, once, on both stores."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from servers import new_postgres_database, running_postgres

SCRIPT = Path(__file__).resolve().parent.parent / "busy_service.py"
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join([str(SCRIPT.parent), os.environ.get("PYTHONPATH", "")])}


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.xdist_group("stores"))])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield str(tmp_path / "team.db")
        return
    with running_postgres() as server:
        yield new_postgres_database(server, "team")


def run(*arguments: object) -> str:
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr[-3_000:]
    return done.stdout


def test_fifty_threads_that_ask_and_confirm_lose_nothing_and_keep_nothing_twice(store: str, tmp_path: Path) -> None:
    report = re.match(r"(\d+) asked and confirmed", run("threads", store, tmp_path, 2))
    assert report
    assert int(report[1]) >= 50


def test_a_service_killed_at_random_moments_loses_no_acknowledged_verdict(store: str, tmp_path: Path) -> None:
    report = re.match(r"12 kills, (\d+) acknowledged", run("kills", store, tmp_path, 12, 20260101))
    assert report
    assert int(report[1]) >= 8
