"""The request at hand: whose token it carries, whether its client is still there, and its time that is others'."""

import asyncio
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import TypeVar

from starlette.types import Receive

from sqlcrystal.serving.clock import clocked


class Visit:
    """One request, as work that waits in a line sees it."""

    def __init__(self, receive: Receive | None = None) -> None:
        """Know no token yet; without messages to read, the client is taken to stay."""
        self.token = ""
        self._receive = receive

    async def gone(self) -> None:
        """Wait until the client has left; to be begun once the request has been read."""
        if self._receive is None:
            await asyncio.get_running_loop().create_future()
        while self._receive is not None and (await self._receive())["type"] != "http.disconnect":
            pass


_of_request: ContextVar[Visit | None] = ContextVar("visit", default=None)


def begin_visit(receive: Receive) -> Visit:
    """Begin the visit of the request at hand; its tasks inherit it."""
    visit = Visit(receive)
    _of_request.set(visit)
    return visit


def this_visit() -> Visit:
    """Tell the visit at hand; work that no request began has one without a token."""
    return _of_request.get() or Visit()


Result = TypeVar("Result")


class Aside:
    """Seconds of one request that are others'; waiting for a thread of ours is not among them."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.queue = 0.0
        """In the queue of a database."""
        self.outside = 0.0
        """In the model and in databases."""

    @property
    def seconds(self) -> float:
        """Together."""
        return self.queue + self.outside

    def around(self, function: Callable[[], Result]) -> Callable[[], Result]:
        """The function, to be run in a thread, with what it spends outside added here."""

        # The thread's work belongs to the request, and so do its traces.
        within = copy_context()

        def counted() -> Result:
            with clocked() as clock:
                try:
                    return function()
                finally:
                    self.outside += clock.seconds

        return lambda: within.run(counted)


_aside_of_request: ContextVar[Aside | None] = ContextVar("aside", default=None)


def begin_request() -> Aside:
    """Tell what the request at hand leaves aside, empty; its tasks inherit it."""
    aside = Aside()
    _aside_of_request.set(aside)
    return aside


def of_this_request() -> Aside:
    """Tell what the request at hand leaves aside; work that no request began has its own."""
    return _aside_of_request.get() or Aside()
