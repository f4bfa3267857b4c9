"""The application: one Crystal behind a gate, with the routes of HTTP, chat, MCP and the page."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from fastapi import FastAPI, Request
from starlette.responses import JSONResponse, Response

from sqlcrystal.interfaces.server import api, chat, definitions
from sqlcrystal.interfaces.server.access import Door, recognised
from sqlcrystal.interfaces.server.errors import add_errors, retry_after, status_and_line
from sqlcrystal.interfaces.server.gate import Gate
from sqlcrystal.interfaces.server.logs import event
from sqlcrystal.interfaces.server.replies import error_reply
from sqlcrystal.interfaces.server.settings import BodyLimit, RateLimit, ServerSettings
from sqlcrystal.interfaces.server.telemetry import Metrics
from sqlcrystal.interfaces.server.work import Work
from sqlcrystal.serving.callers import Caller
from sqlcrystal.version import __version__

if TYPE_CHECKING:
    from sqlcrystal.serving import Crystal


def make_app(crystal: "Crystal", settings: ServerSettings | None = None) -> FastAPI:
    """The service over an open Crystal, which the caller closes once the application has stopped."""
    settings = settings or ServerSettings()
    metrics = Metrics()
    work = Work(crystal, settings, metrics)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for mounted in mounts:
                await stack.enter_async_context(mounted.running())
            event("started", databases=len(crystal.database_names()))
            yield
            await work.drain()

    app = FastAPI(
        title="sqlcrystal",
        version=__version__,
        description="Ask databases, judge the answers, and see what the memory of both is worth.",
        docs_url=None,  # the usual page loads its script from elsewhere
        redoc_url=None,
        openapi_url=None,  # told below, to token holders
        lifespan=lifespan,
        redirect_slashes=False,  # such a redirect would go wherever the request's Host header says
    )
    app.state.work = work
    app.state.settings = settings
    mounts = _add_mcp(app, work)

    async def recognise(request: Request) -> Caller | None:
        return await work.look(lambda: recognised(request, crystal))

    app.add_middleware(BodyLimit, limit=settings.body_bytes)
    rate = RateLimit(settings.requests_per_minute)
    app.add_middleware(Gate, recognise=recognise, rate=rate, metrics=metrics, on_bug=_of_bug)
    add_errors(app, _reply)
    for router in (*api.ROUTERS, definitions.definitions, chat.router):
        app.include_router(router)
    _add_pages(app)

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi(_: Door) -> JSONResponse:
        return JSONResponse(app.openapi())

    return app


def _add_pages(app: FastAPI) -> None:
    from sqlcrystal.interfaces.web.pages import add_pages

    add_pages(app)


def _of_bug(request: Request, error: Exception) -> Response:
    """Answer an unforeseen error in one line that says nothing of it."""
    status, detail = status_and_line(error)
    return _reply(request, status, detail, retry_after(status))


def _reply(request: Request, status: int, detail: object, headers: dict[str, str] | None = None) -> Response:
    from sqlcrystal.interfaces.web.pages import error_page, wants_page

    if request.url.path.startswith("/v1/"):
        return error_reply(status, detail)
    if wants_page(request):
        return error_page(request, status, detail)
    return JSONResponse({"detail": detail}, status_code=status, headers=headers)


def _add_mcp(app: FastAPI, work: Work) -> "list[MountedMcp]":
    if find_spec("mcp") is None:  # the extra is not installed
        return []
    from sqlcrystal.interfaces.mcp.over_http import mount_mcp

    return [mount_mcp(app, work)]


if TYPE_CHECKING:
    from sqlcrystal.interfaces.mcp.over_http import MountedMcp
