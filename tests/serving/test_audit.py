"""The audit: chance chooses what must be judged, and every door says so until somebody has judged it."""

import json
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardbox import HashingEmbedder
from mcp_talk import talk
from running_service import ASKED, Service, serving
from shop import RIGHT, build, fenced
from sqlcrystal import Crystal
from sqlcrystal.config import DatabaseEntry, TeamFile
from sqlcrystal.interfaces.cli.ask import answer_lines, queue
from sqlcrystal.interfaces.cli.loop import Loop
from sqlcrystal.interfaces.cli.value import value
from sqlcrystal.interfaces.server.settings import ServerSettings
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.serving.asking import audited, held_out

DAY = "2026-03-01"


def team(folder: Path, **settings: Any) -> Crystal:
    entry = DatabaseEntry(url=str(build(folder / "shop.sqlite")), **settings)
    shop = TeamFile(databases={"shop": entry}, store=str(folder / "team.db"), budget=0)
    return Crystal(shop, model=ScriptedModel(lambda *_: fenced(RIGHT)), embedder=HashingEmbedder())


def draws(crystal: Crystal, *questions: str) -> list[bool]:
    return [crystal.ask(question).audit for question in questions]


# ── who is chosen ────────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.text(max_size=30), st.floats(0, 1), st.floats(0, 1))
def test_a_larger_audit_holds_whatever_a_smaller_one_does(question: str, first: float, second: float) -> None:
    small, large = (
        audited(seed=1, database="shop", question=question, day=DAY, share=share) for share in sorted((first, second))
    )
    assert large or not small


def test_the_draw_is_met_over_questions_whatever_their_arm_and_again_the_same() -> None:
    def drawn(draw: Any, share: float, seed: int = 0) -> list[bool]:
        return [draw(seed=seed, database="d", question=f"q {n}", day=DAY, share=share) for n in range(4_000)]

    chosen, without = drawn(audited, 0.2), drawn(held_out, 0.5)
    assert chosen == drawn(audited, 0.2)
    assert chosen != drawn(audited, 0.2, seed=1)
    assert sum(chosen) == pytest.approx(800, abs=100)
    assert sum(a and b for a, b in zip(chosen, without, strict=True)) == pytest.approx(400, abs=75)


def test_of_a_days_answers_to_a_question_the_first_is_chosen_and_no_hidden_one(tmp_path: Path) -> None:
    with team(tmp_path, hold_out=0.5, both_arms=True, audit=1.0) as crystal:
        assert draws(crystal, ASKED, f"  {ASKED.upper()}", "Another?") == [True, False, True]
        records = crystal.store.answers.recent(database="shop")
        hidden = [crystal.store.answers.get(kept.id) for kept in records if kept.twin_of]
        assert not any(twin.audit for twin in hidden)


def test_of_answers_whose_arm_somebody_chose_none_is_audited(tmp_path: Path) -> None:
    with team(tmp_path, hold_out=0.5, audit=1.0) as crystal:
        assert not crystal.ask(ASKED, memory=True).audit
        assert crystal.ask(ASKED).audit


def test_where_values_are_never_kept_one_masked_question_is_chosen_once_a_day(tmp_path: Path) -> None:
    with team(tmp_path, hold_out=0.5, audit=1.0, values="never") as crystal:
        draws(crystal, "How many items cost 17?", "How many items cost 18?")
        assert sum(waiting.audit for waiting in crystal.queue("shop")) == 1
        assert all(kept.trouble is None for kept in crystal.store.answers.recent(database="shop"))


# ── until it is judged ───────────────────────────────────────────────────────────────────────────────────────────────


def test_what_chance_chose_stands_first_and_leaves_by_a_verdict_alone(tmp_path: Path) -> None:
    with team(tmp_path, hold_out=0.5, audit=1.0) as crystal:
        for _ in range(3):
            crystal.ask("Often asked?", memory=True)
        chosen = crystal.ask(ASKED)
        crystal.ask(ASKED)  # a later answer to the same question does not take its place
        assert [waiting.id for waiting in crystal.queue("shop", limit=1)] == [chosen.id]
        crystal.confirm(chosen, by="ada")
        assert not any(waiting.audit for waiting in crystal.queue("shop"))
        crystal.undo(chosen, by="ada")
        assert crystal.queue("shop")[0].id == chosen.id


def test_a_forgotten_answer_waits_for_nobody_and_still_counts_as_not_judged(tmp_path: Path) -> None:
    with team(tmp_path, hold_out=0.5, audit=1.0) as crystal:
        crystal.ask(ASKED)
        crystal.forget(question=ASKED)
        assert not any(waiting.audit for waiting in crystal.queue("shop"))
        (report,) = crystal.value("shop")
        assert report.audit is not None
        assert (report.audit.drawn, report.audit.judged) == (1, 0)


