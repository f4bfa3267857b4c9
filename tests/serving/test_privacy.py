"""`values = "never"`: values planted in cells and in questions are nowhere in prompts, cards, logs and the store."""

import contextlib
import io
import logging
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from cardbox import HashingEmbedder
from shop import SCHEMA, fenced
from sqlcrystal import Crystal
from sqlcrystal.bank.revalidation import runnable
from sqlcrystal.config import AssertionEntry, DatabaseEntry, TeamFile
from sqlcrystal.databases.masks import mask
from sqlcrystal.models.scripted import ScriptedModel, prompt_text
from sqlcrystal.serving import Caller
from sqlcrystal.types import Message, Sampling

CELLS = ("Sentinella Cellworth", "KINDCODE77", "918273", "Otherby Nameson", "645546")
ROWS = [(1, CELLS[0], CELLS[1], int(CELLS[2])), (2, CELLS[3], "FD", int(CELLS[4]))]
PRICE_OF = "What is the price of {}?"


def by_name(messages: Sequence[Message], _: Sampling) -> str:
    """Copies the name from the question into a query; a revision also filters by kind."""
    asked = messages[1].content.rsplit("[Question]\n", 1)[-1]
    if "does it break" in asked:
        return fenced("SELECT broken_column FROM item WHERE name = 'Sentinella Cellworth'")
    name = asked.split("price of ", 1)[-1].split("?")[0]
    extra = " AND price > 0" if "correcting" in messages[0].content else ""
    return fenced(f"SELECT price, kind FROM item WHERE name = '{name}'{extra}")


def service(folder: Path, **settings: object) -> Crystal:
    place = folder / "shop.sqlite"
    with contextlib.closing(sqlite3.connect(place)) as connection, connection:
        connection.execute(SCHEMA)
        connection.executemany("INSERT INTO item VALUES (?, ?, ?, ?)", ROWS)
    entry = DatabaseEntry(url=str(place), values="never", **settings)  # type: ignore[arg-type]
    team = TeamFile(databases={"shop": entry}, store=str(folder / "team.db"), budget=1)
    return Crystal(team, model=ScriptedModel(by_name), embedder=HashingEmbedder())


def every_path(crystal: Crystal) -> None:
    """Ask, fail, confirm, correct, reject, propose, vouch, list, measure, check, edit and test."""
    first = crystal.ask(PRICE_OF.format(CELLS[0]), by="ada")
    assert first.rows == ((918273, "KINDCODE77"),)  # who asks sees the values
    crystal.confirm(first, by="ada", note=f"I know {CELLS[0]}")
    crystal.ask(PRICE_OF.format(CELLS[3]), by="ada")
    crystal.ask("and does it break for Sentinella Cellworth at 918273?", by="ada")
    wrong = crystal.ask(f"Which item costs {CELLS[2]} or is of kind '{CELLS[1]}'?", by="ada")
    sql = f"SELECT name FROM item WHERE price = {CELLS[2]} OR kind = '{CELLS[1]}'"
    corrected = crystal.correct(wrong, sql, by="ada", note=CELLS[1])
    rejected = crystal.reject(crystal.ask(PRICE_OF.format(CELLS[3]), by="ada"), by="ada", note=f"not {CELLS[3]}")
    if rejected.proposal is not None:
        crystal.confirm(rejected.proposal.id, by="ada")
    crystal.edit(corrected.card, by="ada", sql=f"SELECT id FROM item WHERE kind = '{CELLS[1]}'", reason=CELLS[1])
    crystal.queue()
    crystal.value()
    crystal.check()
    crystal.history()


def kept_bytes(folder: Path) -> str:
    return "\n".join(
        path.read_bytes().decode(errors="replace") for path in folder.glob("team.db*") if path.name != "shop.sqlite"
    )


@contextlib.contextmanager
def logged(heard: io.StringIO) -> Iterator[None]:
    handler = logging.StreamHandler(heard)
    root = logging.getLogger()
    root.addHandler(handler)
    level = root.level
    root.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


SETTINGS: dict[str, dict[str, object]] = {
    "plain": {},
    "replayed": {"replay": True},
    "one answer, no profile": {"profile": False, "choice": "none"},
    "the choice on signs": {"choice": "signs"},
    "held out": {"hold_out": 0.5},
    "both arms": {"hold_out": 0.5, "both_arms": True},
    "assertion": {"assertion": (AssertionEntry(sql="SELECT 1 FROM {answer}"),)},
    "check": {"check": f"{sys.executable} -c pass"},
}


