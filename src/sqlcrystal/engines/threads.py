"""A crew of threads of this process, around one performer."""

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Generic

from sqlcrystal.engines.crew import Collection, Done, Holding, Performs, Result, Unit


class Threads(Generic[Unit, Collection, Holding, Result]):
    """As many units at once as there are threads."""

    def __init__(self, performer: Performs[Unit, Collection, Holding, Result], *, size: int) -> None:
        self.size = size
        self._performer = performer
        self._pool = ThreadPoolExecutor(max_workers=size, thread_name_prefix="study")
        self._done: SimpleQueue[Done[Unit, Result]] = SimpleQueue()

    def begin(self, unit: Unit, holdings: Mapping[Collection, Holding]) -> None:
        """Perform the unit in a thread."""
        future = self._pool.submit(self._performer.perform, unit, holdings)
        future.add_done_callback(lambda settled: self._done.put(_done(unit, settled)))

    def next_done(self) -> Done[Unit, Result]:
        """Wait for any unit that was begun."""
        return self._done.get()

    def close(self) -> None:
        """Wait for the calls under way."""
        self._pool.shutdown()


def _done(unit: Unit, settled: Future[Result | None]) -> Done[Unit, Result]:
    error = settled.exception()
    if error is None:
        return Done(unit, settled.result())
    if isinstance(error, Exception):
        return Done(unit, None, error)
    raise error
