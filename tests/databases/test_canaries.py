"""The canaries of the attacks do sing: each is shown what it watches for, without our locks before it."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from canaries import GROWTH, Canaries, watching
from engines import Server, driver
from fuzzing import league
from servers import short_folder
from sqlcrystal.types import Rows


@pytest.fixture
def server(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    """Where the engine's league lies."""
    if engine in {"postgres", "mysql"}:
        yield request.getfixturevalue(f"{engine}_server")
        return
    with league(engine, tmp_path) as made:
        yield made


@pytest.fixture
def canaries(engine: str, server: Server) -> Iterator[Canaries]:
    """In a folder that servers may write to."""
    with short_folder("canary") as folder:
        folder.chmod(0o777)
        with watching(engine, server, folder) as made:
            yield made


def test_they_are_silent_as_long_as_nothing_happens(canaries: Canaries) -> None:
    assert canaries.sung_at_all() == []


def test_one_sings_of_a_file(canaries: Canaries) -> None:
    Path(f"{canaries.evil}.csv").touch()
    assert canaries.sung() == ["a file was written: ['evil.csv']"]


def test_one_sings_of_a_connection(canaries: Canaries) -> None:
    with socket.create_connection(("127.0.0.1", canaries.port)) as line:
        line.recv(1)  # until the listener has seen it
    assert canaries.sung() == ["a connection was made"]


def test_one_sings_of_a_program_that_a_worker_or_this_process_runs(tmp_path: Path) -> None:
    worker = "import subprocess, sys; subprocess.run(['true']); print(flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", worker, "sqlcrystal.databases.worker"]
    with league("sqlite", tmp_path) as server, watching("sqlite", server, tmp_path) as canaries:
        with subprocess.Popen(["sleep", "60"]) as stranger:
            assert canaries.sung() == [f"a process was started: ['sleep ({stranger.pid})']"]
            stranger.kill()
        assert canaries.sung() == []
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
            assert child.stdout
            child.stdout.readline()
            assert "a process was started" in canaries.sung()[0]
            child.kill()


def test_one_sings_of_a_program_that_postgres_has_run(postgres_server: Server) -> None:
    with short_folder("canary") as folder:
        folder.chmod(0o777)
        with watching("postgres", postgres_server, folder) as canaries, driver("postgres", postgres_server) as attacker:
            attacker.execute("COPY team TO PROGRAM 'cat > /dev/null'")
            assert "a process was started" in canaries.sung()[0]
            attacker.execute(f"COPY team TO PROGRAM '{canaries.program}'".encode())
            assert canaries.sung()[0] == "a file was written: ['evil-ran']"


@pytest.mark.parametrize(
    ("engine_name", "lock", "release"),
    [
        ("postgres", "SELECT pg_advisory_lock(5)", "SELECT pg_advisory_unlock_all()"),
        ("postgres", "BEGIN; SELECT * FROM team", "ROLLBACK"),
        ("mysql", "SELECT GET_LOCK('any', 1)", "DO RELEASE_ALL_LOCKS()"),
        ("mysql", "HANDLER team OPEN", "HANDLER team CLOSE"),
    ],
)
def test_one_sings_of_a_lock(
    engine_name: str, lock: str, release: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("canaries.PATIENCE", 0.5)
    server: Server = request.getfixturevalue(f"{engine_name}_server")
    with short_folder("canary") as folder, watching(engine_name, server, folder) as canaries:
        attacker = driver(engine_name, server)
        attacker.cursor().execute(lock)
        assert canaries.sung() == ["a lock is held"]
        attacker.cursor().execute(release)
        attacker.close()
        assert canaries.sung() == []


def test_one_sings_of_a_change(canaries: Canaries, engine: str, server: Server) -> None:
    for name, heard in (("B", ["rows or schema changed"]), ("Ajax", [])):
        changing = driver(engine, server)
        changing.cursor().execute(f"UPDATE team SET name = '{name}' WHERE id = 1")
        changing.close()
        assert canaries.sung_at_all() == heard


def test_one_sings_of_a_secret(canaries: Canaries) -> None:
    for name, secret in canaries.secrets.items():
        assert name in canaries.told(Rows(("a",), ((f"x{secret}",),)))
    assert canaries.told(Rows(("a",), (("x",),))) == []


def test_one_sings_of_memory(tmp_path: Path) -> None:
    with league("sqlite", tmp_path) as server, watching("sqlite", server, tmp_path) as canaries:
        assert canaries.sung() == []
        held = b"x" * ((GROWTH + 100) * 2**20)
        assert held
        del held
        [heard] = canaries.sung()
        assert heard.startswith("this process grew by")
