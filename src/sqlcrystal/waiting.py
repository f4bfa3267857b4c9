"""The people who wait for a model, as its work knows them: how long they may be kept, and what they hear meanwhile.

Both belong to the work of this thread, so that a model that cannot stream need not know of listeners, and a reply is
recorded whole either way."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import TypeAlias


class Patience:
    """A moment at which work ends, or sooner when somebody says so; threads may share it."""

    def __init__(self, seconds: float, stopped: threading.Event | None = None) -> None:
        """Begin now."""
        self.seconds = seconds
        self._ends = monotonic() + seconds
        self._stopped = stopped

    @property
    def left(self) -> float:
        """Seconds that are left; none once it was stopped."""
        stopped = self._stopped is not None and self._stopped.is_set()
        return 0.0 if stopped else max(0.0, self._ends - monotonic())


_present: ContextVar[Patience | None] = ContextVar("patience", default=None)


@contextmanager
def within(patience: Patience) -> Iterator[None]:
    """Let the work of this block end with somebody's patience."""
    before = _present.set(patience)
    try:
        yield
    finally:
        _present.reset(before)


def patience_of(seconds: float) -> Patience:
    """Give a patience of at most so many seconds: what is left of the one around, which also stops it."""
    around = _present.get()
    return Patience(seconds) if around is None else _Shorter(seconds, around)


def is_over() -> bool:
    """Tell whether nobody waits for this work any more."""
    around = _present.get()
    return around is not None and not around.left


class _Shorter(Patience):
    """Seconds of one's own within another's patience."""

    def __init__(self, seconds: float, around: Patience) -> None:
        super().__init__(seconds)
        self._around = around
        self.seconds = min(seconds, around.seconds)

    @property
    def left(self) -> float:
        return min(super().left, self._around.left)


Listener: TypeAlias = Callable[[str], None]
"""Hears the whole text so far, again and again; a shorter one where the reply is begun anew."""

_hearing: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def overheard(listener: Listener) -> Iterator[None]:
    """Let somebody hear the replies of this block as they are written."""
    before = _hearing.set(listener)
    try:
        yield
    finally:
        _hearing.reset(before)


def listener() -> Listener | None:
    """Give the one who listens to the work of this thread; None where nobody does."""
    return _hearing.get()
