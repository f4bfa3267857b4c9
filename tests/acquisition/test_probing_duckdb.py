"""A repair works the same on another engine, and speaks its dialect."""

from pathlib import Path

import pytest

from shop import QUESTION, RIGHT, ROWS, SCHEMA, repairing, right
from sqlcrystal.acquisition.revision import LookFirst
from sqlcrystal.databases import open_database
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.solving.solver import SingleShot
from sqlcrystal.types import Rows


def test_t3_repairs_on_duckdb(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "shop.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(SCHEMA)
        connection.executemany("INSERT INTO item VALUES (?, ?, ?, ?)", ROWS)
    database = open_database(f"duckdb:///{path}", name="shop")
    try:
        model = ScriptedModel(repairing)
        episode = (
            LookFirst(model, database)
            .acquire(SingleShot(model, database).solve(QUESTION), right=False, accept=right)
            .episode
        )
    finally:
        database.close()
    assert episode is not None
    assert episode.sql == RIGHT
    probed = episode.rounds[0].probes[0].execution
    assert isinstance(probed, Rows)
    assert sorted(probed.rows) == [("FD",), ("HW",)]
    prompts = "\n".join(message.content for prompt in model.prompts for message in prompt)
    assert "You are correcting a DuckDB query" in prompts
    assert "SQLite" not in prompts
