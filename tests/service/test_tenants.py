"""Two tenants with look-alike databases and questions: nothing of one appears for the other, by any door."""

from typing import Any

import openai
import pytest

from mcp_talk import talk
from running_service import ASKED, SIBLING, Service

SECRET = "How many hardware items does tenant one keep in the vault?"


@pytest.fixture
def told(service: Service) -> dict[str, Any]:
    """What tenant one asked and confirmed."""
    answer = service.ask(SECRET, kind="manage")
    with service.client("manage") as client:
        ruling = client.post(f"/api/answers/{answer['id']}/confirm", json={"note": "vault"}).json()
    return {**answer, "card": ruling["card"]}


def test_over_http_the_other_tenant_sees_neither_answer_nor_card(service: Service, told: dict[str, Any]) -> None:
    with service.client("other") as client:
        for path in (f"/api/answers/{told['id']}", f"/api/cards/{told['card']}", f"/api/cards/{told['card'][:8]}"):
            assert client.get(path).status_code == 404
        for path in ("/api/answers", "/api/cards", "/api/queue", "/api/databases", "/api/tokens", "/openapi.json"):
            assert "vault" not in client.get(path).text
        assert client.get("/api/cards", params={"near": SECRET}).json() == []
        assert client.get("/api/cards", params={"database": "shop"}).status_code == 404
    assert service.ask(SECRET, database="store", kind="other")["cards"] == []


def test_a_guess_at_the_start_of_an_id_tells_nothing(service: Service, told: dict[str, Any]) -> None:
    with service.client("other") as client:
        for guess in (told["id"][:length] for length in range(1, 12)):
            assert client.get(f"/api/answers/{guess}").json() == {"detail": f"no answer '{guess}' here, or not for you"}


def test_over_mcp_the_other_tenant_sees_nothing(service: Service, told: dict[str, Any]) -> None:
    _, replies = talk(
        service,
        "other",
        ("search_cards", {"text": SECRET}),
        ("search_cards", {"text": SECRET, "database": "shop"}),
        ("list_databases", {}),
        ("ask", {"question": SIBLING}),
    )
    assert "vault" not in str([reply.structured_content for reply in replies])
    assert replies[1].is_error
    assert replies[3].structured_content["cards"] == []


def test_through_the_chat_door_the_other_tenant_sees_nothing(service: Service, told: dict[str, Any]) -> None:
    with openai.OpenAI(base_url=f"{service.url}/v1", api_key=service.tokens["other"], max_retries=0) as client:
        assert [model.id for model in client.models.list()] == ["store"]
        reply = client.chat.completions.create(model="store", messages=[{"role": "user", "content": ASKED}])
    assert "no cards used" in (reply.choices[0].message.content or "")


def test_on_the_page_the_other_tenant_sees_nothing(service: Service, told: dict[str, Any]) -> None:
    with service.client("other") as client:
        client.headers["Accept"] = "text/html"
        for path in ("/", "/queue", "/bank", "/value", "/settings", f"/bank?database=shop&search={told['card']}"):
            page = client.get(path)
            assert page.status_code == 200
            assert "vault" not in page.text
            assert told["card"] not in page.text.replace(f'value="{told["card"]}"', "")
        for path in (
            f"/a/{told['id']}",
            f"/bank/{told['card']}",
            f"/a/{told['id']}/rows.csv",
            "/bank/export?database=shop",
        ):
            assert client.get(path).status_code == 404


def test_whether_an_answer_was_held_out_is_told_after_the_verdict_only(service: Service) -> None:
    with service.client("judge") as client:
        body = {"question": ASKED, "database": "shop", "memory": False}
        answer = client.post("/api/ask", json=body).json()
        assert (answer["memory"], answer["cards"]) == (None, [])
        page = client.get(f"/a/{answer['id']}", headers={"Accept": "text/html"}).text
        assert "without cards" not in page
        client.post(f"/api/answers/{answer['id']}/confirm", json={})
        assert client.get(f"/api/answers/{answer['id']}").json()["memory"] is False
        assert "without cards" in client.get(f"/a/{answer['id']}", headers={"Accept": "text/html"}).text
