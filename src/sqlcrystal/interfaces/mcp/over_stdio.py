"""MCP over standard input and output, for a client that starts this process: it acts for the person at the keyboard."""

import asyncio
from typing import TYPE_CHECKING

from sqlcrystal.bank import Grant, Scope
from sqlcrystal.bank.records import EVERY_DATABASE
from sqlcrystal.interfaces.mcp.tools import make_server
from sqlcrystal.interfaces.server.access import Caller
from sqlcrystal.interfaces.server.metrics import Metrics
from sqlcrystal.interfaces.server.settings import ServerSettings
from sqlcrystal.interfaces.server.work import Work

if TYPE_CHECKING:
    from sqlcrystal.serving import Crystal


def serve_stdio(crystal: "Crystal", *, person: str, allow_write: bool) -> None:
    """Serve one client until it closes its end."""
    everything = frozenset((EVERY_DATABASE, scope) for scope in Scope)
    owner = Caller(Grant(id="local", person=person, scopes=everything, made_at="", made_by=person))
    work = Work(crystal, ServerSettings(), Metrics())
    server = make_server(work, lambda _: owner, allow_write=allow_write)

    async def serve() -> None:
        try:
            await server.run_stdio_async()
        finally:
            await work.drain()

    asyncio.run(serve())
