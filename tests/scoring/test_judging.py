"""Judging many predictions: nothing runs twice, the cache only saves time, faults are not wrong answers."""

import os
import sqlite3
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path

import pytest

import scoring_data
from sqlcrystal.benchmarks.cases import Benchmark
from sqlcrystal.benchmarks.evaluate import score_predictions
from sqlcrystal.benchmarks.files import locate
from sqlcrystal.databases import sqlite as sqlite_adapter
from sqlcrystal.errors import DataError, InfrastructureError
from sqlcrystal.scoring import Kind
from sqlcrystal.scoring.cache import GoldCache
from sqlcrystal.scoring.judge import Databases, PredictedPair, judge
from sqlcrystal.scoring.workers import run_chunks
from sqlcrystal.types import Execution, Rows


@pytest.fixture
def own(tmp_path: Path) -> Benchmark:
    return scoring_data.make_own(tmp_path / "own")


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every statement that reaches a database in this process."""
    seen: list[str] = []
    execute = sqlite_adapter.SqliteDatabase.execute

    def spy(self: sqlite_adapter.SqliteDatabase, sql: str, *, timeout: float = 30, max_rows: int = 10) -> Execution:
        seen.append(sql)
        return execute(self, sql, timeout=timeout, max_rows=max_rows)

    monkeypatch.setattr(sqlite_adapter.SqliteDatabase, "execute", spy)
    return seen


def kinds(
    own: Benchmark, predictions: list[str], *, rule: str = "bird", jobs: int = 1, cache: GoldCache | None = None
) -> list[Kind]:
    [result] = score_predictions(own, {"p": predictions}, rule=rule, jobs=jobs, cache=cache, timeout=2)
    return [prediction.kind for prediction in result.scored]


def test_each_kind_of_prediction_gets_its_kind_of_verdict(own: Benchmark) -> None:
    predictions = ["SELECT 3", "SELECT nome FROM pet", "DELETE FROM pet", ""]
    assert kinds(own, predictions) == [Kind.MATCH, Kind.PREDICTION_ERROR, Kind.REFUSED, Kind.PREDICTION_ERROR]


def test_a_prediction_that_never_ends_times_out(own: Benchmark) -> None:
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    [result] = score_predictions(own, {"p": [endless, *scoring_data.GOLDS[1:]]}, jobs=1, timeout=0.2)
    assert [prediction.kind for prediction in result.scored] == [
        Kind.PREDICTION_TIMEOUT,
        Kind.MATCH,
        Kind.MATCH,
        Kind.MATCH,
    ]


def test_the_same_statement_never_runs_twice_also_across_files(own: Benchmark, executed: list[str]) -> None:
    golds = scoring_data.GOLDS
    respaced = [golds[0].lower(), "SELECT  name  FROM pet;", golds[1], golds[3]]
    score_predictions(own, {"first": golds, "second": respaced, "third": ["SELECT 1"] * 4}, jobs=1)
    assert sorted(executed) == sorted([*golds, "SELECT 1", "SELECT 1"]), "SELECT 1 runs once in each database"


def test_a_warm_cache_saves_every_gold(own: Benchmark, executed: list[str], tmp_path: Path) -> None:
    cache = GoldCache(tmp_path / "cache")
    first = kinds(own, ["SELECT 1"] * 4, cache=cache)
    executed.clear()
    assert kinds(own, ["SELECT 1"] * 4, cache=GoldCache(tmp_path / "cache")) == first
    assert executed == ["SELECT 1", "SELECT 1"]


def test_a_changed_database_makes_its_cached_gold_void(own: Benchmark, tmp_path: Path) -> None:
    cache = GoldCache(tmp_path / "cache")
    assert kinds(own, ["SELECT 3", *scoring_data.GOLDS[1:]], cache=cache)[0] is Kind.MATCH
    with sqlite3.connect(own.locations["zoo"]) as zoo:
        zoo.execute("INSERT INTO pet VALUES ('Kit', 1, 1.0)")
    zoo.close()
    assert kinds(own, ["SELECT 3", *scoring_data.GOLDS[1:]], cache=cache)[0] is Kind.MISMATCH
    assert kinds(own, ["SELECT 4", *scoring_data.GOLDS[1:]], cache=cache)[0] is Kind.MATCH


def test_a_changed_database_in_an_old_file_is_noticed(own: Benchmark, tmp_path: Path) -> None:
    path = Path(own.locations["zoo"])
    os.utime(path, (1, 1))
    before = GoldCache(tmp_path / "cache").digest_of(path)
    with sqlite3.connect(path) as zoo:
        zoo.execute("UPDATE pet SET age = 4 WHERE age = 3")
    zoo.close()
    assert GoldCache(tmp_path / "cache").digest_of(path) != before


@pytest.mark.parametrize("damage", ["garbage", "truncated", "flipped", "folder"])
def test_a_damaged_cache_costs_time_and_nothing_else(own: Benchmark, tmp_path: Path, damage: str) -> None:
    expected = kinds(own, ["SELECT 3", *scoring_data.GOLDS[1:]])
    cache = GoldCache(tmp_path / "cache")
    kinds(own, scoring_data.GOLDS, cache=cache)
    cache.close()
    content = cache.path.read_bytes()
    cache.path.unlink()
    if damage == "garbage":
        cache.path.write_bytes(b"not a database at all" * 100)
    elif damage == "truncated":
        cache.path.write_bytes(content[: len(content) // 2])
    elif damage == "flipped":
        cache.path.write_bytes(content.replace(b"Rex", b"Max"))
    else:
        cache.path.mkdir()
    assert kinds(own, ["SELECT 3", *scoring_data.GOLDS[1:]], cache=GoldCache(tmp_path / "cache")) == expected
    assert kinds(own, ["SELECT 3", *scoring_data.GOLDS[1:]], cache=GoldCache(tmp_path / "cache")) == expected


def test_sql_that_reads_the_clock_is_not_kept(tmp_path: Path) -> None:
    cache = GoldCache(tmp_path)
    cache.put("digest", "SELECT date('now')", Rows(("d",), (("2020-01-01",),)))
    cache.put("digest", "SELECT 1", Rows(("d",), ((1,),)))
    cache.flush()
    assert cache.get("digest", "SELECT date('now')") is None
    assert cache.get("digest", "SELECT 1") == Rows(("d",), ((1,),))
    cache.close()


def test_processes_threads_and_one_worker_agree(own: Benchmark, tmp_path: Path) -> None:
    pairs = [
        PredictedPair("zoo", "SELECT name FROM pet", f"SELECT name FROM pet WHERE age > {n % 9}") for n in range(200)
    ]
    alone = judge(pairs, own.locations, rule="bird", jobs=1)
    forked = judge(pairs, own.locations, rule="bird", jobs=2, cache=GoldCache(tmp_path / "cache"))
    threaded: list[list[Kind]] = []
    thread = threading.Thread(
        target=lambda: threaded.append([v.kind for v in judge(pairs, own.locations, rule="bird", jobs=2)])
    )
    thread.start()
    thread.join()
    assert [v.kind for v in alone] == [v.kind for v in forked] == threaded[0]
    assert {v.kind for v in alone} == {Kind.MATCH, Kind.MISMATCH}


def test_two_processes_may_share_a_cache(own: Benchmark, tmp_path: Path) -> None:
    arguments = ("score", tmp_path / "p.jsonl", "--benchmark", "own", "--data", tmp_path / "own", "--json")
    (tmp_path / "p.jsonl").write_text("".join(f'{{"sql": "{sql}"}}\n' for sql in scoring_data.GOLDS))
    results: list[int] = []
    threads = [
        threading.Thread(
            target=lambda: results.append(scoring_data.run_cli(*arguments, cache=tmp_path / "cache").returncode)
        )
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [0, 0, 0]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_file_that_is_damaged_inside_is_the_users_to_mend_not_a_wrong_answer(own: Benchmark, jobs: int) -> None:
    path = Path(own.locations["zoo"])
    path.write_bytes(path.read_bytes()[:4096] + b"\xff" * 4096)
    with pytest.raises(DataError, match=r"zoo\.sqlite"):
        kinds(own, scoring_data.GOLDS, jobs=jobs)


def test_a_database_that_cannot_be_reached_is_an_infrastructure_fault() -> None:
    databases = Databases({"far": "postgresql+psycopg://nobody@127.0.0.1:9/none"})
    with pytest.raises(InfrastructureError):
        databases.execute("far", "SELECT 1", timeout=1, max_rows=1)


def test_duckdb_files_are_scored_as_their_own_engine(tmp_path: Path) -> None:
    import duckdb

    with duckdb.connect(str(tmp_path / "zoo.duckdb")) as zoo:
        zoo.execute("CREATE TABLE pet AS SELECT * FROM (VALUES ('Rex', 3), ('Ada', 7)) AS t(name, age)")
    locations = locate(["zoo"], folders=[tmp_path])
    pairs = [
        PredictedPair("zoo", "SELECT name FROM pet", sql)
        for sql in ("SELECT name FROM pet ORDER BY ALL", "SELECT nome FROM pet")
    ]
    verdicts = judge(pairs, locations, rule="bird", cache=GoldCache(tmp_path / "cache"))
    assert [verdict.kind for verdict in verdicts] == [Kind.MATCH, Kind.PREDICTION_ERROR]


def test_a_killed_worker_is_an_infrastructure_fault() -> None:
    # In a process of its own: forking needs one that has no other thread, and elsewhere the exit would be ours.
    script = """
