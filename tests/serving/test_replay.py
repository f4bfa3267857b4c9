"""Recurring questions: served from what was confirmed, offered with another literal, and never from a stale card."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from cardbox import HashingEmbedder, card
from shop import build, fenced
from sqlcrystal import Crystal
from sqlcrystal.config import DatabaseEntry, TeamFile
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.serving.replay import exchange
from sqlcrystal.types import CardStatus

ASKED = "Which items cost more than 100?"
SQL = "SELECT name FROM item WHERE price > 100"


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel(lambda *_: fenced(SQL))


@pytest.fixture
def crystal(tmp_path: Path, model: ScriptedModel) -> Iterator[Crystal]:
    entry = DatabaseEntry(url=str(build(tmp_path / "shop.sqlite")), replay=True)
    team = TeamFile(databases={"shop": entry}, store=str(tmp_path / "team.db"))
    with Crystal(team, model=model, embedder=HashingEmbedder()) as opened:
        yield opened


def change(crystal: Crystal, statement: str) -> None:
    """Change the database behind a Crystal, as its owner would."""
    place = crystal.workspace.team.databases["shop"].url
    with sqlite3.connect(place) as connection:
        connection.execute(statement)
    connection.close()


def test_a_confirmed_question_comes_back_without_a_model_call(crystal: Crystal, model: ScriptedModel) -> None:
    card_id = crystal.confirm(crystal.ask(ASKED), by="ada").card
    calls = len(model.prompts)
    again = crystal.ask("  which ITEMS cost more than 100 ")
    assert (again.replayed, again.calls, len(model.prompts)) == (True, 0, calls)
    assert [(used.id, used.by) for used in again.cards] == [(card_id, "ada")]


def test_a_replay_runs_the_sql_again(crystal: Crystal) -> None:
    crystal.confirm(crystal.ask(ASKED), by="ada")
    change(crystal, "INSERT INTO item VALUES (4, 'Saw', 'HW', 900)")
    assert ("Saw",) in (crystal.ask(ASKED).rows or ())


def test_nothing_is_replayed_that_nobody_confirmed(crystal: Crystal) -> None:
    crystal.ask(ASKED)
    assert not crystal.ask(ASKED).replayed


def test_nothing_is_replayed_where_the_team_did_not_allow_it(tmp_path: Path, model: ScriptedModel) -> None:
    place = build(tmp_path / "shop.sqlite")
    with Crystal.over(place, model=model, store=tmp_path / "s.db", embedder=HashingEmbedder()) as crystal:
        crystal.confirm(crystal.ask(ASKED), by="ada")
        assert not crystal.ask(ASKED).replayed


def test_a_changed_schema_ends_replay(crystal: Crystal) -> None:
    crystal.confirm(crystal.ask(ASKED), by="ada")
    change(crystal, "ALTER TABLE item ADD COLUMN weight INTEGER")
    assert not crystal.ask(ASKED).replayed


def test_a_card_that_no_longer_runs_is_quarantined_before_a_question_sees_it(crystal: Crystal) -> None:
    card_id = crystal.confirm(crystal.ask(ASKED), by="ada").card
    change(crystal, "ALTER TABLE item RENAME COLUMN price TO cost")
    assert crystal.ask("Which items are cheap?").cards == ()
    assert [(kept.id, kept.status) for kept in crystal.cards()] == [(card_id, CardStatus.QUARANTINED)]


def test_a_card_of_an_older_schema_that_still_runs_is_served(crystal: Crystal) -> None:
    card_id = crystal.confirm(crystal.ask(ASKED), by="ada").card
    change(crystal, "ALTER TABLE item ADD COLUMN weight INTEGER")
    assert [used.id for used in crystal.ask("Which items are cheap?").cards] == [card_id]


def test_a_question_with_another_literal_is_offered_the_query_and_not_served_it(crystal: Crystal) -> None:
    crystal.confirm(crystal.ask(ASKED), by="ada")
    answer = crystal.ask("Which items cost more than 400?")
    assert (answer.replayed, answer.adapted, answer.sql) == (False, False, SQL)
    assert answer.offer is not None
    assert answer.offer.sql == "SELECT name FROM item WHERE price > 400"
    assert answer.offer.exchanged == (("100", "400"),)
    assert len(crystal.cards()) == 1


def test_a_literal_that_its_column_never_holds_is_not_exchanged(tmp_path: Path) -> None:
    model = ScriptedModel(lambda *_: fenced("SELECT name FROM item WHERE kind = 'HW'"))
    place = build(tmp_path / "shop.sqlite")
    with Crystal.over(place, model=model, store=tmp_path / "team.db", embedder=HashingEmbedder()) as crystal:
        crystal.confirm(crystal.ask("Which items are of kind HW?"), by="ada")
        offered = [crystal.ask(f"Which items are of kind {kind}?").offer for kind in ("FD", "XX")]
    assert [offer is not None for offer in offered] == [True, False]


def test_a_parameter_that_was_confirmed_is_served_from_then_on(crystal: Crystal, model: ScriptedModel) -> None:
    crystal.confirm(crystal.ask(ASKED), by="ada")
    offer = crystal.ask("Which items cost more than 400?").offer
    assert offer is not None
    crystal.confirm(offer.id, by="ada")
    calls = len(model.prompts)
    answer = crystal.ask("Which items cost more than 110?")
    assert (answer.replayed, answer.adapted, answer.calls, len(model.prompts)) == (True, True, 0, calls)
    assert answer.sql == "SELECT name FROM item WHERE price > 110"


# ── what counts as a parameter ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("asked", "sql", "question", "expected"),
    [
        ("Sales in 2010?", "SELECT sum(x) FROM s WHERE y = 2010", "sales in 2011", "y = 2011"),
        ("Sales in 2010?", "SELECT sum(x) FROM s WHERE d >= '2010-01-01'", "Sales in 2012?", "'2012-01-01'"),
        ("Albums by AC/DC?", "SELECT t FROM a WHERE n = 'AC/DC'", "Albums by Queen?", "'Queen'"),
        ("Tracks like Rock?", "SELECT t FROM a WHERE n LIKE '%Rock%'", "Tracks like O'Hara?", "'%O''Hara%'"),
        ("From 5 to 9?", "SELECT t FROM a WHERE n BETWEEN 5 AND 9", "From 1 to 2?", "BETWEEN 1 AND 2"),
    ],
)
def test_a_literal_in_question_and_query_is_exchanged(asked: str, sql: str, question: str, expected: str) -> None:
    exchanged = exchange(card(1, text=asked, sql=sql), question, "sqlite")
    assert exchanged is not None
    assert expected in exchanged.sql


@pytest.mark.parametrize(
    ("asked", "sql", "question"),
    [
        ("Sales in 2010?", "SELECT sum(x) FROM s WHERE y = 2010", "Sales in 2010?"),
        ("Sales in 2010?", "SELECT sum(x) FROM s WHERE y = 2010", "Costs in 2011?"),
        ("Sales in 2010?", "SELECT sum(x) FROM s_2010 WHERE y = 2010", "Sales in 2011?"),
        ("Sales last year?", "SELECT sum(x) FROM s WHERE y = 2010", "Sales this year?"),
        ("Top 5?", "not SQL at all (", "Top 6?"),
    ],
)
def test_any_other_difference_is_another_question(asked: str, sql: str, question: str) -> None:
    assert exchange(card(1, text=asked, sql=sql), question, "sqlite") is None


def test_what_is_exchanged_can_never_be_more_than_a_literal() -> None:
    stored = card(1, text="Albums by AC/DC?", sql="SELECT t FROM a WHERE n = 'AC/DC'")
    exchanged = exchange(stored, "Albums by x'; DROP TABLE a; --?", "sqlite")
    assert exchanged is None or exchanged.sql == "SELECT t FROM a WHERE n = 'x''; DROP TABLE a; --'"
