"""The visit that a request is: whose token it carries, and whether its client is still there to be answered."""

import asyncio
from contextvars import ContextVar

from starlette.types import Receive


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