import os
from contextlib import nullcontext
from sqlcrystal.errors import InfrastructureError
from sqlcrystal.scoring.workers import can_fork, run_chunks

assert can_fork()
die = lambda chunk: os._exit(9)
try:
    run_chunks(lambda: nullcontext(die), [1, 2, 3], jobs=2, on_start=lambda: None, on_result=lambda result: None)
except InfrastructureError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert "exit code 9" in done.stdout


def test_a_forked_worker_takes_every_chunk_once_and_raises_its_own_errors() -> None:
    script = """
from contextlib import nullcontext
from sqlcrystal.errors import DataError
from sqlcrystal.scoring.workers import run_chunks

def refuse(chunk):
    raise DataError("no such \\udc80 file")

taken = []
run_chunks(lambda: nullcontext(lambda chunk: [chunk, "\\udc80" * chunk]), range(200), jobs=3, on_start=lambda: None,
           on_result=lambda result: taken.append(result))
print(sorted(taken) == [[chunk, "\\udc80" * chunk] for chunk in range(200)])
try:
    run_chunks(lambda: nullcontext(refuse), [1, 2], jobs=2, on_start=lambda: None, on_result=lambda result: None)
except DataError as error:
    print(ascii(str(error)))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines() == ["True", r"'no such \udc80 file'"]


def test_a_bug_in_a_worker_shows_its_traceback() -> None:
    from contextlib import nullcontext

    def fail(_chunk: int) -> int:
        raise ZeroDivisionError("boom")

    with pytest.raises((RuntimeError, ZeroDivisionError), match="boom"):  # forked worker or thread
        run_chunks(lambda: nullcontext(fail), [1, 2, 3], jobs=2, on_start=lambda: None, on_result=lambda _: None)


def test_a_result_is_let_go_when_no_pair_waits_for_it(own: Benchmark) -> None:
    counting = (
        "WITH RECURSIVE n(x) AS (SELECT {0} UNION ALL SELECT x + 1 FROM n WHERE x < {0} + 20000) SELECT x, -x FROM n"
    )
    pairs = [PredictedPair("zoo", "SELECT name FROM pet", counting.format(1_000_000 * n)) for n in range(1, 13)]
    peaks = []
    for some in (pairs[:2], pairs):
        tracemalloc.start()
        judge(some, own.locations, rule="bird", jobs=1)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 2 * peaks[0]
