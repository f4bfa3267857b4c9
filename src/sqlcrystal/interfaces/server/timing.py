"""What of a request's time is not the server's own: waiting for a turn at a busy model, the model, the databases."""

from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import TypeVar

from sqlcrystal.serving.clock import clocked

Result = TypeVar("Result")


class Aside:
    """Seconds of one request that are others'; waiting for a thread of ours is not among them."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.line = 0.0
        """In the line of a database."""
        self.outside = 0.0
        """In the model and in databases."""

    @property
    def seconds(self) -> float:
        """Together."""
        return self.line + self.outside

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


_of_request: ContextVar[Aside | None] = ContextVar("aside", default=None)


def begin_request() -> Aside:
    """What the request at hand leaves aside, empty; its tasks inherit it."""
    aside = Aside()
    _of_request.set(aside)
    return aside


def of_this_request() -> Aside:
    """What the request at hand leaves aside; work that no request began has its own."""
    return _of_request.get() or Aside()
