"""The loop of a data team: ask, verify, keep; over a real database, a real store and a scripted model."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from cardbox import HashingEmbedder
from shop import RIGHT, WRONG, build, fenced, repairing
from sqlcrystal import Crystal
from sqlcrystal.bank import Verdict
from sqlcrystal.errors import ConfigError, ModelError, NotFound, UserError
from sqlcrystal.models.scripted import ScriptedModel, prompt_text
from sqlcrystal.serving import Event
from sqlcrystal.types import CardStatus, Message, Sampling

ASKED = "How many hardware items are there?"


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel(repairing)


@pytest.fixture
def crystal(tmp_path: Path, model: ScriptedModel) -> Iterator[Crystal]:
    place = build(tmp_path / "shop.sqlite")
    with Crystal.over(place, model=model, store=tmp_path / "team.db", embedder=HashingEmbedder()) as opened:
        yield opened


def answering(sql: str) -> ScriptedModel:
    return ScriptedModel(lambda *_: fenced(sql))


def over_shop(folder: Path, model: ScriptedModel) -> Crystal:
    place = folder / "shop.sqlite"
    place = place if place.exists() else build(place)
    return Crystal.over(place, model=model, store=folder / "team.db", embedder=HashingEmbedder())


# ── asking ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_sql_that_returns_nothing_but_zero_is_repaired_before_the_user_sees_it(crystal: Crystal) -> None:
    answer = crystal.ask(ASKED)
    assert (answer.sql, answer.rows, answer.repaired, answer.error) == (RIGHT, ((2,),), True, "")
    assert answer.trace is not None
    assert answer.trace.attempt.sql == WRONG


def test_an_answer_tells_its_steps_in_order(crystal: Crystal) -> None:
    events: list[Event] = []
    answer = crystal.ask(ASKED, on_event=events.append)
    assert [event.kind for event in events] == ["cards", "sql", "rows", "repaired", "done"]
    assert events[-1].data == answer.document()


def test_an_answer_is_kept_before_it_is_given(crystal: Crystal) -> None:
    answer = crystal.ask(ASKED, by="ada")
    kept = crystal.store.answers.get(crystal.history()[0].id)
    assert (kept.id, kept.sql, kept.asked_by, kept.rows) == (answer.id, RIGHT, "ada", ((2,),))


def test_a_confirmed_answer_stands_in_the_prompt_of_its_sibling(crystal: Crystal, model: ScriptedModel) -> None:
    ruling = crystal.confirm(crystal.ask(ASKED), by="ada")
    sibling = crystal.ask("How many hardware items cost more than 100?")
    assert [(card.id, card.signal, card.by) for card in sibling.cards] == [(ruling.card, "user", "ada")]
    assert ASKED in prompt_text(model.prompts[-1])


def test_without_memory_no_card_reaches_the_prompt(crystal: Crystal, model: ScriptedModel) -> None:
    crystal.confirm(crystal.ask(ASKED), by="ada")
    answer = crystal.ask(ASKED, memory=False)
    assert answer.cards == ()
    assert "[Relevant experience" not in prompt_text(model.prompts[-2])


def test_a_repair_that_finds_nothing_better_leaves_a_query_that_runs(tmp_path: Path) -> None:
    with over_shop(tmp_path, answering(WRONG)) as crystal:
        answer = crystal.ask(ASKED)
    assert (answer.sql, answer.rows, answer.repaired, answer.error) == (WRONG, ((0,),), False, "")


def test_sql_that_never_runs_is_an_answer_with_an_error(tmp_path: Path) -> None:
    with over_shop(tmp_path, answering("SELECT price FROM nowhere")) as crystal:
        answer = crystal.ask(ASKED)
        assert "nowhere" in answer.error
        with pytest.raises(UserError, match="nothing to confirm"):
            crystal.confirm(answer)


def test_a_model_that_fails_leaves_no_trace(tmp_path: Path) -> None:
    with over_shop(tmp_path, ScriptedModel([])) as crystal, pytest.raises(ModelError):
        crystal.ask(ASKED)
    assert not (tmp_path / "team.db").exists()


@pytest.mark.parametrize(
    ("question", "complaint"), [("", "empty"), (" \n", "empty"), ("x" * 2**20, "at most"), ("\ud800", "Unicode")]
)
def test_a_question_that_is_none_changes_nothing(tmp_path: Path, question: str, complaint: str) -> None:
    with over_shop(tmp_path, answering(RIGHT)) as crystal, pytest.raises(UserError, match=complaint):
        crystal.ask(question)
    assert not (tmp_path / "team.db").exists()


def test_an_unknown_database_is_answered_with_the_known_ones(crystal: Crystal) -> None:
    with pytest.raises(ConfigError, match="choose from shop"):
        crystal.ask(ASKED, database="ship")


# ── verdicts ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_same_confirmation_twice_makes_one_card_and_one_decision(crystal: Crystal) -> None:
    answer = crystal.ask(ASKED)
    first, second = crystal.confirm(answer, by="ada"), crystal.confirm(answer.id, by="bo")
    assert (first.new, second.new, second.card, second.by) == (True, False, first.card, "ada")
    assert len(crystal.store.decisions.all()) == len(crystal.cards()) == 1


def test_nothing_but_a_verdict_makes_a_card(crystal: Crystal) -> None:
    crystal.reject(crystal.ask(ASKED), by="ada")
    assert crystal.cards() == []


def test_a_corrected_answer_is_banked_as_its_authors(crystal: Crystal) -> None:
    answer = crystal.ask(ASKED)
    corrected = crystal.correct(answer, "SELECT count(*) FROM item", by="ada")
    (card,) = crystal.cards()
    assert (card.sql, card.admission.by, card.source) == ("SELECT count(*) FROM item", "ada", "user")
    assert corrected.rows == ((3,),)
    assert crystal.store.decisions.standing(answer.id).verdict is Verdict.CORRECTED  # type: ignore[union-attr]


@pytest.mark.parametrize("sql", ["DELETE FROM item", "SELECT 1; DROP TABLE item", "SELECT nope FROM item", ""])
def test_a_correction_that_may_not_run_changes_nothing(crystal: Crystal, sql: str) -> None:
    answer = crystal.ask(ASKED)
    with pytest.raises(UserError, match=r"sql: .*nothing was changed"):
        crystal.correct(answer, sql)
    assert (crystal.cards(), crystal.store.decisions.all()) == ([], [])


def test_a_correction_takes_the_wrong_card_out_of_service(crystal: Crystal) -> None:
    answer = crystal.ask(ASKED)
    wrong = crystal.confirm(answer, by="mallory").card
    right = crystal.correct(answer, "SELECT count(*) FROM item", by="ada")
    assert right.replaced == (wrong,)
    assert [card.id for card in crystal.cards(status=CardStatus.ACTIVE)] == [right.card]


def test_a_rejected_replay_disables_the_card_it_came_from(crystal: Crystal) -> None:
    card = crystal.confirm(crystal.ask(ASKED), by="mallory").card
    again = crystal.ask(ASKED)
    assert crystal.reject(again, by="ada", repair=False).replaced == (card,)


def test_a_revoked_card_that_another_person_confirms_is_theirs(crystal: Crystal) -> None:
    answer = crystal.ask(ASKED)
    card = crystal.confirm(answer, by="mallory").card
    revoked = crystal.revoke(by="mallory", revoked_by="ada")
    assert revoked.revoked == (card,)
    assert crystal.confirm(answer, by="ada").card == card
    assert crystal.revoke(by="mallory", revoked_by="ada").revoked == ()
    assert [(kept.id, kept.admission.by) for kept in crystal.cards(status=CardStatus.ACTIVE)] == [(card, "ada")]


def heeding(messages: Sequence[Message], _: Sampling) -> str:
    """A model that counts everything, until a hint speaks of hardware."""
    return fenced(RIGHT if "Hint: hardware is HW" in messages[1].content else "SELECT count(*) FROM item")


def test_a_rejection_with_a_note_proposes_what_only_a_confirmation_banks(tmp_path: Path) -> None:
    with over_shop(tmp_path, ScriptedModel(heeding)) as crystal:
        rejected = crystal.reject(crystal.ask(ASKED), by="ada", note="hardware is HW")
        assert rejected.proposal is not None
        assert (rejected.proposal.sql, rejected.proposal.rows, crystal.cards()) == (RIGHT, ((2,),), [])
        ruling = crystal.confirm(rejected.proposal.id, by="ada")
        assert [(card.id, card.sql) for card in crystal.cards()] == [(ruling.card, RIGHT)]


def test_a_stranger_may_not_vouch(tmp_path: Path) -> None:
    build(tmp_path / "shop.sqlite")
    settings = tmp_path / "sqlcrystal.toml"
    settings.write_text('people = ["ada"]\n[databases.shop]\nurl = "shop.sqlite"\n')
    from sqlcrystal.config import read_team

    with Crystal(read_team(settings), model=ScriptedModel(repairing), embedder=HashingEmbedder()) as crystal:
        answer = crystal.ask(ASKED)
        with pytest.raises(ConfigError, match="choose from ada"):
            crystal.confirm(answer, by="mallory")
        assert crystal.cards() == []


def test_what_was_asked_most_waits_first(crystal: Crystal) -> None:
    crystal.ask("How many items are there?")
    crystal.ask(ASKED)
    crystal.ask(ASKED.upper())
    assert [waiting.asked for waiting in crystal.queue()] == [2, 1]


def test_an_unknown_answer_is_one_line(crystal: Crystal) -> None:
    crystal.ask(ASKED)
    with pytest.raises(NotFound, match="'zzz': not in"):
        crystal.confirm("zzz")


def test_the_editor_runs_nothing_that_writes(crystal: Crystal) -> None:
    assert crystal.run("DELETE FROM item").error.startswith("refused")
    assert crystal.run(RIGHT).rows == ((2,),)
