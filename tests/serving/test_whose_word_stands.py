"""A person's word on a question stands against rules and checks, and one question has one active card."""

import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cardbox import HashingEmbedder
from cardbox import card as new_card
from running_service import serving
from shop import RIGHT, WRONG, build, fenced
from sqlcrystal import Crystal
from sqlcrystal.bank import Entry, Verdict, export_jsonl, import_entries, import_jsonl
from sqlcrystal.config import AssertionEntry, DatabaseEntry, TeamFile
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.types import CardStatus

ASKED = "How many hardware items are there?"
ANY_ROW = AssertionEntry(name="any row", sql="SELECT * FROM {answer}", expect="rows")
Reply = list[str]


@pytest.fixture
def reply() -> Reply:
    """The SQL that the model writes, which tests change as they go."""
    return [WRONG]


@pytest.fixture
def crystal(tmp_path: Path, reply: Reply) -> Iterator[Crystal]:
    entry = DatabaseEntry(url=str(build(tmp_path / "shop.sqlite")), assertion=(ANY_ROW,))
    team = TeamFile(databases={"shop": entry}, store=str(tmp_path / "team.db"), budget=0)
    with Crystal(team, model=ScriptedModel(lambda *_: fenced(reply[0])), embedder=HashingEmbedder()) as opened:
        yield opened


def active(crystal: Crystal) -> list[tuple[str, str]]:
    return [(card.sql, card.admission.by) for card in crystal.cards(status=CardStatus.ACTIVE)]


def corrected(crystal: Crystal) -> str:
    """Ask, and let Ada correct what the rule let through."""
    return crystal.correct(crystal.ask(ASKED, by="eve"), RIGHT, by="ada").card


def test_an_ask_without_memory_does_not_replace_what_a_person_corrected(crystal: Crystal) -> None:
    corrected(crystal)
    again = crystal.ask(ASKED, by="eve", memory=False)
    assert again.card == ""
    assert "of ada stands" in again.checked
    assert active(crystal) == [(RIGHT, "ada")]
    assert crystal.store.answers.verdict(again.id) == ""


@pytest.mark.parametrize("kind", ["an assertion", "a check"])
def test_a_token_that_may_only_ask_replaces_no_card_of_a_judge(tmp_path: Path, kind: str) -> None:
    accepting = tmp_path / "accept.py"
    accepting.write_text("""import sys; sys.stdin.read(); print('{"accept": true, "by": "any row"}')""")
    rules: dict[str, dict[str, Any]] = {
        "an assertion": {"assertion": (ANY_ROW,)},
        "a check": {"check": f"{sys.executable} {accepting}"},
    }
    with serving(tmp_path, script=lambda *_: fenced(WRONG), **rules[kind]) as service:
        first = service.ask(ASKED, kind="ask")
        assert active(service.crystal) == [(WRONG, "any row")]
        judged = service.post(f"/api/answers/{first['id']}/correct", kind="judge", json={"sql": RIGHT})
        assert judged.status_code == 200
        body = {"question": ASKED, "database": "shop", "memory": False}
        assert service.post("/api/ask", kind="ask", json=body).status_code == 200
        assert active(service.crystal) == [(RIGHT, "judge")]


def test_the_same_answer_again_leaves_a_persons_card_theirs(crystal: Crystal, reply: Reply) -> None:
    card = corrected(crystal)
    reply[0] = RIGHT
    assert crystal.ask(ASKED, by="eve", memory=False).card == card
    assert active(crystal) == [(RIGHT, "ada")]


def test_a_card_that_a_person_edited_is_not_replaced_by_a_rule(crystal: Crystal) -> None:
    crystal.edit(crystal.ask(ASKED, by="eve").card, by="ada", sql=RIGHT)
    crystal.ask(ASKED, by="eve", memory=False)
    assert active(crystal) == [(RIGHT, "ada")]


@pytest.mark.parametrize(
    "against",
    [
        lambda crystal, answer: crystal.reject(answer, by="ada", repair=False),
        lambda crystal, answer: crystal.disable([answer.card], by="ada"),
        lambda crystal, answer: crystal.revoke(revoked_by="ada", signal="assertion"),
    ],
    ids=["rejected", "disabled", "revoked"],
)
def test_a_rule_does_not_bring_back_what_a_person_took_out(
    crystal: Crystal, against: Callable[[Crystal, object], object]
) -> None:
    against(crystal, crystal.ask(ASKED, by="eve"))
    assert crystal.ask(ASKED, by="eve", memory=False).card == ""
    assert active(crystal) == []


