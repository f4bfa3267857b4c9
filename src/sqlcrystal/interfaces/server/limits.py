"""Limits of one caller: requests a minute, and bytes in a request."""

import time
from collections import OrderedDict
from collections.abc import Callable

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
