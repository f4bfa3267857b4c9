"""Conversations in service: a follow-up is read, answered and banked as the question that stands alone."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from cardbox import HashingEmbedder
from conversing import DEAR, FIRST, FOOD, ONLY_DEAR, OTHER_TOPIC, READ, READ_DEAR, THEN, conversing, readings
from shop import RIGHT, build
from sqlcrystal.bank import Scope
from sqlcrystal.config.team import DatabaseEntry, TeamFile
from sqlcrystal.errors import Contradicted, ModelError, NotFound, UserError
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.serving import Caller, Crystal

Given = tuple[Crystal, ScriptedModel]


@pytest.fixture
def given(tmp_path: Path) -> Iterator[Given]:
    entries = {
        "shop": DatabaseEntry(url=str(build(tmp_path / "shop.sqlite")), replay=True),
        "vault": DatabaseEntry(url=str(build(tmp_path / "vault.sqlite")), values="never"),
    }
    model = ScriptedModel(conversing)
    team = TeamFile(databases=entries, store=str(tmp_path / "team.db"), budget=0)
    with Crystal(team, model=model, embedder=HashingEmbedder()) as crystal:
        yield crystal, model


def person(crystal: Crystal, name: str, *databases: str) -> Crystal:
    scopes = frozenset((database, scope) for database in databases for scope in (Scope.ASK, Scope.JUDGE))
    return crystal.acting_for(Caller(person=name, scopes=scopes))


def test_a_follow_up_is_answered_kept_and_banked_as_the_question_that_stands_alone(given: Given) -> None:
    crystal, model = given
    first = crystal.ask(FIRST, "shop")
    then = crystal.ask(THEN, follow="last")
    assert (then.question, then.sql, then.calls) == (READ, FOOD, 3)  # read once, answered from two views
    assert then.follows is not None
    assert (then.follows.id, then.follows.asked) == (first.id, THEN)
    assert FIRST in readings(model.prompts)[0]
    assert RIGHT in readings(model.prompts)[0]
    crystal.confirm(then)
    assert [card.question.text for card in crystal.cards("shop")] == [READ]
    assert crystal.answer(then.id).follows == then.follows
    again = crystal.ask(THEN, follow=first)
    assert (again.replayed, again.calls) == (True, 1)
    assert "replayed, 1 call to read it" in again.cost_line()


def test_a_new_topic_begins_a_thread_of_its_own(given: Given) -> None:
    crystal, _ = given
    first = crystal.ask(FIRST, "shop")
    other = crystal.ask(OTHER_TOPIC, follow=first)
    assert (other.follows, other.question, other.calls) == (None, OTHER_TOPIC, 3)
    assert [turn.id for turn in crystal.answer_story(other.id).thread] == [other.id]
    then = crystal.ask(THEN, follow=first)
    assert [turn.id for turn in crystal.answer_story(first.id).thread] == [first.id, then.id]


def test_the_turn_that_follows_a_correction_sees_its_sql_and_none_of_a_rejected_answer(given: Given) -> None:
    crystal, model = given
    first = crystal.ask(FIRST, "shop")
    crystal.correct(first, "SELECT COUNT(*) AS n FROM item WHERE kind = 'HW'")
    crystal.ask(THEN, follow=first)
    crystal.reject(first, repair=False)
    crystal.ask(THEN, follow=first)
    corrected, rejected = readings(model.prompts)
    assert "AS n" in corrected
    assert "SQL 1" not in rejected


def test_nobody_follows_an_answer_they_may_not_see(given: Given) -> None:
    crystal, model = given
    hidden = crystal.ask(FIRST, "vault")
    ada = person(crystal, "ada", "shop")
    for name in (hidden.id, "last", "0" * 12):
        with pytest.raises(NotFound):
            ada.ask(THEN, "shop", follow=name)
    both = person(crystal, "bo", "shop", "vault")
    with pytest.raises(UserError, match="is of database 'vault', not of 'shop'"):
        both.ask(THEN, "shop", follow=hidden)
    assert not readings(model.prompts)


def test_where_values_are_never_kept_a_thread_is_masked_and_only_its_speaker_is_understood(given: Given) -> None:
    crystal, model = given
    ada, bo = person(crystal, "ada", "vault"), person(crystal, "bo", "vault")
    first = ada.ask("How many items did 'Xylograph-7731' buy?", "vault")
    then = ada.ask("and 'Quillfeather' only?", follow=first)
    assert "Xylograph-7731" in readings(model.prompts)[-1]
    bo.ask("and 'Quillfeather' only?", follow=then)
    assert "Xylograph-7731" not in readings(model.prompts)[-1].partition("[Last message]")[0]
    assert "Quillfeather" not in readings(model.prompts)[-1].partition("[Last message]")[0]
    crystal.correct(then.id, "SELECT 'Quillfeather' FROM item", note="only those of 'Ambergris-12' please")
    kept = sqlite3.connect(crystal.workspace.team.store)
    dump = "\n".join(
        str(row)
        for table in ("answers", "cards", "proposals", "decisions")
        for row in kept.execute(f"SELECT * FROM {table}")
    )
    kept.close()
    assert not [word for word in ("Xylograph", "Quillfeather", "Ambergris") if word in dump]


def test_a_note_that_asks_something_else_is_banked_as_what_it_asks(given: Given) -> None:
    crystal, model = given
    whole = crystal.ask(FIRST, "shop")
    crystal.confirm(whole)
    rejection = crystal.reject(crystal.ask(FIRST, "shop"), note=ONLY_DEAR)
    assert rejection.proposal is not None
    assert (rejection.proposal.question, rejection.proposal.sql) == (READ_DEAR, DEAR)
    assert rejection.replaced == ()
    ruling = crystal.confirm(rejection.proposal.id)
    assert ruling.question == READ_DEAR
    served = {card.question.text: card.sql for card in crystal.cards("shop", status="active")}
    assert served == {FIRST: RIGHT, READ_DEAR: DEAR}
    assert crystal.ask(FIRST, "shop").sql == RIGHT
    assert crystal.answer_story(rejection.id).record.question == READ_DEAR
    crystal.undo(rejection.id)
    assert [card.question.text for card in crystal.cards("shop", status="active")] == [FIRST]
    assert all(prompt[-1].content for prompt in model.prompts)


def test_what_follows_a_proposal_goes_on_from_it_and_not_from_the_answer_it_was_made_for(given: Given) -> None:
    crystal, model = given
    ada = person(crystal, "ada", "shop")
    proposed = ada.reject(ada.ask(FIRST, "shop"), note=ONLY_DEAR).proposal
    assert proposed is not None
    for caller in (ada, crystal):
        caller.ask(THEN, "shop", follow=proposed.id)
        seen = readings(model.prompts)[-1]
        assert f"Question 1: {READ_DEAR}\nSQL 1: {DEAR}\n" in seen


def test_sql_given_for_a_proposal_is_banked_under_the_question_that_its_note_made(given: Given) -> None:
    crystal, model = given
    ada, better = person(crystal, "ada", "shop"), "SELECT COUNT(*) AS dear FROM item WHERE kind = 'HW' AND price > 100"
    for caller in (ada, crystal):
        rejected = caller.reject(caller.ask(FIRST, "shop"), note=ONLY_DEAR)
        assert rejected.proposal is not None
        proposal = rejected.proposal.id
        correction = caller.correct(proposal, better)
        assert (correction.id, correction.question) == (rejected.id, READ_DEAR)
        assert {card.question.text: card.sql for card in crystal.cards("shop", status="active")} == {READ_DEAR: better}
        assert crystal.proposals("shop") == []
        caller.ask(THEN, follow=rejected.id)
        assert "AS dear" in readings(model.prompts)[-1]
        crystal.undo(rejected.id)
    bo = person(crystal, "bo", "vault")
    with pytest.raises(NotFound):
        bo.correct(proposal, better)


def test_without_values_what_follows_a_proposal_is_understood_of_its_speaker_alone(given: Given) -> None:
    crystal, model = given
    ada, bo = person(crystal, "ada", "vault"), person(crystal, "bo", "vault")
    proposed = ada.reject(ada.ask(FIRST, "vault"), note=ONLY_DEAR).proposal
    assert proposed is not None
    assert "100" not in crystal.store.decisions.proposal(proposed.id).question
    ada.ask(THEN, "vault", follow=proposed.id)
    assert READ_DEAR in readings(model.prompts)[-1]
    bo.ask(THEN, "vault", follow=proposed.id)
    assert "100" not in readings(model.prompts)[-1]
    ada.correct(proposed.id, DEAR)
    (card,) = crystal.cards("vault")
    assert (card.question.text, card.sql) == (
        "How many hardware items over «n2» are there?",
        "SELECT COUNT(*) FROM item WHERE kind = '«1»' AND price > '«n2»'",
    )


def test_a_note_on_what_the_data_means_leaves_the_question_alone(given: Given) -> None:
    crystal, _ = given
    answer = crystal.ask(FIRST, "shop")
    correction = crystal.correct(answer, RIGHT, note="hardware is HW")
    assert correction.question == ""
    assert [card.question.text for card in crystal.cards("shop")] == [FIRST]
    noted = crystal.correct(crystal.ask(FIRST, "shop"), DEAR, note=ONLY_DEAR)
    assert noted.question == READ_DEAR
    assert {card.question.text: card.sql for card in crystal.cards("shop")} == {FIRST: RIGHT, READ_DEAR: DEAR}


def test_a_correction_stands_also_where_no_model_can_read_its_note(tmp_path: Path) -> None:
    replies = iter(["```sql\nSELECT 1\n```"])
    with Crystal.over(
        build(tmp_path / "shop.sqlite"),
        model=ScriptedModel(replies),
        store=tmp_path / "team.db",
        embedder=HashingEmbedder(),
    ) as crystal:
        answer = crystal.ask(FIRST)
        assert crystal.correct(answer, DEAR, note=ONLY_DEAR).question == f"{FIRST} ({ONLY_DEAR})"
        with pytest.raises(ModelError):
            crystal.ask(THEN, follow=answer)


def test_a_confirmation_that_a_near_card_speaks_against_asks_first(given: Given) -> None:
    crystal, _ = given
    crystal.correct(crystal.ask("How many hardware items are there in all", "shop"), RIGHT)
    other = crystal.ask("How many hardware items are there in all now", "shop", memory=False)
    with pytest.raises(Contradicted, match="gives other rows for “How many hardware items are there in all"):
        crystal.confirm(other)
    assert crystal.answer(other.id).verdict == ""
    assert crystal.confirm(other, anyway=True).card


def test_to_forget_a_question_is_to_forget_how_it_was_asked(given: Given) -> None:
    crystal, _ = given
    then = crystal.ask(THEN, follow=crystal.ask(FIRST, "shop"))
    crystal.forget(question=THEN)
    kept = crystal.store.answers.get(then.id)
    assert (kept.question, kept.asked, kept.follows != "") == ("(forgotten)", "", True)