def test_an_answer_that_failed_or_holds_nothing_is_kept_as_one_with_a_sign_of_trouble(tmp_path: Path) -> None:
    replies = {"empty": "SELECT name FROM item WHERE 1 = 0", "broken": "SELECT no_such FROM item", "sound": RIGHT}
    entry = DatabaseEntry(url=str(build(tmp_path / "shop.sqlite")), hold_out=0.5)
    settings = TeamFile(databases={"shop": entry}, store=str(tmp_path / "team.db"), budget=0)
    model = ScriptedModel(lambda messages, _: fenced(next(sql for w, sql in replies.items() if w in str(messages))))
    with Crystal(settings, model=model, embedder=HashingEmbedder()) as crystal:
        signs = {word: crystal.store.answers.get(crystal.ask(f"{word}?").id).trouble for word in replies}
    assert signs == {"empty": True, "broken": True, "sound": False}


# ── in every door ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    settings = ServerSettings(requests_per_minute=1_000_000, allow_write=True)
    folder = tmp_path_factory.mktemp("audited")
    with serving(folder, settings=settings, hold_out=0.5, audit=1.0) as running:
        running.ask()
        yield running


def chosen_answer(service: Service) -> str:
    (waiting,) = service.crystal.queue("shop")
    assert waiting.audit
    return waiting.id


def test_every_door_gives_one_document_of_what_waits(
    service: Service, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(service.crystal.workspace.team.store).parent
    (folder / "sqlcrystal.toml").write_text(f"[databases.shop]\nurl = {json.dumps(str(folder / 'shop.sqlite'))}\n")
    monkeypatch.chdir(folder)  # where the command finds the database, whose schema the words are made with
    with service.client("judge") as client:
        over_http = client.get("/api/queue", params={"database": "shop"}).json()
    _, [tool] = talk(service, "judge", ("queue", {"database": "shop"}))
    queue(db=None, limit=50, store=service.crystal.workspace.team.store, json=True)
    by_command = json.loads(capsys.readouterr().out)
    assert over_http == by_command == tool.structured_content["result"]
    (waiting,) = over_http
    assert waiting["words"] == "Counts items whose kind is 'HW'."


def test_where_values_stay_a_model_is_told_what_waits_as_people_are_with_every_value_masked(tmp_path: Path) -> None:
    settings = ServerSettings(requests_per_minute=1_000_000, allow_write=True)
    with serving(tmp_path, settings=settings, hold_out=0.5, audit=1.0, values="never") as service:
        service.ask()
        with service.client("judge") as client:
            over_http = client.get("/api/queue", params={"database": "shop"}).json()
        _, [tool] = talk(service, "judge", ("queue", {"database": "shop"}))
    assert over_http == tool.structured_content["result"]
    (waiting,) = over_http
    assert waiting["sql"] == "SELECT COUNT(*) FROM item WHERE kind = '«1»'"
    assert waiting["words"] == "Counts items whose kind is '«1»'."


def test_every_door_gives_one_document_of_the_value(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    with service.client("ask") as client:
        over_http = client.get("/api/value", params={"database": "shop", "effect": 3}).json()
        assert client.get("/api/value", params={"since": "soon"}).status_code == 422
    _, [tool] = talk(service, "ask", ("value", {"database": "shop", "effect": 3}))
    value(effect=3, store=service.crystal.workspace.team.store, json=True)
    by_command = json.loads(capsys.readouterr().out)
    assert over_http == by_command == tool.structured_content["result"]
    (told,) = over_http
    assert (told["effect_pp"], told["audit"]["drawn"], told["audit"]["judged"]) == (3, 1, 0)


def test_people_are_told_in_the_queue_with_the_answer_and_with_the_value(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    store = service.crystal.workspace.team.store
    queue(store=store)
    assert "1 chosen by chance for the audit: judge all of them" in capsys.readouterr().out
    (line,) = Loop(service.crystal).queue("")
    assert "judge it: chosen for the audit" in line
    given = service.crystal.answer(chosen_answer(service))
    assert "chosen by chance for the audit: it must be judged, whatever it says" in list(answer_lines(given))
    value(store=store)
    assert "1 of 1 answers that chance chose to be judged still wait" in " ".join(capsys.readouterr().out.split())
    with service.client() as client:
        chat = {"model": "shop", "messages": [{"role": "user", "content": "Chat: how many?"}]}
        content = client.post("/v1/chat/completions", json=chat).json()["choices"][0]["message"]["content"]
        assert "Chance chose this answer to be judged" in content
        service.post(f"/api/answers/{service.crystal.queue('shop')[-1].id}/confirm", json={})
        page = unescape(client.get("/queue", params={"database": "shop", "reason": "often", "order": "newest"}).text)
        assert "1 answer chosen by chance for the audit" in page  # hidden by no filter
        assert "Why here: chosen by chance: it must be judged; asked once" in page
        assert "chosen by chance: must be judged" in page
        assert "still wait: they stand first in the queue" in client.get("/value?database=shop").text
