"""What made the service fail: statements and names that it should have answered, and tokens it should not have made."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cardbox import HashingEmbedder
from running_service import Service, listening, serving
from serving_commands import run_command
from shop import build, fenced
from sqlcrystal.bank import Scope
from sqlcrystal.config import DatabaseEntry, TeamFile
from sqlcrystal.interfaces.server.app import make_app
from sqlcrystal.interfaces.server.conversations import plain
from sqlcrystal.interfaces.server.gate import HEADERS
from sqlcrystal.interfaces.server.settings import ServerSettings
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.serving import Crystal

DOTS = "SELECT " + ".".join(["a"] * 1500) + " FROM item"
PAGE = {"Accept": "text/html", "Sec-Fetch-Site": "same-origin"}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("service"), script=lambda *_: fenced(DOTS)) as service:
        yield service


def test_a_statement_with_1500_dots_is_an_answer_that_does_not_run(running: Service) -> None:
    with running.client() as client:
        assert client.post("/api/run", json={"sql": DOTS, "database": "shop"}).json()["error"]
        answer = client.post("/api/ask", json={"question": "How many dots?", "database": "shop"})
        assert (answer.status_code, bool(answer.json()["error"])) == (200, True)
        assert client.get(f"/a/{answer.json()['id']}", headers=PAGE).status_code == 200
        assert client.get("/queue", headers=PAGE).status_code == 200


def test_a_page_over_a_database_of_any_name_is_shown(tmp_path: Path) -> None:
    entry = DatabaseEntry(url=str(build(tmp_path / "shop.sqlite")))
    team = TeamFile(databases={"日本": entry, "a b;c": entry}, store=str(tmp_path / "team.db"))
    with Crystal(team, model=ScriptedModel(lambda *_: fenced("SELECT 1")), embedder=HashingEmbedder()) as crystal:
        token, _ = crystal.store.tokens.issue("ana", [("*", scope) for scope in Scope], by="test")
        with listening(make_app(crystal)) as url:
            service = Service(url, crystal, {"owner": token}, ScriptedModel(lambda *_: ""))
            with service.client() as client:
                client.headers.update(PAGE)
                for name in ("日本", "a b;c"):
                    assert client.get("/", params={"database": name}).status_code == 200
                    shown = client.get("/")  # the cookie remembers it
                    assert (shown.status_code, name in shown.text) == (200, True)
                    for path in ("/queue", "/bank", "/value", "/settings"):
                        assert client.get(path, params={"database": name}).status_code == 200, path
                form = {"question": "How many?", "database": "日本"}
                assert client.post("/ask", data=form).status_code == 303


def test_a_reply_of_500_carries_the_headers_that_every_reply_has(
    running: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(running.crystal, "databases", broken)
    with running.client() as client:
        for path, accept in (("/api/databases", "application/json"), ("/settings", "text/html")):
            reply = client.get(path, headers={"Accept": accept})
            assert reply.status_code == 500
            assert "a bug" not in reply.text
            assert {name for name in (*HEADERS, "Content-Security-Policy") if name not in reply.headers} == set()


# ── tokens ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_door_that_makes_a_token_can_say_when_it_ends(running: Service) -> None:
    body = {"person": "new one", "databases": ["shop"], "scopes": ["ask"], "days": 2}
    made = running.post("/api/tokens", json=body).json()
    assert made["ends_at"] > made["made_at"]
    form = {"person": "newer one", "on": "shop", "scope": "ask", "days": "0.000001"}
    page = running.post("/settings/tokens", data=form, headers=PAGE)
    token = re.search(r"sqlc_[\w-]{20,}", page.text)
    assert token is not None
    with running.client("") as client:
        assert client.get("/api/databases", headers={"Authorization": f"Bearer {token[0]}"}).status_code == 401


def test_a_token_of_the_command_line_ends_when_it_was_told_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "team.db"
    with Crystal.over(build(tmp_path / "shop.sqlite"), store=str(store)) as crystal:
        crystal.workspace.remember(crystal.workspace.open("shop"))
    made = ("token", "create", "bo", "--db", "shop", "--store", store, "--json", "--days")
    for days, stands in (("0.0000001", False), ("2", True)):
        issued = run_command(capsys, monkeypatch, *made, days).document
        with Crystal.over(tmp_path / "shop.sqlite", store=str(store)) as crystal:
            assert (crystal.recognise(issued["token"]) is not None) is stands
    assert run_command(capsys, monkeypatch, *made, "-1").code == 2


@pytest.mark.parametrize("days", [0, -1, 4000])
def test_a_token_ends_within_ten_years_or_not_at_all(running: Service, days: float) -> None:
    body = {"person": "another", "databases": ["shop"], "scopes": ["ask"], "days": days}
    assert running.post("/api/tokens", json=body).status_code == 422


@pytest.mark.parametrize("person", ["judge", "JUDGE ", "ｊｕｄｇｅ"])
def test_a_manager_makes_no_token_in_the_name_of_somebody_who_has_one(running: Service, person: str) -> None:
    body = {"person": person, "databases": ["shop"], "scopes": ["judge"]}
    assert running.post("/api/tokens", kind="manage", json=body).status_code == 403
    form = {"person": person, "on": "shop", "scope": "judge"}
    assert running.post("/settings/tokens", kind="manage", data=form, headers=PAGE).status_code == 403


def test_a_manager_makes_tokens_for_themself_and_for_people_who_are_new(running: Service) -> None:
    for person in ("manage", "a newcomer"):
        body = {"person": person, "databases": ["shop"], "scopes": ["judge"]}
        assert running.post("/api/tokens", kind="manage", json=body).status_code == 201


def test_a_server_that_was_told_so_lets_managers_issue_for_others(tmp_path: Path) -> None:
    with serving(tmp_path, settings=ServerSettings(issue_for_others=True)) as service:
        body = {"person": "judge", "databases": ["shop"], "scopes": ["judge"]}
        assert service.post("/api/tokens", kind="manage", json=body).status_code == 201


# ── what leaves ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", ["/queue/", "/api/answers/", "/v1/models/"])
def test_no_redirect_goes_where_the_host_of_a_request_says(running: Service, path: str) -> None:
    with running.client() as client:
        reply = client.get(path, headers={"Host": "evil.example"})
        assert "evil.example" not in reply.headers.get("location", "")


@pytest.mark.parametrize("text", ["www.evil.example", "https://evil.example", "evil.example/x", "a@evil.example"])
def test_markdown_for_chat_clients_shows_an_address_as_code(text: str) -> None:
    assert plain(text) == f"` {text} `"


def test_markdown_for_chat_clients_shows_numbers_and_words_as_they_are() -> None:
    assert (plain(3.5), plain("Ada Lovelace"), plain("a|b.c")) == ("3.5", "Ada Lovelace", "` a\\|b.c `")
