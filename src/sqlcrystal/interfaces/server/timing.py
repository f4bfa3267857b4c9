"""The part of a request's time that is not the server's own: its turn in the queue, the model, the databases."""

from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import TypeVar

from sqlcrystal.serving.clock import clocked

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


_of_request: ContextVar[Aside | None] = ContextVar("aside", default=None)


def begin_request() -> Aside:
    """Tell what the request at hand leaves aside, empty; its tasks inherit it."""
    aside = Aside()
    _of_request.set(aside)
    return aside


def of_this_request() -> Aside:
    """Tell what the request at hand leaves aside; work that no request began has its own."""
    return _of_request.get() or Aside()
