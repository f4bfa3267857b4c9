"""Two databases with look-alike questions in one store: nothing of one ever appears for the other."""

import shutil
import sqlite3
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardbox import HashingEmbedder
from shop import SCHEMA, fenced
from sqlcrystal import Crystal
from sqlcrystal.bank import Store
from sqlcrystal.config import DatabaseEntry, TeamFile
from sqlcrystal.models.scripted import ScriptedModel, prompt_text
from sqlcrystal.serving import Event
from sqlcrystal.types import Message, Sampling

MARKS = {"left": "LEFTMARK", "right": "RIGHTMARK"}
QUESTIONS = ["What is item 1 called?", "what is item 1 called", "What is item 2 called?", "Which items are there?"]

steps = st.lists(
    st.tuples(
        st.sampled_from(sorted(MARKS)),
        st.sampled_from(QUESTIONS),
        st.sampled_from(["nothing", "confirm", "correct", "reject", "offer"]),
    ),
    min_size=2,
    max_size=8,
)


def copying(messages: Sequence[Message], _: Sampling) -> str:
    """A model that repeats the last SQL it is shown, and else writes its own: what leaks in comes out again."""
    shown = messages[1].content.rpartition("```sql\n")[2].partition("\n```")[0]
    return fenced(shown if shown.startswith("SELECT") else "SELECT name FROM item WHERE id = 1")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("apart")
    for name, mark in MARKS.items():
        with sqlite3.connect(folder / f"{name}.sqlite") as connection:
            connection.execute(SCHEMA)
            rows = [(number, f"{mark}-{number}", "HW", number) for number in (1, 2, 3)]
            connection.executemany("INSERT INTO item VALUES (?, ?, ?, ?)", rows)
        connection.close()
    Store(folder / "empty.db").close()
    return folder


@settings(max_examples=25)
@given(steps)
def test_no_card_value_or_answer_of_one_database_appears_for_the_other(
    template: Path, walked: list[tuple[str, str, str]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "team.db"
        shutil.copy(template / "empty.db", store)
        entries = {name: DatabaseEntry(url=str(template / f"{name}.sqlite"), replay=True) for name in MARKS}
        model = ScriptedModel(copying)
        team = TeamFile(databases=entries, store=str(store))
        with Crystal(team, model=model, embedder=HashingEmbedder()) as crystal:
            for database, question, verdict in walked:
                walk(crystal, model, database, question, verdict)
            for name, mark in MARKS.items():
                foreign = next(other for other in MARKS.values() if other != mark)
                assert all(foreign not in f"{card.text} {card.sql}" for card in crystal.cards(name))
                assert all(waiting.database == name for waiting in crystal.queue(name))


def walk(crystal: Crystal, model: ScriptedModel, database: str, question: str, verdict: str) -> None:
    """One question and what is said of its answer, with everything shown on the way looked at."""
    foreign = next(mark for name, mark in MARKS.items() if name != database)
    own_cards = {card.id for card in crystal.cards(database)}
    events: list[Event] = []
    model.prompts.clear()
    answer = crystal.ask(question, database, on_event=events.append)
    assert {card.id for card in answer.cards} <= own_cards
    assert answer.database == database
    assert foreign not in f"{answer.document(trace=True)} {events}"
    if verdict == "confirm":
        assert crystal.confirm(answer, by="ada").database == database
    elif verdict == "correct":
        corrected = crystal.correct(answer, f"SELECT name FROM item WHERE name = '{MARKS[database]}-2'", by="ada")
        assert foreign not in str(corrected)
    elif verdict == "reject":
        assert foreign not in str(crystal.reject(answer, by="ada", note=MARKS[database]))
    elif answer.offer is not None:
        assert answer.offer.card in own_cards
        crystal.confirm(answer.offer.id, by="ada")
    assert all(foreign not in prompt_text(prompt) for prompt in model.prompts)
