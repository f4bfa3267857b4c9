"""A pool of Ray workers: units travel, each worker opens databases and model for itself, the driver alone records.

A unit is first performed here with what is recorded. One that lacks a reply travels with the replies it has; whatever
its worker asks is laid on a desk that outlives the worker, and the driver records what it finds there. Two units that
lack the same reply never travel at once, so every prompt is asked once, and the tables are those of the local engine.

It does not guarantee which worker performs a unit, nor that workers of different hardware reply alike.
"""

import importlib
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, Generic, NamedTuple, TypeAlias

from sqlcrystal.engines.worker_pool import Collection, Done, Holding, Performs, Result, Unit
from sqlcrystal.errors import ConfigError, ModelUnavailable, RecordingMiss, SqlcrystalError
from sqlcrystal.models.recorded import Peeking, Recorded
from sqlcrystal.models.recording import RecordedCall, request_key
from sqlcrystal.protocols import LanguageModel
from sqlcrystal.single_flight import SingleFlight
from sqlcrystal.types import Completion, Message, Sampling

JOURNEYS = 3
"""How often a unit travels whose worker is lost on the way."""
Reference: TypeAlias = Any
"""Ray's handles have no types of their own."""


class CallDesk:
    """Where workers lay each call as soon as it is answered; an actor of its own, which no lost worker takes along."""

    def __init__(self) -> None:
        self._entries: list[RecordedCall] = []

    def lay(self, entry: RecordedCall) -> None:
        """Keep a call for the driver."""
        self._entries.append(entry)

    def take(self) -> list[RecordedCall]:
        """Hand everything over."""
        entries, self._entries = self._entries, []
        return entries


class DeskModel:
    """A worker's model: knows the replies that travelled with the unit, and lays every other one on the desk."""

    def __init__(self, model: LanguageModel, known: Mapping[str, Completion], ray: Any, desk: Reference) -> None:
        self.name, self.digest, self.slots = model.name, model.digest, model.slots
        self._model, self._known, self._ray, self._desk = model, known, ray, desk

    def chat(self, messages: Sequence[Message], *, sampling: Sampling) -> Completion:
        """The known reply, or a fresh one that is safe before it is used."""
        key = request_key(self.digest, messages, sampling)
        if key in self._known:
            return self._known[key]
        completion = self._model.chat(messages, sampling=sampling)
        entry = RecordedCall.of(self, messages, sampling, completion)
        self._ray.get(self._desk.lay.remote(entry))
        return completion

    def close(self) -> None:
        """The worker's model stays open for the next unit."""


class Worker:
    """What runs in a Ray process: databases, embedder and model of its own, opened there."""

    def __init__(self, open_performer: Callable[[], Performs[Any, Any, Any, Any]], desk: Reference) -> None:
        self._ray = importlib.import_module("ray")
        self._desk = desk
        self._performer = open_performer()
        self._holdings: dict[Hashable, object] = {}

    def perform(
        self, unit: object, holdings: Mapping[Hashable, Reference], known: Mapping[str, Completion]
    ) -> object | None:
        """One unit; its banks are fetched once."""
        for bank, reference in holdings.items():
            if bank not in self._holdings:
                self._holdings[bank] = self._ray.get(reference)
        model = DeskModel(self._performer.model, known, self._ray, self._desk)
        return self._performer.asking(model).perform(unit, self._holdings)


class Journey(NamedTuple, Generic[Unit, Collection, Holding]):
    """A unit on its way, the reply it lacked when it left, and how often it has left."""

    unit: Unit
    holdings: Mapping[Collection, Holding]
    lacks: str
    number: int


class RayWorkers(Generic[Unit, Collection, Holding, Result]):
    """A workers over the cluster of RAY_ADDRESS, or over processes of this machine."""

    def __init__(
        self,
        performer: Performs[Unit, Collection, Holding, Result],
        model: Recorded,
        *,
        size: int | None,
        open_there: Callable[[], Performs[Unit, Collection, Holding, Result]],
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
        self._desk = self._ray.remote(num_cpus=0)(CallDesk).remote()
        self._workers = deque(worker.remote(open_there, self._desk) for _ in range(processes))
        self._banks: SingleFlight[Collection, Reference] = SingleFlight()
        self._travelling: dict[Reference, Journey[Unit, Collection, Holding]] = {}
        self._parked: dict[str, list[Journey[Unit, Collection, Holding]]] = defaultdict(list)
        self._done: deque[Done[Unit, Result]] = deque()

    def begin(self, unit: Unit, holdings: Mapping[Collection, Holding]) -> None:
        """Perform the unit from the recording, or send it out with what the recording has of it."""
        self._begin(Journey(unit, holdings, "", 0))

    def next_done(self) -> Done[Unit, Result]:
        """Wait for any unit that was begun; whatever was asked is recorded before anything is made of it."""
        while not self._done:
            [reference], _ = self._ray.wait(list(self._travelling), num_returns=1)
            journey = self._travelling.pop(reference)
            self._model.take_over(self._ray.get(self._desk.take.remote()))
            self._arrive(journey, reference)
            for waiting in self._parked.pop(journey.lacks, ()):
                self._begin(waiting)
        return self._done.popleft()

    def close(self) -> None:
        """Leave the cluster, if it was joined here, or else only end the workers."""
        if self._joined:
            self._ray.shutdown()
            return
        for actor in (*self._workers, self._desk):
            self._ray.kill(actor)

    def _begin(self, journey: Journey[Unit, Collection, Holding]) -> None:
        unit, holdings = journey.unit, journey.holdings
        peeking = Peeking(self._model)
        try:
            self._done.append(Done(unit, self._performer.asking(peeking).perform(unit, holdings)))
        except RecordingMiss as miss:
            if self._model.mode == "replay":
                self._done.append(Done(unit, None, miss))
                return
            lacks = next(reversed(peeking.missing))
            if any(other.lacks == lacks for other in self._travelling.values()):
                self._parked[lacks].append(journey)
            else:
                self._send(journey._replace(lacks=lacks, number=journey.number + 1), peeking.known)
        except SqlcrystalError as error:
            self._done.append(Done(unit, None, error))

    def _send(self, journey: Journey[Unit, Collection, Holding], known: Mapping[str, Completion]) -> None:
        banks = {
            bank: self._banks.get(bank, partial(self._ray.put, holding)) for bank, holding in journey.holdings.items()
        }
        worker = self._workers[0]
        self._workers.rotate(-1)
        self._travelling[worker.perform.remote(journey.unit, banks, known)] = journey

    def _arrive(self, journey: Journey[Unit, Collection, Holding], reference: Reference) -> None:
        """What came of a journey; the unit of a lost worker travels again, with what the worker had asked."""
        failures = self._ray.exceptions
        try:
            self._done.append(Done(journey.unit, self._ray.get(reference)))
        except failures.RayTaskError as error:
            cause = error.cause if isinstance(error.cause, Exception) else error
            self._done.append(Done(journey.unit, None, cause))
        except failures.RayError as error:
            if journey.number < JOURNEYS:
                self._begin(journey)
            else:
                self._done.append(Done(journey.unit, None, ModelUnavailable(f"a Ray worker is gone: {error}")))
