"""Predictions are scored on PostgreSQL, MariaDB and DuckDB as they are on SQLite, from forked workers too."""

import json
from pathlib import Path

import pytest

from sqlcrystal.benchmarks.catalogue import load_benchmark
from sqlcrystal.benchmarks.evaluate import score_predictions
from sqlcrystal.benchmarks.preflight import check_benchmark
from sqlcrystal.scoring import Kind
from sqlcrystal.scoring.cache import GoldCache

GOLD = "SELECT name, goals FROM player WHERE goals > 0"
PREDICTIONS = [
    ("SELECT name, goals FROM scorer", Kind.MATCH),
    ("SELECT name FROM player", Kind.MISMATCH),
    ("SELECT nome FROM player", Kind.PREDICTION_ERROR),
    ("DELETE FROM player", Kind.REFUSED),
]


@pytest.mark.parametrize("engine", ["sqlite", "duckdb", "postgres", "mysql"])
@pytest.mark.parametrize("jobs", [1, 2])
def test_each_engine_gives_each_kind_of_verdict(
    engine: str, jobs: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url = request.getfixturevalue(f"{engine}_url")
    lines = [
        json.dumps({"question": "q", "sql": GOLD + " " * n, "database": "league"}) for n in range(len(PREDICTIONS) * 20)
    ]
    (tmp_path / "q.jsonl").write_text("\n".join(lines))
    benchmark = load_benchmark("own", tmp_path, [f"league={url}"])
    # A remark of its own keeps the statements apart, so that there is work for two.
    sqls = [f"{sql} -- {n}" for n in range(20) for sql, _ in PREDICTIONS]
    [result] = score_predictions(benchmark, {"p": sqls}, jobs=jobs, cache=GoldCache(tmp_path / "cache"))
    assert [prediction.kind for prediction in result.scored] == [kind for _ in range(20) for _, kind in PREDICTIONS]
    assert check_benchmark(benchmark, jobs=jobs).executed == len(lines)
