"""MCP as streamable HTTP inside the service, behind its gate: the token of a request says what its tools may reach."""

from contextlib import AbstractAsyncContextManager

from fastapi import FastAPI
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.transport_security import TransportSecuritySettings
from msgspec.structs import replace
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from sqlcrystal.interfaces.mcp.tools import make_server
from sqlcrystal.interfaces.server.work import Work
from sqlcrystal.serving.callers import Caller
from sqlcrystal.serving.crystal import Crystal

PATH = "/mcp"


class MountedMcp:
    """The SDK's session manager as an ASGI application that lives as long as the service."""

    def __init__(self, server: MCPServer) -> None:
        """Each request stands alone, so that any process of several may serve it."""
        # The gate asks for a token, which a page elsewhere does not have; the host's name says nothing more.
        security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        server.streamable_http_app(stateless_http=True, json_response=True, transport_security=security)
        self._manager = server.session_manager

    def running(self) -> AbstractAsyncContextManager[None]:
        """Open while the service runs."""
        return self._manager.run()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request to the SDK."""
        await self._manager.handle_request(scope, receive, send)


def mount_mcp(app: FastAPI, work: Work) -> MountedMcp:
    """Serve MCP at /mcp."""

    def door(context: Context) -> Crystal:
        return work.crystal.acting_for(_caller_of(context))

    mounted = MountedMcp(make_server(work, door, allow_write=work.settings.allow_write))
    app.router.routes.append(Route(PATH, mounted, methods=["POST"], include_in_schema=False))
    return mounted


def _caller_of(context: Context) -> Caller:
    """Name the holder of the request's token, whom the gate has recognised; a model reads the replies for them."""
    request = context.request_context.request
    assert request is not None
    caller: Caller = request.state.caller
    return replace(caller, is_model=True)