@pytest.mark.parametrize("kind", SETTINGS)
def test_no_value_of_a_cell_or_a_question_is_kept_or_told_to_a_later_prompt(tmp_path: Path, kind: str) -> None:
    heard = io.StringIO()
    with service(tmp_path, **SETTINGS[kind]) as crystal, logged(heard):
        every_path(crystal)
        model = crystal.workspace.model
        assert isinstance(model, ScriptedModel)
        prompts = [prompt_text(prompt) for prompt in model.prompts]
        cards = crystal.cards()
    everything = kept_bytes(tmp_path) + heard.getvalue()
    for cell in CELLS:
        assert cell.casefold() not in everything.casefold()
        for prompt in prompts:
            asked, told = prompt.rsplit("[Question]", 1)[-1], prompt.rsplit("[Question]", 1)[0]
            assert cell not in told or cell in asked, "a prompt tells a value that its own question does not name"
    assert len(cards) >= 2
    assert len(prompts) >= 4


def test_values_that_may_be_kept_would_be_found_by_this_search(tmp_path: Path) -> None:
    with service(tmp_path) as crystal:
        crystal.workspace.team.databases["shop"] = DatabaseEntry(url=str(tmp_path / "shop.sqlite"))
        every_path(crystal)
    kept = kept_bytes(tmp_path)
    assert all(cell in kept for cell in CELLS[:3])


def test_a_profile_shows_values_only_where_they_may_be_shown(tmp_path: Path) -> None:
    with service(tmp_path, profile=True) as crystal:
        model = crystal.workspace.model
        assert isinstance(model, ScriptedModel)
        crystal.ask("How many items are there?")
        assert not any(cell in prompt_text(model.prompts[-1]) for cell in CELLS)
        crystal.workspace.team.databases["shop"] = DatabaseEntry(url=str(tmp_path / "shop.sqlite"), profile=True)
    with Crystal(crystal.workspace.team, model=model, embedder=HashingEmbedder()) as allowed:
        allowed.ask("How many items are there?")
        assert f"-- item.kind: 'FD', '{CELLS[1]}'" in prompt_text(model.prompts[-1])


def test_a_masked_card_is_filled_again_from_the_question_that_is_asked(tmp_path: Path) -> None:
    with service(tmp_path) as crystal:
        crystal.confirm(crystal.ask(PRICE_OF.format(CELLS[0])), by="ada")
        (card,) = crystal.cards()
        assert (card.question.text, card.sql) == (
            "What is the price of «1»?",
            "SELECT price, kind FROM item WHERE name = '«1»'",
        )
        crystal.ask(PRICE_OF.format("O'Brien"))
        model = crystal.workspace.model
        assert isinstance(model, ScriptedModel)
        told = prompt_text(model.prompts[1]).rsplit("[Question]", 1)[0]
        assert "Q: What is the price of O'Brien?" in told or "Q: What is the price of O''Brien?" in told
        assert "WHERE name = 'O''Brien'" in told


def test_a_masked_card_still_runs_when_it_is_checked(tmp_path: Path) -> None:
    with service(tmp_path) as crystal:
        crystal.confirm(crystal.ask(PRICE_OF.format(CELLS[0])), by="ada")
        assert crystal.check().quarantined == ()


def test_what_no_cell_holds_stays_readable() -> None:
    sql = "SELECT strftime('%Y', at), round(x, 2) FROM t WHERE year = 2010 AND name LIKE '%ann%' LIMIT 5"
    masked = mask("Top 5 of Ann in 2010?", sql, dialect="sqlite", names=("t", "at", "x", "year", "name"))
    assert masked.sql == (
        "SELECT STRFTIME('%Y', at), ROUND(x, '«n1»') FROM t WHERE year = '«n2»' AND name LIKE '%«3»%' LIMIT 5"
    )
    assert "2010" not in masked.question
    assert "Ann" not in masked.question
    assert "«" not in runnable(masked.sql or "")


def test_forgetting_takes_a_value_out_of_a_store_that_kept_it(tmp_path: Path) -> None:
    with service(tmp_path) as crystal:
        crystal.workspace.team.databases["shop"] = DatabaseEntry(url=str(tmp_path / "shop.sqlite"))
        crystal.confirm(crystal.ask(PRICE_OF.format(CELLS[0])), by="ada")
        assert crystal.store.forget(by="ada", value=CELLS[0]).cards == 1
    assert CELLS[0] not in kept_bytes(tmp_path)


def test_a_model_is_told_whether_there_are_rows_and_nothing_that_could_spell_out_a_cell(tmp_path: Path) -> None:
    with service(tmp_path) as crystal:
        model = crystal.acting_for(Caller(person="ada", is_model=True))
        answer = model.ask(PRICE_OF.format("bolt"), "shop")
        rows = model.run("SELECT * FROM item", "shop")
        failed = model.run(f"SELECT no_such, '{CELLS[0]}' FROM item", "shop")
        given = model.correct(answer.id, "SELECT * FROM item")
    assert not [cell for cell in CELLS for shown in (answer, rows, failed) if cell in str(shown)]
    assert (rows.row_count, answer.row_count, failed.row_count) == (1, 0, 0)
    assert (given.columns, given.rows, given.row_count) == ((), (), 1)
    assert not rows.seconds + answer.seconds + failed.seconds
