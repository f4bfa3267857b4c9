"""Who performs units: threads of this process here; `ray.py` has workers elsewhere."""

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import NamedTuple, Protocol

from sqlcrystal.study.memories import Holding
from sqlcrystal.study.perform import Performed, Performer
from sqlcrystal.study.units import Bank, Unit


class Done(NamedTuple):
    """A unit that came back: with what came of it, or with the error that kept it from coming to anything."""

    unit: Unit
    performed: Performed | None
    error: Exception | None = None


class Crew(Protocol):
    """Performs units side by side; `size` of them keep it busy."""

    size: int

    def begin(self, unit: Unit, holdings: Mapping[Bank, Holding]) -> None:
        """Take a unit on, with the holdings that it needs; returns at once."""
        ...

    def next_done(self) -> Done:
        """Wait for any unit that was begun."""
        ...

    def close(self) -> None:
        """Let the workers go, once the calls under way are over."""
        ...


class Threads:
    """A crew of threads around one performer."""

    def __init__(self, performer: Performer, *, size: int) -> None:
        self.size = size
        self._performer = performer
        self._pool = ThreadPoolExecutor(max_workers=size, thread_name_prefix="study")
        self._done: SimpleQueue[Done] = SimpleQueue()

    def begin(self, unit: Unit, holdings: Mapping[Bank, Holding]) -> None:
        """Perform the unit in a thread."""
        future = self._pool.submit(self._performer.perform, unit, holdings)
        future.add_done_callback(lambda settled: self._done.put(_done(unit, settled)))

    def next_done(self) -> Done:
        """Wait for any unit that was begun."""
        return self._done.get()

    def close(self) -> None:
        """Wait for the calls under way."""
        self._pool.shutdown()


def _done(unit: Unit, settled: Future[Performed | None]) -> Done:
    error = settled.exception()
    if error is None:
        return Done(unit, settled.result())
    if isinstance(error, Exception):
        return Done(unit, None, error)
    raise error
