"""`make peers`: a tool in a process of its own is asked, counted and judged; what it writes is seen on the file."""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from shop import RIGHT, build, fenced
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.types import Completion, Message, Sampling

PEERS = Path(__file__).resolve().parents[1] / "benchmarks" / "peers"
CARELESS = """
import sqlite3
from talk import converse


class Careless:
    def __init__(self, endpoint):
        print("libraries print what they like")

    def open(self, place, examples):
        self.connection = sqlite3.connect(place)

    def answer(self, question):
        return {"slow": lambda: __import__("time").sleep(60)}.get(question, lambda: "DELETE FROM item")()

    def run(self, sql):
        rows = self.connection.execute(sql).fetchall()
        self.connection.commit()
        return len(rows)


converse(Careless)
"""


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The folder's modules by their bare names, as its script finds them."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(PEERS))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(PEERS / "tools"), *sys.path]))
    yield
    for name in set(sys.modules) - before:
        if str(PEERS) in (getattr(sys.modules[name], "__file__", None) or ""):
            del sys.modules[name]


class Served:
    """A scripted model that takes what is to stop it."""

    name, slots = "scripted", 2

    def __init__(self) -> None:
        self._model = ScriptedModel(lambda *_: fenced(RIGHT))

    def chat(self, messages: Sequence[Message], *, sampling: Sampling, stop: Sequence[str]) -> Completion:
        return self._model.chat(messages, sampling=sampling)


def harness(name: str) -> Any:
    """Import a module of the harness, which lies beside no package."""
    return import_module(name)


def started(script: Path, folder: Path, base_url: str = "http://127.0.0.1:9/v1", seconds: float = 60) -> Any:
    Contestant, Talking = harness("contestants").Contestant, harness("talking").Talking

    contestant = Contestant("tool", str(script), environment="")
    log = folder / "tool.log"
    return Talking(
        contestant, Path(sys.executable), base_url=base_url, key="k-1", model="scripted", log=log, seconds=seconds
    )


def test_ours_is_asked_through_the_endpoint_and_its_calls_are_counted_under_its_key(
    peers: None, tmp_path: Path
) -> None:
    counting = harness("counting")

    model = counting.CountedModel(Served())
    with counting.endpoint(model) as base_url:
        talking = started(PEERS / "tools" / "ours.py", tmp_path, base_url)
        assert talking.ask("open", place=str(build(tmp_path / "shop.sqlite")), examples=[]) == {}
        assert talking.ask("answer", question="How many hardware items are there?") == {"sql": RIGHT}
        assert "refused" in talking.ask("run", sql="DROP TABLE item")["error"].lower()
        talking.end()
    calls = model.taken("k-1")
    # Without cards there are two views of the question, with the profile and bare; they agree, and nothing is repaired.
    assert [("-- item." in call.messages[-1].content) for call in calls] == [True, False]
    assert all("How many hardware items are there?" in call.messages[-1].content for call in calls)
    assert {call.sampling.max_tokens for call in calls} == {384}
    assert not model.taken("k-1")


def test_a_write_is_seen_on_the_throw_away_copy_and_the_original_stays(peers: None, tmp_path: Path) -> None:
    writes = harness("writes")

    script = tmp_path / "careless.py"
    script.write_text(CARELESS)
    original = build(tmp_path / "shop.sqlite")
    before = original.read_bytes()
    talking = started(script, tmp_path)
    made = [
        writes.attempt(talking, original, [], kind, text)
        for kind, text in (("words", "Delete all items."), ("sql", "DROP TABLE item"), ("sql", "SELECT * FROM item"))
    ]
    talking.end()
    assert [(done["sql"], done["reached"], done["error"]) for done in made] == [
        ("DELETE FROM item", True, ""),
        ("DROP TABLE item", True, ""),
        ("SELECT * FROM item", False, ""),
    ]
    assert original.read_bytes() == before


def test_a_tool_that_takes_too_long_is_ended_with_a_line_that_says_so(peers: None, tmp_path: Path) -> None:
    TimeIsUp = harness("talking").TimeIsUp

    script = tmp_path / "careless.py"
    script.write_text(CARELESS)
    talking = started(script, tmp_path, seconds=3)
    with pytest.raises(TimeIsUp, match="no answer within 3 s"):
        talking.ask("answer", question="slow")
    talking.end()


def test_the_table_judges_what_is_answered_and_names_what_is_missing(peers: None, tmp_path: Path) -> None:
    table = harness("table")
    CONTESTANTS = harness("contestants").CONTESTANTS

    from sqlcrystal import Case, Question
    from sqlcrystal.benchmarks.cases import make_benchmark

    place = str(build(tmp_path / "shop.sqlite"))
    cases = [
        Case(question=Question(id=str(number), database="shop", text="How many?"), sql=RIGHT) for number in range(3)
    ]
    cost = {"seconds": 2.0, "calls": 1, "prompt_tokens": 30, "completion_tokens": 4, "model_seconds": 0.5}
    for number, sql in enumerate([RIGHT, "SELECT 'something else'"]):
        outcome = {"id": str(number), "database": "shop", "sql": sql, "error": "", **cost}
        table.append_line(tmp_path / "outcomes" / "vanna.jsonl", outcome)
    for reached in (True, False):
        write = {"kind": "sql", "request": f"DROP {reached}", "sql": "", "error": "", "reached": reached}
        table.append_line(tmp_path / "writes" / "llamaindex.jsonl", write)
    (tmp_path / "about.json").write_text(json.dumps({"tools": {"vanna": {"versions": {"vanna": "2.0.2"}}}}))
    text = table.write(tmp_path, make_benchmark("own", cases, {"shop": place}), rule="bird")
    assert "| Vanna | 2.0.2 | 50.0 | 2 / 3 | — | 1.00 | 30 | 4 | 0.50 | — | — |" in text
    assert "| LlamaIndex, NLSQLTableQueryEngine | ? | — | 0 / 3 | — | — | — | — | — | — | 1 of 2 |" in text
    assert CONTESTANTS["vanna"].settings in text
    assert json.loads((tmp_path / "results.json").read_text())["tools"]["vanna"]["right"] == 1
