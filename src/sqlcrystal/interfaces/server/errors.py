"""Errors as every interface tells them: one table of statuses, one line of words."""

from collections.abc import Callable
from typing import TypeAlias

from starlette.applications import Starlette
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.requests import Request
from starlette.responses import Response

from sqlcrystal.errors import (
    Contradicted,
    Forbidden,
    InfrastructureError,
    ModelError,
    NotFound,
    RecordingMiss,
    SqlcrystalError,
    StoreAway,
    UserError,
)
from sqlcrystal.interfaces.server.logs import event


class Busy(Exception):
    """The queue of a database is full; the message says how long it is."""


class Stopped(Exception):
    """The caller no longer wants the answer."""


class TooLate(Exception):
    """The time limit of an answer passed."""


class Stopping(Exception):
    """The server is shutting down and takes no new work."""


STATUSES: tuple[tuple[type[BaseException], int], ...] = (
    (Busy, 503),
    (Stopping, 503),
    (Stopped, 499),
    (TooLate, 504),
    (NotFound, 404),
    (Forbidden, 403),
    (Contradicted, 409),
    (UserError, 422),
    (RecordingMiss, 404),
    (ModelError, 502),
    (InfrastructureError, 502),
    (SqlcrystalError, 422),
)
"""The first that fits counts."""
EXPECTED = (SqlcrystalError, Busy, Stopping, Stopped, TooLate)
FAILED = "the server failed; its log says where"
AWAY = "the store does not answer at the moment; try again soon"
"""Told in place of where the store lies: a request without a token can meet it."""


def status_and_line(error: BaseException) -> tuple[int, str]:
    """Give the status and the one line that a caller gets for an error; a bug says nothing of itself."""
    if isinstance(error, StoreAway):
        event("store away", level=30, cause=error)
        return 503, AWAY
    for kind, status in STATUSES:
        if isinstance(error, kind):
            return status, str(error)
    event("bug", level=40, cause=error)
    return 500, FAILED


Reply: TypeAlias = Callable[[Request, int, object, dict[str, str] | None], Response]
"""How a door tells a status, a line of words and headers."""


def retry_after(status: int) -> dict[str, str]:
    """Give the header that says when to try again, where the server is only busy or waits for its store."""
    return {"Retry-After": "2"} if status == 503 else {}


def add_errors(app: Starlette, reply: Reply) -> None:
    """Give every error the shape that its door has for errors."""

    from fastapi.exceptions import RequestValidationError  # MCP over stdio needs the table without a web framework

    async def of_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, StarletteHTTPException)
        return reply(request, error.status_code, error.detail, dict(error.headers or {}))

    async def of_work(request: Request, error: Exception) -> Response:
        status, detail = status_and_line(error)
        return reply(request, status, detail, retry_after(status))

    async def of_shape(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        # A mistake is told by its place and kind; what was sent is not sent back.
        detail = [{"loc": list(map(str, problem["loc"])), "msg": problem["msg"]} for problem in error.errors()]
        words = "; ".join(f"{'.'.join(problem['loc'])}: {problem['msg']}" for problem in detail)
        return reply(request, 422, words, None)

    app.add_exception_handler(StarletteHTTPException, of_http)
    app.add_exception_handler(RequestValidationError, of_shape)
    for kind in EXPECTED:
        app.add_exception_handler(kind, of_work)
