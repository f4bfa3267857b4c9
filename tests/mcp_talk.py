"""A conversation with the service by the official MCP client."""

from typing import Any

import anyio
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from running_service import Service


def talk(service: Service, kind: str, *calls: tuple[str, dict[str, Any]]) -> tuple[set[str], list[Any]]:
    """The names of the tools, and what each call gave."""

    async def conversation() -> tuple[set[str], list[Any]]:
        headers = {"Authorization": f"Bearer {service.tokens[kind]}"}
        async with (
            create_mcp_http_client(headers=headers) as http,
            Client(streamable_http_client(f"{service.url}/mcp", http_client=http)) as client,
        ):
            tools = {tool.name for tool in (await client.list_tools()).tools}
            return tools, [await client.call_tool(name, arguments) for name, arguments in calls]

    return anyio.run(conversation)
