"""The adversarial corpus on four engines: all is refused or stopped, nothing changes, memory stays small."""

import hashlib
import json
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from attacking import CORPUS, EVIL, statements
from sqlcrystal.databases import guard
from sqlcrystal.protocols import Database
from sqlcrystal.types import Rows

HERE = Path(__file__).parent
ENGINES = ("sqlite", "postgres", "mysql", "duckdb")
# What the engine lock alone cannot refuse, and why; the guard does.
ENGINE_GAPS = {
    "mysql": ("OUTFILE", "DUMPFILE", "LOAD_FILE", "load_file"),  # only the account's FILE privilege decides
}
CONTENT = ("SELECT * FROM team ORDER BY id", "SELECT * FROM player ORDER BY id", "SELECT * FROM scorer ORDER BY name")


def content(database: Database, url: str) -> str:
    """What must stay the same: the file's bytes, or for a server every row and the schema."""
    path = Path(url.partition("://")[2].removeprefix("/"))
    if database.dialect in {"sqlite", "duckdb"}:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    rows = [database.execute(sql) for sql in CONTENT]
    assert all(isinstance(result, Rows) for result in rows)
    return repr([result.rows for result in rows if isinstance(result, Rows)]) + database.schema()


@pytest.fixture
def evil() -> Iterator[Path]:
    """A path of this attack's own: a server of another test running beside it may well write to its own."""
    path = Path(f"{EVIL}-{uuid4().hex}")
    yield path
    for written in path.parent.glob(f"{path.name}*"):
        written.unlink()


def attack(engine: str, url: str, lock: str, evil: Path) -> dict[str, Any]:
    """Run the engine's corpus in a process of its own, which a statement that does not stop would make late."""
    command = [sys.executable, str(HERE.parent / "attacking.py"), engine, url, lock, str(evil)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, done.stderr[-2000:]
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def test_the_corpus_has_at_least_150_statements_over_four_engines() -> None:
    assert set(tomllib.loads(CORPUS.read_text(encoding="utf-8"))) == set(ENGINES)
    assert sum(len(statements(engine)) for engine in ENGINES) >= 150


@pytest.mark.parametrize(
    ("engine_name", "sql"),
    [(engine, sql) for engine in ENGINES for family, sql in statements(engine) if family != "bombs"],
)
def test_the_guard_alone_refuses_the_statement(engine_name: str, sql: str) -> None:
    assert guard.check(sql, engine_name) is not None


def test_both_locks_stop_the_whole_corpus(
    engine: str, url: str, league: Database, evil: Path, record_property: Callable[[str, object], None]
) -> None:
    before = content(league, url)
    report = attack(engine, url, "both", evil)
    record_property("tries", len(report["outcomes"]))
    assert [outcome for outcome in report["outcomes"] if outcome["kind"] == "rows"] == []
    assert max(report["megabytes"]) < 500
    assert content(league, url) == before
    assert list(evil.parent.glob(f"{evil.name}*")) == []


def test_the_engine_lock_alone_stops_writes_files_and_bombs(
    engine: str, url: str, league: Database, evil: Path, record_property: Callable[[str, object], None]
) -> None:
    before = content(league, url)
    report = attack(engine, url, "engine", evil)
    record_property("tries", len(report["outcomes"]))
    gaps = ENGINE_GAPS.get(engine, ())
    got_through = [
        outcome
        for outcome in report["outcomes"]
        if outcome["kind"] == "rows"
        and outcome["family"] != "steering"
        and not any(gap in outcome["sql"] for gap in gaps)
    ]
    assert got_through == []
    assert max(report["megabytes"]) < 500
    assert content(league, url) == before
