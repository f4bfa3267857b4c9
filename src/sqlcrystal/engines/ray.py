"""A pool of Ray workers: each opens databases and model for itself, and the driver alone records.

A unit is first performed here from the recording. One that lacks a reply is sent out with the replies it has; every
call of its worker goes to a collector that outlives the worker, and the driver records the calls it finds there. Two
units that lack the same reply are never out at once, so every prompt is asked once, and the tables are those of the
local engine.

It does not guarantee which worker performs a unit, nor that workers of different hardware reply alike.
"""

import importlib
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, Generic, NamedTuple, TypeAlias

from sqlcrystal.engines.worker_pool import Collection, Contents, Done, Result, Unit, UnitPerformer
from sqlcrystal.errors import ConfigError, ModelUnavailable, RecordingMiss, SqlcrystalError
from sqlcrystal.models.recorded import Peeking, Recorded
from sqlcrystal.models.recording import RecordedCall, request_key
from sqlcrystal.protocols import LanguageModel
from sqlcrystal.single_flight import SingleFlight
from sqlcrystal.types import Completion, Message, Sampling

MOST_DISPATCHES = 3
"""Times that a unit is sent whose worker is lost."""
Reference: TypeAlias = Any
"""Ray's handles have no types of their own."""


class CallCollector:
    """Keeps each call of the workers as soon as it is answered; an actor of its own, which outlives a lost worker."""

    def __init__(self) -> None:
        self._entries: list[RecordedCall] = []

    def keep(self, entry: RecordedCall) -> None:
        """Keep a call for the driver."""
        self._entries.append(entry)

    def take(self) -> list[RecordedCall]:
        """Hand everything over."""
        entries, self._entries = self._entries, []
        return entries


class CollectingModel:
    """A worker's model: knows the replies that came with the unit, and hands every other one to the collector."""

    def __init__(self, model: LanguageModel, known: Mapping[str, Completion], ray: Any, collector: Reference) -> None:
        self.name, self.digest, self.slots = model.name, model.digest, model.slots
        self._model, self._known, self._ray, self._collector = model, known, ray, collector

    def chat(self, messages: Sequence[Message], *, sampling: Sampling) -> Completion:
        """Give the known reply, or a fresh one that is safe before it is used."""
        key = request_key(self.digest, messages, sampling)
        if key in self._known:
            return self._known[key]
        completion = self._model.chat(messages, sampling=sampling)
        entry = RecordedCall.of(self, messages, sampling, completion)
        self._ray.get(self._collector.keep.remote(entry))
        return completion

    def close(self) -> None:
        """Leave the worker's model open for the next unit."""


class Worker:
    """Runs in a Ray process, with databases, embedder and model opened there."""

    def __init__(self, open_performer: Callable[[], UnitPerformer[Any, Any, Any, Any]], collector: Reference) -> None:
        self._ray = importlib.import_module("ray")
        self._collector = collector
        self._performer = open_performer()
        self._finished: dict[Hashable, object] = {}

    def perform(
        self, unit: object, finished: Mapping[Hashable, Reference], known: Mapping[str, Completion]
    ) -> object | None:
        """Perform one unit; its banks are fetched once."""
        for bank, reference in finished.items():
            if bank not in self._finished:
                self._finished[bank] = self._ray.get(reference)
        model = CollectingModel(self._performer.model, known, self._ray, self._collector)
        return self._performer.asking(model).perform(unit, self._finished)


class Dispatch(NamedTuple, Generic[Unit, Collection, Contents]):
    """A unit that was sent out, the reply it lacked then, and how often it has been sent."""

    unit: Unit
    finished: Mapping[Collection, Contents]
    lacks: str
    number: int


