"""Work that is done once for all callers, from however many threads."""

from collections.abc import Callable, Hashable
from concurrent.futures import Future
from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class SingleFlight(Generic[Key, Value]):
    """Values by key, each made by one thread; others that ask meanwhile wait, and get its failure if it fails."""

    def __init__(
        self, *, keep: Callable[[Value], bool] = lambda _: True, errors: tuple[type[Exception], ...] = ()
    ) -> None:
        """Remember the values that `keep` accepts and the failures in `errors`; the rest is tried again when asked."""
        self._keep = keep
        self._errors = errors
        self._lock = Lock()
        self._made: dict[Key, Future[Value]] = {}

    def get(self, key: Key, make: Callable[[], Value]) -> Value:
        """Give the value under a key, made once."""
        with self._lock:
            future = self._made.get(key)
            first = future is None
            if future is None:
                future = self._made[key] = Future()
        if first:
            self._settle(key, future, make)
        return future.result()

    def _settle(self, key: Key, future: Future[Value], make: Callable[[], Value]) -> None:
        try:
            value = make()
        except BaseException as error:
            if not isinstance(error, self._errors):
                self._forget(key)
            future.set_exception(error)
            return
        if not self._keep(value):
            self._forget(key)
        future.set_result(value)

    def _forget(self, key: Key) -> None:
        with self._lock:
            del self._made[key]
