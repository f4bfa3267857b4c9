"""The official MCP client: over streamable HTTP with a token, and over stdio as whoever is at the keyboard."""

import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters, stdio_client

from mcp_talk import talk
from running_service import ASKED, Service, serving
from shop import build
from sqlcrystal.interfaces.server.settings import ServerSettings

READING = {"list_databases", "schema", "ask", "run_sql", "search_cards", "list_definitions", "value"}


def test_an_answer_carries_sql_rows_and_cards_as_structured_content(service: Service) -> None:
    with service.client() as client:
        card = client.post(f"/api/answers/{service.ask()['id']}/confirm", json={}).json()["card"]
    tools, [answer] = talk(service, "ask", ("ask", {"question": ASKED, "database": "shop"}))
    assert tools == READING
    told = answer.structured_content
    assert (told["rows"], [used["id"] for used in told["cards"]]) == ([[2]], [card])
    assert "COUNT" in told["sql"]


def test_without_allow_write_a_client_is_refused_a_verdict(service: Service) -> None:
    _, [refused] = talk(service, "owner", ("confirm", {"answer_id": service.ask()["id"]}))
    assert refused.is_error
    assert service.crystal.cards("shop") == []


def test_with_allow_write_a_verdict_makes_a_card_if_the_token_may_judge(tmp_path: Path) -> None:
    with serving(tmp_path, settings=ServerSettings(allow_write=True)) as service:
        call = ("confirm", {"answer_id": service.ask()["id"]})
        _, [refused] = talk(service, "ask", call)
        assert refused.is_error
        assert "lacks the scope 'judge'" in refused.content[0].text
        tools, [ruling] = talk(service, "judge", call)
        assert tools == READING | {"confirm", "pick", "queue", "reject", "define"}
        assert [card.id for card in service.crystal.cards("shop")] == [ruling.structured_content["card"]]


def test_statements_that_write_are_refused_and_foreign_databases_are_not_there(service: Service) -> None:
    _, [refused, missing, other] = talk(
        service,
        "ask",
        ("run_sql", {"sql": "DELETE FROM item", "database": "shop"}),
        ("schema", {"database": "store"}),
        ("list_databases", {}),
    )
    assert refused.structured_content["error"].startswith("refused")
    assert missing.is_error
    assert [told["name"] for told in other.structured_content["result"]] == ["shop"]


@pytest.mark.parametrize("writes", [False, True])
def test_over_stdio_a_client_asks_and_judges_only_where_writes_are_allowed(tmp_path: Path, writes: bool) -> None:
    place = build(tmp_path / "shop.sqlite")
    command = ["-m", "sqlcrystal.interfaces.cli.app", "mcp", "--db", str(place), "--store", str(tmp_path / "s.db")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    server = StdioServerParameters(
        command=sys.executable, args=[*command, *(["--allow-write"] if writes else [])], env=environment, cwd=tmp_path
    )

    async def conversation() -> tuple[set[str], Any]:
        async with Client(stdio_client(server)) as client:
            tools = {tool.name for tool in (await client.list_tools()).tools}
            return tools, await client.call_tool("run_sql", {"sql": "SELECT COUNT(*) FROM item"})

    tools, rows = anyio.run(conversation)
    assert tools == READING | ({"confirm", "pick", "queue", "reject", "define"} if writes else set())
    assert rows.structured_content["rows"] == [[3]]
