"""Listeners to a reply while it is written: set by those who show it, told by the models that can stream.

Like `patience`, it belongs to the work of this thread, so that a model that cannot stream need not know of it, and a
reply is recorded whole either way.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

Listener: TypeAlias = Callable[[str], None]
"""Hears the whole text so far, again and again; a shorter one where the reply is begun anew."""

_present: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def overheard(listener: Listener) -> Iterator[None]:
    """Let somebody hear the replies of this block as they are written."""
    before = _present.set(listener)
    try:
        yield
    finally:
        _present.reset(before)


def listener() -> Listener | None:
    """Give the one who listens to the work of this thread; None where nobody does."""
    return _present.get()
