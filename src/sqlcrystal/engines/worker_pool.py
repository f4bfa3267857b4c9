"""A worker pool performs the units of a study side by side: the protocol, and threads of this process."""

from collections.abc import Hashable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Generic, NamedTuple, Protocol, TypeVar

from sqlcrystal.protocols import LanguageModel

Unit = TypeVar("Unit")
Result = TypeVar("Result")
Collection = TypeVar("Collection", bound=Hashable)
Contents = TypeVar("Contents")
Unit_contra = TypeVar("Unit_contra", contravariant=True)
Contents_contra = TypeVar("Contents_contra", contravariant=True)
Result_co = TypeVar("Result_co", covariant=True)


class Done(NamedTuple, Generic[Unit, Result]):
    """A unit that came back: with what came of it, or with the error that kept it from coming to anything."""

    unit: Unit
    performed: Result | None
    error: Exception | None = None


class UnitPerformer(Protocol[Unit_contra, Collection, Contents_contra, Result_co]):
    """Performs a unit, given the finished collections that it needs."""

    @property
    def model(self) -> LanguageModel:
        """Name the model that it asks."""
        ...

    def perform(self, unit: Unit_contra, finished: Mapping[Collection, Contents_contra]) -> Result_co | None:
        """Perform one unit."""
        ...

    def asking(self, model: LanguageModel) -> "UnitPerformer[Unit_contra, Collection, Contents_contra, Result_co]":
        """Make the same performer over another model."""
        ...


class WorkerPool(Protocol[Unit, Collection, Contents_contra, Result]):
    """UnitPerformer units side by side; `size` of them keep it busy."""

    size: int

    def begin(self, unit: Unit, finished: Mapping[Collection, Contents_contra]) -> None:
        """Take a unit on, with the finished collections that it needs; returns at once."""
        ...

    def next_done(self) -> Done[Unit, Result]:
        """Wait for any unit that was begun."""
        ...

    def close(self) -> None:
        """Let the workers go, once the calls under way are over."""
        ...


class ThreadWorkers(Generic[Unit, Collection, Contents, Result]):
    """As many units at once as there are threads."""

    def __init__(self, performer: UnitPerformer[Unit, Collection, Contents, Result], *, size: int) -> None:
        self.size = size
        self._performer = performer
        self._pool = ThreadPoolExecutor(max_workers=size, thread_name_prefix="study")
        self._done: SimpleQueue[Done[Unit, Result]] = SimpleQueue()

    def begin(self, unit: Unit, finished: Mapping[Collection, Contents]) -> None:
        """Perform the unit in a thread."""
        future = self._pool.submit(self._performer.perform, unit, finished)
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
