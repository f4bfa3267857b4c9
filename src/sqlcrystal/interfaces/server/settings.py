"""Settings and limits of the service: requests a minute, bytes in a request, and the proxies that it believes."""

import time
from collections import OrderedDict
from collections.abc import Callable

from msgspec import Struct
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class ServerSettings(Struct, frozen=True, kw_only=True):
    """Limits of one process; each has a flag of the same name in `sqlcrystal serve`."""

    concurrency: int = 4
    """Questions worked on at a time, per database."""
    queue_size: int = 50
    """Questions that may wait for their turn, per database; the next one is turned away."""
    answer_seconds: float = 120.0
    """An answer that takes longer is given up."""
    requests_per_minute: int = 600
    """Of one token; the bucket holds a sixth of it for bursts."""
    body_bytes: int = 256 * 1024
    request_seconds: float = 20.0
    """How long a connection may take to send a whole request."""
    idle_connections: int = 500
    """Connections without a whole request that may be open at a time; of more the oldest are closed."""
    stop_seconds: float = 20.0
    """How long a stopping server waits for answers under way."""
    session_hours: float = 12.0
    """How long a browser stays logged in."""
    secure_cookie: bool = False
    """Whether browsers may send the session over HTTPS only; on behind a proxy that ends TLS."""
    allow_write: bool = False
    """Whether MCP clients may confirm and reject."""
    issue_for_others: bool = False
    """Whether managers may issue tokens in the name of a person who is known already."""
    studies: str = "runs"
    """The folder whose study reports the page shows."""
    demo: bool = False


CALLERS_REMEMBERED = 10_000


class RateLimit:
    """A token bucket for each caller; kept in this process, so several processes allow several times as much."""

    def __init__(self, per_minute: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        """A sixth of a minute's requests may come at once."""
        self._rate = per_minute / 60
        self._most = max(1.0, per_minute / 6)
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def seconds_to_wait(self, caller: str) -> float:
        """0 when the request may pass, which uses it up; else how long until the next may."""
        at = self._clock()
        left, since = self._buckets.pop(caller, (self._most, at))
        left = min(self._most, left + (at - since) * self._rate)
        wait = 0.0 if left >= 1 else (1 - left) / self._rate
        self._buckets[caller] = (left if wait else left - 1, at)
        if len(self._buckets) > CALLERS_REMEMBERED:
            self._buckets.popitem(last=False)
        return wait


class BodyTooLarge(Exception):
    """A body went over the limit while it was read."""


class BodyLimit:
    """ASGI middleware: a body over the limit is refused before or while it is read, never held whole."""

    def __init__(self, app: ASGIApp, *, limit: int) -> None:
        """Wrap an application."""
        self._app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count what comes in."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if not declared.isdigit() or int(declared) > self._limit:
            await self._refuse(scope, receive, send)
            return
        read, answered = 0, False

        async def counted() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > self._limit:
                raise BodyTooLarge
            return message

        async def noted(message: Message) -> None:
            nonlocal answered
            answered = True
            await send(message)

        try:
            await self._app(scope, counted, noted)
        except BodyTooLarge:
            if not answered:
                await self._refuse(scope, receive, send)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        detail = f"the body is larger than {self._limit} bytes"
        await JSONResponse({"detail": detail}, status_code=413)(scope, receive, send)
