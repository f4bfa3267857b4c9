"""The one door of every request: who is it, may they go on, how long did it take, and headers that browsers obey."""

import secrets
import time
from collections.abc import Awaitable, Callable

from fastapi import Request
from starlette.datastructures import MutableHeaders
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sqlcrystal.interfaces.server.logs import event
from sqlcrystal.interfaces.server.replies import error_document
from sqlcrystal.interfaces.server.settings import RateLimit
from sqlcrystal.interfaces.server.telemetry import Metrics
from sqlcrystal.interfaces.server.visits import Visit, begin_request, begin_visit
from sqlcrystal.serving.callers import Caller

OPEN = frozenset({"/health", "/ready", "/login"})
GIVEN_UP = frozenset({499, 504})
OPEN_FOLDER = "/static/"
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-src 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}

OnBug = Callable[[Request, Exception], Response]
Recognise = Callable[[Request], Awaitable[Caller | None]]


class Gate:
    """ASGI middleware: nothing is reached without a token but health, the login page and what that page looks like."""

    def __init__(self, app: ASGIApp, *, recognise: Recognise, rate: RateLimit, metrics: Metrics, on_bug: OnBug) -> None:
        """Wrap the application; `on_bug` makes the reply to what nobody foresaw, which leaves by this door too."""
        self._app = app
        self._recognise = recognise
        self._rate = rate
        self._metrics = metrics
        self._on_bug = on_bug

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or say why not."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        status = 500
        request_id = secrets.token_hex(6)
        scope.setdefault("state", {})["request_id"] = request_id
        aside, visit, streamed, begun = begin_request(), begin_visit(receive), False, False

        async def dressed(message: Message) -> None:
            nonlocal status, streamed, begun
            if message["type"] == "http.response.start":
                status, begun = message["status"], True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Content-Security-Policy", CONTENT_POLICY)
                headers.setdefault("Cache-Control", "no-store")
                headers["X-Request-Id"] = request_id
                streamed = headers.get("content-type", "").startswith("text/event-stream")
            await send(message)

        try:
            refusal = await self._refusal(Request(scope), visit)
            if refusal is None:
                await self._app(scope, receive, dressed)
            else:
                await refusal(scope, receive, dressed)
        except Exception as error:
            if begun:  # a reply that breaks off has no other end
                raise
            await self._on_bug(Request(scope), error)(scope, receive, dressed)
        finally:
            seconds = time.perf_counter() - began
            self._note(scope, status, seconds)
            # A stream without work of its own only waits for its client, and what was given up may still be at work.
            if (aside.seconds or not streamed) and status not in GIVEN_UP:
                self._metrics.overhead_seconds.labels(_route(scope)).observe(max(0.0, seconds - aside.seconds))

    async def _refusal(self, request: Request, visit: Visit) -> Response | None:
        path: str = request.scope["path"]
        if path in OPEN or path.startswith(OPEN_FOLDER):
            address = f"address {request.client.host if request.client else ''}"
            if path == "/login" and (wait := self._rate.seconds_to_wait(address)):
                return _refused(path, 429, "too many requests", {"Retry-After": str(int(wait) + 1)})
            return None
        caller = await self._recognise(request)
        if caller is None:
            if request.method == "GET" and "text/html" in request.headers.get("accept", ""):
                return RedirectResponse("/login", status_code=303)
            detail = "a token is needed: Authorization: Bearer sqlc_…"
            return _refused(path, 401, detail, {"WWW-Authenticate": "Bearer"})
        wait = self._rate.seconds_to_wait(caller.token)
        if wait:
            detail = f"too many requests; wait {wait:.1f} s"
            return _refused(path, 429, detail, {"Retry-After": str(int(wait) + 1)})
        request.state.caller = caller
        visit.token = caller.token
        return None

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = _route(scope)
        self._metrics.requests.labels(route, str(status)).inc()
        self._metrics.request_seconds.labels(route).observe(seconds)
        state = scope["state"]
        caller: Caller | None = state.get("caller")
        event(
            "request",
            id=state["request_id"],
            method=scope["method"],
            route=route,
            status=status,
            ms=round(seconds * 1000, 1),
            token=caller.token if caller else "",
        )


def _route(scope: Scope) -> str:
    return getattr(scope.get("route"), "path", "") or "none"


def _refused(path: str, status: int, detail: str, headers: dict[str, str]) -> Response:
    body = error_document(status, detail) if path.startswith("/v1/") else {"detail": detail}
    return JSONResponse(body, status_code=status, headers=headers)
