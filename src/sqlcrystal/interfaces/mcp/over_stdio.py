"""MCP over standard input and output, for a client that starts this process and acts for the person at the keyboard."""

import asyncio
from typing import TYPE_CHECKING

from sqlcrystal.interfaces.mcp.tools import make_server
from sqlcrystal.interfaces.server.settings import ServerSettings
from sqlcrystal.interfaces.server.work import Work
from sqlcrystal.serving.callers import Caller

if TYPE_CHECKING:
    from sqlcrystal.serving import Crystal


def serve_stdio(crystal: "Crystal", *, allow_write: bool) -> None:
    """Serve one client until it closes its end."""
    # The client is a model: unlike the person it may not name files, other people or parts of an id.
    door = crystal.acting_for(Caller(person=crystal.caller.person, is_model=True))
    work = Work(crystal, ServerSettings())
    server = make_server(work, lambda _: door, allow_write=allow_write)

    async def serve() -> None:
        try:
            await server.run_stdio_async()
        finally:
            await work.drain()

    asyncio.run(serve())
