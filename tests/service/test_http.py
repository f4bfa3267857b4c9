"""The service over HTTP: ask, judge, limits, stopping; on a real port."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from running_service import ASKED, SIBLING, Service, serving
from shop import RIGHT, fenced
from sqlcrystal.errors import ModelRefusedAccess
from sqlcrystal.interfaces.server.logs import JsonLines
from sqlcrystal.interfaces.server.settings import ServerSettings


def test_an_answer_is_confirmed_and_stands_in_its_siblings_prompt(service: Service) -> None:
    answer = service.ask()
    assert (answer["rows"], answer["memory"], answer["verdict"]) == ([[2]], None, "")
    with service.client() as client:
        ruling = client.post(f"/api/answers/{answer['id']}/confirm", json={}).json()
    assert ruling["verdict"] == "confirmed"
    assert [card["id"] for card in service.ask(SIBLING)["cards"]] == [ruling["card"]]


def test_a_stream_tells_every_step_in_order(service: Service) -> None:
    with service.client() as client:
        headers = {"Accept": "text/event-stream"}
        body = {"question": ASKED, "database": "shop"}
        with client.stream("POST", "/api/ask", json=body, headers=headers) as reply:
            lines = list(reply.iter_lines())
    kinds = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
    assert kinds == ["begun", "cards", "sql", "rows", "repaired", "done"]
    done = json.loads([line for line in lines if line.startswith("data: ")][-1].removeprefix("data: "))
    assert done["rows"] == [[2]]


def test_a_rejected_answer_gets_a_proposal_that_only_a_confirmation_banks(service: Service) -> None:
    answer = service.ask(SIBLING)
    with service.client() as client:
        assert client.post(f"/api/answers/{answer['id']}/reject", json={"repair": False}).json()["proposal"] is None
        assert client.get("/api/cards?database=shop").json() == []
        ruling = client.post(f"/api/answers/{answer['id']}/correct", json={"sql": RIGHT}).json()
        assert (ruling["verdict"], ruling["replaced"]) == ("corrected", [])
        undone = client.post(f"/api/answers/{answer['id']}/undo").json()
        assert (undone["verdict"], undone["card"]) == ("undone", ruling["card"])
        assert [card["status"] for card in client.get("/api/cards?database=shop").json()] == ["disabled"]


def test_an_undone_verdict_brings_back_the_card_it_had_replaced(service: Service) -> None:
    first, second = service.ask(), service.ask()
    with service.client() as client:
        kept = client.post(f"/api/answers/{first['id']}/confirm", json={}).json()["card"]
        other = client.post(f"/api/answers/{second['id']}/correct", json={"sql": "SELECT 2"}).json()
        assert other["replaced"] == [kept]
        assert client.post(f"/api/answers/{second['id']}/undo").json()["replaced"] == [kept]
        served = client.get("/api/cards?database=shop&status=active").json()
    assert [card["id"] for card in served] == [kept]


def test_who_waits_is_told_their_place_and_a_full_line_turns_away(tmp_path: Path) -> None:
    go_on = threading.Event()

    def slow(*_: object) -> str:
        go_on.wait(20)
        return fenced(RIGHT)

    limits = ServerSettings(concurrency=1, queue_size=1, requests_per_minute=100_000)
    with serving(tmp_path, settings=limits, script=slow) as service, ThreadPoolExecutor() as pool:
        first = pool.submit(service.ask)
        with service.client() as client:
            while not service.model.prompts:
                time.sleep(0.01)
            body = {"question": ASKED, "database": "shop"}
            headers = {"Accept": "text/event-stream"}
            with client.stream("POST", "/api/ask", json=body, headers=headers) as second:
                lines = second.iter_lines()
                seen = [line for _, line in zip(range(6), lines, strict=False)]
                assert 'data: {"ahead":1}' in seen
                refused = service.post("/api/ask", json=body)
                assert (refused.status_code, refused.headers["retry-after"]) == (503, "2")
                other = service.post("/api/run", json={"sql": "SELECT 1", "database": "store"})
                assert other.status_code == 200, "another database has a line of its own"
                go_on.set()
                assert any(line == "event: done" for line in lines)
        assert first.result()["rows"] == [[2]]


def test_a_stopped_question_ends_and_leaves_nothing_behind(tmp_path: Path) -> None:
    go_on = threading.Event()

    def slow(*_: object) -> str:
        go_on.wait(20)
        return fenced(RIGHT)

    with serving(tmp_path, script=slow) as service, service.client("ask") as client:
        body, headers = {"question": ASKED, "database": "shop"}, {"Accept": "text/event-stream"}
        with client.stream("POST", "/api/ask", json=body, headers=headers) as reply:
            lines = reply.iter_lines()
            ticket = json.loads(next(line for line in lines if line.startswith("data: ")).removeprefix("data: "))[
                "ticket"
            ]
            while not service.model.prompts:
                time.sleep(0.01)
            assert service.post(f"/api/asks/{ticket}/stop").status_code == 404, "somebody else's"
            assert service.post(f"/api/asks/{ticket}/stop", kind="ask").status_code == 204
            go_on.set()
            assert any("stopped by the caller" in line for line in lines)
        assert service.crystal.history("shop") == []


def test_an_answer_that_takes_too_long_is_given_up_and_its_place_freed_only_when_it_ends(tmp_path: Path) -> None:
    go_on = threading.Event()
    go_on.set()

    def slow(*_: object) -> str:
        go_on.wait(20)
        return fenced(RIGHT)

    limits = ServerSettings(concurrency=1, answer_seconds=0.3)
    with serving(tmp_path, settings=limits, script=slow) as service, service.client() as client:
        warm = {"question": "How many items are there?", "database": "shop"}  # the first answers load what they need
        assert any(client.post("/api/ask", json=warm).status_code == 200 for _ in range(50))
        go_on.clear()
        late = client.post("/api/ask", json={"question": ASKED, "database": "shop"})
        assert (late.status_code, "given up" in late.text) == (504, True)
        client.get("/api/databases")
        assert 'sqlcrystal_answers_running{database="shop"} 1.0' in client.get("/metrics").text
        go_on.set()


def test_too_many_requests_and_too_large_bodies_are_refused(tmp_path: Path) -> None:
    limits = ServerSettings(requests_per_minute=12, body_bytes=2048)
    with serving(tmp_path, settings=limits) as service, service.client("ask") as client:
        assert client.post("/api/run", json={"sql": "x" * 5000, "database": "shop"}).status_code == 413
        assert client.post(
            "/api/run", content=iter([b"x" * 3000]), headers={"Content-Type": "application/json"}
        ).status_code in {413, 400}
        late = client.get("/api/databases")
        assert late.status_code == 429
        assert int(late.headers["retry-after"]) >= 1


def test_a_stopping_server_finishes_the_answer_under_way(tmp_path: Path) -> None:
    def slow(*_: object) -> str:
        time.sleep(1)
        return fenced(RIGHT)

    with ThreadPoolExecutor() as pool:
        with serving(tmp_path, script=slow) as service:
            asked = pool.submit(service.ask)
            while not service.model.prompts:
                time.sleep(0.01)
        assert asked.result()["rows"] == [[2]]


def test_an_error_over_http_names_the_choices_and_no_flag_or_command(tmp_path: Path) -> None:
    def refused(_: object, __: object) -> str:
        raise ModelRefusedAccess("http://127.0.0.1:1: HTTP 401 (no key was sent)").hinting("name it with --api-key-env")

    with serving(tmp_path, script=refused) as running, running.client() as client, running.client("manage") as manager:
        token = {"person": "owner", "databases": ["shop"], "scopes": ["ask"]}
        told = [
            client.post("/api/ask", json={"question": ASKED}),
            client.post("/api/ask", json={"question": ASKED, "database": "shop"}),
            manager.post("/api/tokens", json=token),
            client.get("/api/answers/none"),
        ]
    assert [reply.status_code for reply in told] == [422, 502, 403, 404]
    assert "shop, store" in told[0].json()["detail"]
    assert [reply.text for reply in told if "--" in reply.text or "sqlcrystal " in reply.text] == []


def test_a_confirmation_needs_no_body_and_a_question_no_database_where_one_is_meant(service: Service) -> None:
    with service.client("judge") as client:
        asked = client.post("/api/ask", json={"question": ASKED}).json()
        ruling = client.post(f"/api/answers/{asked['id']}/confirm")
    assert asked["database"] == "shop"
    assert ruling.status_code == 200
    assert [card.id for card in service.crystal.cards("shop")] == [ruling.json()["card"]]


def test_a_token_for_an_unknown_database_is_refused_with_the_known_ones(service: Service) -> None:
    before = len(service.crystal.tokens())
    with service.client() as client:
        reply = client.post("/api/tokens", json={"person": "eve", "databases": ["shoop"], "scopes": ["ask"]})
    assert reply.status_code == 422
    assert "shoop" in reply.json()["detail"]
    assert "shop, store" in reply.json()["detail"]
    assert len(service.crystal.tokens()) == before


def test_logs_hold_no_question_value_or_token(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", logger="sqlcrystal.server")
    service.ask("How many items cost 424242?")
    with service.client() as client:
        client.get("/api/cards", params={"near": "secret 424242"})
    lines = "\n".join(JsonLines().format(record) for record in caplog.records)
    assert '"route": "/api/ask"' in lines
    assert "424242" not in lines
    assert not any(token in lines for token in service.tokens.values())


def test_the_page_and_the_command_show_the_same_figures(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    from html import unescape

    from sqlcrystal.interfaces.cli.value import value
    from sqlcrystal.serving.value import figures

    answer = service.ask()
    service.post(f"/api/answers/{answer['id']}/confirm", json={})
    value(store=service.crystal.workspace.team.store)
    command = " ".join(capsys.readouterr().out.split())
    with service.client() as client:
        page = unescape(client.get("/value?database=shop").text)
    (measured,) = service.crystal.value("shop")
    for figure in figures(measured):
        assert all(words in command for words in (figure.name, figure.figure, figure.words)), command
        is_known = figure.figure != "not known yet"
        on_page = (figure.name, figure.figure, figure.words) if is_known else (figure.name.lower(),)
        assert all(words in page for words in on_page)


def test_no_page_shows_a_thing_of_the_machine_and_all_count_what_waits(service: Service) -> None:
    answer = service.ask()
    card = service.crystal.confirm(service.ask(SIBLING)["id"], by="ada").card
    with service.client() as client:
        for path in ("/", f"/a/{answer['id']}", "/queue", "/bank", f"/bank/{card}", "/value", "/studies", "/settings"):
            text = client.get(path, params={"database": "shop"}, follow_redirects=True).text
            assert "object at 0x" not in text
            assert "None" not in text, path
            assert '<span class="count">1</span>' in text, path
