"""What Python programs and notebooks get: frames, a display, async calls, and prompts with comments and hints."""

import asyncio
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cardbox import HashingEmbedder
from servers import new_postgres_database, running_postgres
from shop import QUESTION, RIGHT, SCHEMA, build, fenced, repairing
from sqlcrystal import AsyncCrystal, Crystal, ServedAnswer
from sqlcrystal.config import DatabaseEntry, TeamFile
from sqlcrystal.databases import open_database
from sqlcrystal.errors import ConfigError
from sqlcrystal.models.scripted import ScriptedModel, prompt_text
from sqlcrystal.serving import Event
from sqlcrystal.solving.solver import SingleShot

ASKED = "How many hardware items are there?"
MIXED = ServedAnswer(
    id="a",
    database="d",
    question="<b>?",
    sql="SELECT 1",
    columns=("x", "x", "y"),
    rows=((1, "<i>", 1), (None, "b", "c")),
)


def test_rows_become_an_arrow_table_with_every_column() -> None:
    table = MIXED.to_arrow()
    assert table.column_names == ["x", "x_2", "y"]
    assert table.to_pydict() == {"x": [1, None], "x_2": ["<i>", "b"], "y": ["1", "c"]}


def test_rows_become_a_pandas_frame_as_they_are() -> None:
    pytest.importorskip("pandas", reason="LOUD: no pandas here, its frames were not looked at")
    frame = MIXED.to_pandas()
    assert list(frame.columns) == ["x", "x", "y"]
    assert [frame.iloc[0].tolist(), frame.iloc[1].tolist()[1:]] == [[1, "<i>", 1], ["b", "c"]]
    assert frame.isna().iloc[1].tolist() == [True, False, False]


def test_rows_become_a_polars_frame_with_every_column() -> None:
    pytest.importorskip("polars", reason="LOUD: no Polars here, its frames were not looked at")
    assert MIXED.to_polars().to_dict(as_series=False) == {"x": [1, None], "x_2": ["<i>", "b"], "y": ["1", "c"]}


def test_a_frame_whose_library_is_missing_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ConfigError, match="pip install pandas"):
        MIXED.to_pandas()


def test_a_printed_answer_is_short_and_obeys_nothing_in_a_terminal() -> None:
    many = ServedAnswer(
        id="a1",
        database="d",
        question="q",
        sql="SELECT x",
        columns=("x",),
        rows=(("\x1b[31m",), (None,)) * 9,
        row_count=18,
    )
    assert str(many).splitlines() == [
        "SELECT x",
        "18 rows: \\x1b[31m; NULL; \\x1b[31m; …",
        "answer a1: 0 calls, 0.0 s",
    ]


def test_a_notebook_shows_text_and_never_obeys_it() -> None:
    shown = MIXED._repr_html_()
    assert "&lt;b&gt;?" in shown
    assert "&lt;i&gt;" in shown
    assert "<i>" not in shown


def test_async_calls_do_the_same_and_hand_events_to_the_loop(tmp_path: Path) -> None:
    async def loop() -> tuple[list[str], str]:
        place = build(tmp_path / "shop.sqlite")
        model = ScriptedModel(repairing)
        events: list[Event] = []
        async with AsyncCrystal.over(
            place, model=model, store=tmp_path / "s.db", embedder=HashingEmbedder()
        ) as crystal:
            answer = await crystal.ask(ASKED, on_event=events.append)
            ruling = await crystal.confirm(answer, by="ada")
            await asyncio.sleep(0)
        return [event.kind for event in events], ruling.card

    kinds, card = asyncio.run(loop())
    assert kinds == ["cards", "sql", "rows", "repaired", "done"]
    assert card


# ── what a prompt shows ──────────────────────────────────────────────────────────────────────────────────────────────


def first_prompt(entry: DatabaseEntry, folder: Path) -> str:
    model = ScriptedModel(lambda *_: fenced(RIGHT))
    team = TeamFile(databases={"shop": entry}, store=str(folder / "team.db"))
    with Crystal(team, model=model, embedder=HashingEmbedder()) as crystal:
        crystal.ask(QUESTION.text)
    return prompt_text(model.prompts[0])


def test_without_comments_and_hints_a_prompt_is_byte_for_byte_the_studys(tmp_path: Path) -> None:
    place = build(tmp_path / "shop.sqlite")
    study = ScriptedModel(lambda *_: fenced(RIGHT))
    database = open_database(str(place), name="shop")
    from msgspec.structs import replace

    SingleShot(study, database).solve(replace(QUESTION, evidence=""))
    database.close()
    assert first_prompt(DatabaseEntry(url=str(place), profile=False), tmp_path) == prompt_text(study.prompts[0])


def test_views_and_hints_reach_the_prompt(tmp_path: Path) -> None:
    place = tmp_path / "shop.sqlite"
    with sqlite3.connect(place) as connection:
        connection.execute(SCHEMA)
        connection.execute("CREATE VIEW hardware AS SELECT * FROM item WHERE kind = 'HW'")
    connection.close()
    (tmp_path / "hints.md").write_text("Prices are in cents.\n")
    prompt = first_prompt(DatabaseEntry(url=str(place), hints=str(tmp_path / "hints.md")), tmp_path)
    assert "CREATE VIEW hardware" in prompt
    assert "-- Prices are in cents." in prompt


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with running_postgres() as url:
        yield url


def test_comments_reach_the_prompt_and_the_store_may_be_postgresql(server: str, tmp_path: Path) -> None:
    import psycopg

    url, store = new_postgres_database(server, "shop"), new_postgres_database(server, "store")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE item (id int, kind text)")
        connection.execute("INSERT INTO item VALUES (1, 'HW'), (2, 'HW')")
        connection.execute("COMMENT ON COLUMN item.kind IS 'HW is hardware'")
    model = ScriptedModel(lambda *_: fenced(RIGHT))
    team = TeamFile(databases={"shop": DatabaseEntry(url=url, allow_privileged=True, replay=True)}, store=store)
    with Crystal(team, model=model, embedder=HashingEmbedder()) as crystal:
        crystal.confirm(crystal.ask(ASKED), by="ada")
        assert crystal.ask(ASKED).replayed
    assert "-- item.kind: HW is hardware" in prompt_text(model.prompts[0])
