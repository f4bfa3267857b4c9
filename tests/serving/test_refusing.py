"""What asks nothing of the database gets a sentence and no SQL; real questions are let through."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from cardbox import HashingEmbedder
from shop import build as build_shop
from shop import fenced
from sqlcrystal import Crystal
from sqlcrystal.benchmarks import quarry
from sqlcrystal.benchmarks.quarry import entries, names
from sqlcrystal.databases import open_database
from sqlcrystal.errors import NotAQuestion
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.protocols import Described
from sqlcrystal.serving.refusing import _GREETING, _ORDER, is_about_something_else
from sqlcrystal.types import Table

REFUSED = (
    "hello",
    "Hi there!",
    "thank you very much",
    "delete all albums",
    "Please drop the table item",
    "could you update item set price to 0",
    "insert a new item",
    "What was our profit margin last year?",
    "who is the president",
)
ASKED = (
    "How many items are there?",
    "Which kinds cost most?",
    "How many HW things do we have?",
    "Updated items by kind",
    "Which of them were bought in 2020?",
    "combien de clients avons-nous",
)


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel(lambda *_: fenced("SELECT COUNT(*) FROM orders"))


@pytest.fixture
def crystal(tmp_path: Path, model: ScriptedModel) -> Iterator[Crystal]:
    import sqlite3

    place = tmp_path / "orders.sqlite"
    with sqlite3.connect(place) as made:
        made.execute("CREATE TABLE orders (id INT, item TEXT, kind TEXT, price INT, quantity INT, order_date TEXT)")
        made.execute("INSERT INTO orders VALUES (1, 'Bolt', 'HW', 3, 2, '2020-01-01')")
    made.close()
    with Crystal.over(place, model=model, store=tmp_path / "team.db", embedder=HashingEmbedder()) as opened:
        yield opened


@pytest.mark.parametrize("text", REFUSED)
def test_what_asks_nothing_gets_a_sentence_without_a_call_and_is_not_kept(
    crystal: Crystal, model: ScriptedModel, text: str
) -> None:
    with pytest.raises(NotAQuestion, match=r"\.$"):
        crystal.ask(text)
    assert (model.prompts, crystal.history()) == ([], [])


@pytest.mark.parametrize("text", ASKED)
def test_a_question_is_answered(crystal: Crystal, text: str) -> None:
    assert crystal.ask(text).rows == ((1,),)


def test_a_schema_that_is_not_in_english_refuses_no_question(tmp_path: Path) -> None:
    model = ScriptedModel(lambda *_: fenced("SELECT 1"))
    with Crystal.over(build_shop(tmp_path / "shop.sqlite"), model=model, store=tmp_path / "team.db") as crystal:
        assert not is_about_something_else("Which clients owe us most?", crystal.tables())


def test_no_question_of_quarry_is_taken_for_a_greeting_or_an_order_and_few_for_something_else() -> None:
    refused = Counter[str]()
    for name in names():
        tables = _tables(quarry.path(name))
        for entry in entries(name):
            refused["rules"] += bool(_GREETING.fullmatch(entry.text) or _ORDER.match(entry.text))
            refused["schema"] += is_about_something_else(entry.text, tables)
    assert refused["rules"] == 0
    assert refused["schema"] <= 3  # 0.5 % of 600


@pytest.mark.shared_data
@pytest.mark.parametrize("benchmark", ["spider", "spider_forty"])
def test_few_questions_of_spider_are_refused(shared_data: Path, benchmark: str) -> None:
    cases = json.loads((shared_data / benchmark / "dev.json").read_text())
    places = {case["db_id"]: shared_data / benchmark / "database" / case["db_id"] for case in cases}
    tables = {name: _tables(place / f"{name}.sqlite") for name, place in places.items()}
    texts = [(case["question"], tables[case["db_id"]]) for case in cases]
    assert [text for text, _ in texts if _GREETING.fullmatch(text) or _ORDER.match(text)] == []
    assert sum(is_about_something_else(text, known) for text, known in texts) <= 0.005 * len(texts)


def _tables(place: Path) -> list[Table]:
    database = open_database(str(place))
    assert isinstance(database, Described)
    try:
        return list(database.tables())
    finally:
        database.close()
