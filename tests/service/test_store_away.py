"""A service and the server that its store lies on: either may be away for a while, and both go on."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from running_service import listening, two_shops
from servers import CrashingPostgres, crashing_postgres, new_postgres_database
from shop import RIGHT, build, fenced
from sqlcrystal.bank import Scope, Store, await_server
from sqlcrystal.errors import StoreAway
from sqlcrystal.interfaces.server.app import make_app
from sqlcrystal.interfaces.server.errors import AWAY
from sqlcrystal.models.scripted import ScriptedModel

pytestmark = pytest.mark.xdist_group("stores")
ASKED = {"question": "How many hardware items are there?", "database": "shop"}


@pytest.fixture(scope="module")
def server() -> Iterator[CrashingPostgres]:
    with crashing_postgres() as started:
        yield started


class Served:
    """`sqlcrystal serve` as people start it."""

    def __init__(self, folder: Path, store: str, *options: str) -> None:
        if not (folder / "shop.sqlite").exists():
            build(folder / "shop.sqlite")
        self._log = folder / "serve.log"
        command = [sys.executable, "-m", "sqlcrystal", "serve", "--port", "0", "--db", str(folder / "shop.sqlite")]
        command += ["--model", "http://127.0.0.1:9/v1#nobody", "--store", store, *options]
        with self._log.open("w") as log:
            self.process = subprocess.Popen(command, cwd=folder, env=os.environ, stderr=log, stdout=log)

    def said(self, wanted: str, seconds: float = 60.0) -> re.Match[str]:
        """Wait until it says so."""
        ends = time.monotonic() + seconds
        while not (found := re.search(wanted, self._log.read_text())):
            assert self.process.poll() is None, self._log.read_text()
            assert time.monotonic() < ends, self._log.read_text()
            time.sleep(0.05)
        return found

    @property
    def lines(self) -> list[str]:
        return self._log.read_text().splitlines()


def test_a_service_that_starts_while_its_store_is_down_says_so_once_and_goes_on_when_it_is_back(
    server: CrashingPostgres, tmp_path: Path
) -> None:
    store = new_postgres_database(server.url, "later")
    server.kill()
    served = Served(tmp_path, store, "--store-seconds", "120")
    try:
        served.said("the store's server does not answer; waiting up to 120 s for it")
        time.sleep(2)  # it knocks several times
        server.start()
        address = served.said(r"serves (http://[\d.:]+)")[1]
        assert httpx.get(f"{address}/ready").status_code == 200
        assert sum("does not answer" in line for line in served.lines) == 1
    finally:
        served.process.terminate()
        served.process.wait(30)


def test_a_store_that_stays_away_ends_the_start_in_one_line_within_its_time(
    server: CrashingPostgres, tmp_path: Path
) -> None:
    nowhere = server.url.replace("?host=/", "?host=/no-such-folder/")
    served = Served(tmp_path, nowhere, "--store-seconds", "1")
    assert served.process.wait(60) == 1
    waiting, gave_up = served.lines
    assert "waiting up to 1 s" in waiting
    assert gave_up.endswith("the store's server did not answer for 1 s")


def test_a_name_that_the_server_does_not_have_is_not_waited_for(server: CrashingPostgres) -> None:
    told: list[str] = []
    no_such = server.url.replace("/postgres?", "/no-such-database?")
    started = time.monotonic()
    await_server(no_such, 30.0, told.append)
    assert told == []
    assert time.monotonic() - started < 10
    await_server("team.db", 0.0, told.append)


def test_a_store_that_goes_away_under_a_service_is_told_with_503_and_used_again_when_it_is_back(
    server: CrashingPostgres, tmp_path: Path
) -> None:
    store = new_postgres_database(server.url, "under")
    with two_shops(tmp_path, ScriptedModel(lambda *_: fenced(RIGHT)), store) as crystal:
        token, _ = crystal.store.tokens.issue("ada", [("*", scope) for scope in Scope], by="test")
        headers = {"Authorization": f"Bearer {token}"}
        with listening(make_app(crystal)) as url, httpx.Client(base_url=url, headers=headers, timeout=60) as client:
            first = client.post("/api/ask", json=ASKED).json()
            server.kill()
            away = client.post(f"/api/answers/{first['id']}/confirm", json={})
            assert (away.status_code, away.headers.get("Retry-After"), away.json()) == (503, "2", {"detail": AWAY})
            assert client.get("/ready").status_code == 503
            server.start()
            assert client.get("/ready").status_code == 200
            assert client.post(f"/api/answers/{first['id']}/confirm", json={}).json()["card"]
            assert len(crystal.cards()) == 1


def test_a_store_that_is_away_is_told_apart_from_one_that_refuses(server: CrashingPostgres) -> None:
    with pytest.raises(StoreAway, match="cannot connect"):
        Store(server.url.replace("?host=/", "?host=/no-such-folder/"))
