"""The service over HTTP: ask, judge, limits, stopping; on a real port."""

import json

from running_service import ASKED, SIBLING, Service


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