def test_a_rule_makes_no_card_of_sql_that_a_person_rejected_before(crystal: Crystal, tmp_path: Path) -> None:
    plain = DatabaseEntry(url=str(tmp_path / "shop.sqlite"))
    team = TeamFile(databases={"shop": plain}, store=str(tmp_path / "team.db"), budget=0)
    with Crystal(team, model=crystal.workspace.model, embedder=HashingEmbedder()) as before:
        before.reject(before.ask(ASKED, by="eve"), by="ada", repair=False)
    assert "it is wrong" in crystal.ask(ASKED, by="eve", memory=False).checked
    assert active(crystal) == []


def test_among_rules_the_last_word_still_counts(crystal: Crystal, reply: Reply) -> None:
    for sql in (WRONG, RIGHT, WRONG):
        reply[0] = sql
        crystal.ask(ASKED, by="eve", memory=False)
        assert active(crystal) == [(sql, "any row")]


def test_a_person_who_confirms_takes_over_a_rules_card_and_that_is_recorded(crystal: Crystal) -> None:
    answer = crystal.ask(ASKED, by="eve")
    ruling = crystal.confirm(answer, by="ada")
    entry = crystal.card(answer.card)
    assert (ruling.new, ruling.card, entry.card.admission.signal, entry.card.admission.by) == (
        True,
        answer.card,
        "user",
        "ada",
    )
    assert [(change.action, change.before, change.after, change.by) for change in entry.history] == [
        ("admission", "assertion by any row", "user by ada", "ada")
    ]
    decisions = crystal.store.decisions.all(answer=answer.id)
    assert [(decision.signal, decision.verdict) for decision in decisions] == [
        ("assertion", Verdict.CONFIRMED),
        ("user", Verdict.CONFIRMED),
    ]
    assert crystal.revoke(revoked_by="bob", signal="assertion").revoked == ()


def test_a_second_person_who_confirms_changes_nothing(crystal: Crystal) -> None:
    answer = crystal.ask(ASKED, by="eve")
    crystal.confirm(answer, by="ada")
    assert not crystal.confirm(answer, by="bob").new
    assert active(crystal) == [(WRONG, "ada")]


# ── one question has one active card ─────────────────────────────────────────────────────────────────────────────────


def test_a_card_that_is_enabled_takes_the_place_of_the_active_one(crystal: Crystal) -> None:
    old = crystal.ask(ASKED, by="eve").card
    corrected(crystal)
    crystal.enable([old], by="bob")
    assert active(crystal) == [(WRONG, "any row")]


def test_an_imported_card_comes_in_disabled_where_its_question_is_answered(crystal: Crystal) -> None:
    corrected(crystal)
    other = new_card(7, text=ASKED.upper(), sql="SELECT 7", signal="user", by="mallory")
    import_entries(crystal.store.bank, [Entry(card=other)])
    assert active(crystal) == [(RIGHT, "ada")]
    assert crystal.card(other.id).history[-1].reason.startswith("its question has card")


def test_of_two_imported_cards_of_one_question_the_first_is_active(crystal: Crystal) -> None:
    cards = [new_card(number, text=ASKED, sql=f"SELECT {number}") for number in (1, 2)]
    import_entries(crystal.store.bank, [Entry(card=card) for card in cards])
    assert [card.id for card in crystal.cards(status=CardStatus.ACTIVE)] == [cards[0].id]


def test_an_export_that_is_imported_again_changes_nothing(crystal: Crystal) -> None:
    corrected(crystal)
    first, second = io.BytesIO(), io.BytesIO()
    export_jsonl(crystal.store.bank, first)
    import_jsonl(crystal.store.bank, io.BytesIO(first.getvalue()))
    export_jsonl(crystal.store.bank, second)
    assert first.getvalue() == second.getvalue()


def test_a_check_that_releases_leaves_the_card_alone_that_came_meanwhile(crystal: Crystal) -> None:
    old = crystal.ask(ASKED, by="eve").card
    corrected(crystal)
    crystal.store.bank.set_status(old, CardStatus.QUARANTINED, by="cards check")
    assert crystal.check(release=True).releasable == (old,)
    assert active(crystal) == [(RIGHT, "ada")]


def test_an_older_verdict_that_is_undone_brings_nothing_back_beside_a_newer_card(
    crystal: Crystal, reply: Reply
) -> None:
    crystal.ask(ASKED, by="eve")
    reply[0] = "SELECT 2"
    second = crystal.ask(ASKED, by="eve", memory=False)
    crystal.confirm(second, by="ada")
    crystal.correct(crystal.ask(ASKED, by="eve", memory=False), RIGHT, by="bob")
    crystal.undo(second, by="ada")
    assert active(crystal) == [(RIGHT, "bob")]