class RayWorkers(Generic[Unit, Collection, Contents, Result]):
    """A worker pool over the cluster of RAY_ADDRESS, or over processes of this machine."""

    def __init__(
        self,
        performer: UnitPerformer[Unit, Collection, Contents, Result],
        model: Recorded,
        *,
        size: int | None,
        open_there: Callable[[], UnitPerformer[Unit, Collection, Contents, Result]],
    ) -> None:
        """Join the cluster and start the workers: one for each processor, and threads in them for more units."""
        try:
            self._ray: Any = importlib.import_module("ray")
        except ImportError:
            raise ConfigError("--engine: ray needs the extra: pip install 'sqlcrystal[ray]'") from None
        self._performer, self._model = performer, model
        self._joined = not self._ray.is_initialized()
        if self._joined:
            self._ray.init(include_dashboard=False, log_to_driver=False, configure_logging=False)
        processors = int(self._ray.cluster_resources().get("CPU", 1))
        self.size = size or max(processors, model.slots)
        processes = max(1, min(self.size, processors))
        worker = self._ray.remote(num_cpus=0, max_concurrency=-(-self.size // processes), max_restarts=-1)(Worker)
        self._collector = self._ray.remote(num_cpus=0)(CallCollector).remote()
        self._workers = deque(worker.remote(open_there, self._collector) for _ in range(processes))
        self._banks: SingleFlight[Collection, Reference] = SingleFlight()
        self._out: dict[Reference, Dispatch[Unit, Collection, Contents]] = {}
        self._parked: dict[str, list[Dispatch[Unit, Collection, Contents]]] = defaultdict(list)
        self._done: deque[Done[Unit, Result]] = deque()

    def begin(self, unit: Unit, finished: Mapping[Collection, Contents]) -> None:
        """Perform the unit from the recording, or send it out with what the recording has of it."""
        self._begin(Dispatch(unit, finished, "", 0))

    def next_done(self) -> Done[Unit, Result]:
        """Wait for any unit that was begun; its calls are recorded before anything is made of them."""
        while not self._done:
            [reference], _ = self._ray.wait(list(self._out), num_returns=1)
            dispatch = self._out.pop(reference)
            self._model.take_over(self._ray.get(self._collector.take.remote()))
            self._receive(dispatch, reference)
            for waiting in self._parked.pop(dispatch.lacks, ()):
                self._begin(waiting)
        return self._done.popleft()

    def close(self) -> None:
        """Leave the cluster, if it was joined here, or else only end the workers."""
        if self._joined:
            self._ray.shutdown()
            return
        for actor in (*self._workers, self._collector):
            self._ray.kill(actor)

    def _begin(self, dispatch: Dispatch[Unit, Collection, Contents]) -> None:
        unit, finished = dispatch.unit, dispatch.finished
        peeking = Peeking(self._model)
        try:
            self._done.append(Done(unit, self._performer.asking(peeking).perform(unit, finished)))
        except RecordingMiss as miss:
            if self._model.mode == "replay":
                self._done.append(Done(unit, None, miss))
                return
            lacks = next(reversed(peeking.missing))
            if any(other.lacks == lacks for other in self._out.values()):
                self._parked[lacks].append(dispatch)
            else:
                self._send(dispatch._replace(lacks=lacks, number=dispatch.number + 1), peeking.known)
        except SqlcrystalError as error:
            self._done.append(Done(unit, None, error))

    def _send(self, dispatch: Dispatch[Unit, Collection, Contents], known: Mapping[str, Completion]) -> None:
        banks = {
            bank: self._banks.get(bank, partial(self._ray.put, contents))
            for bank, contents in dispatch.finished.items()
        }
        worker = self._workers[0]
        self._workers.rotate(-1)
        self._out[worker.perform.remote(dispatch.unit, banks, known)] = dispatch

    def _receive(self, dispatch: Dispatch[Unit, Collection, Contents], reference: Reference) -> None:
        """Settle a unit that came back; that of a lost worker is sent again, with the replies the worker had."""
        failures = self._ray.exceptions
        try:
            self._done.append(Done(dispatch.unit, self._ray.get(reference)))
        except failures.RayTaskError as error:
            cause = error.cause if isinstance(error.cause, Exception) else error
            self._done.append(Done(dispatch.unit, None, cause))
        except failures.RayError as error:
            if dispatch.number < MOST_DISPATCHES:
                self._begin(dispatch)
            else:
                self._done.append(Done(dispatch.unit, None, ModelUnavailable(f"a Ray worker is gone: {error}")))
