"""A model served by Ray workers: one copy in each, on this machine or over a cluster.

It does not guarantee which worker answers, nor that workers of different hardware reply alike; record a run to fix it.
"""

import importlib
import queue
from collections.abc import Mapping, Sequence
from typing import Any

from sqlcrystal.errors import ConfigError, ModelUnavailable, SqlcrystalError
from sqlcrystal.models.opening import open_model
from sqlcrystal.protocols import LanguageModel
from sqlcrystal.types import Completion, Message, Sampling


class Worker:
    """What runs in a Ray process: a model of its own, opened there."""

    def __init__(self, spec: str | Mapping[str, Any]) -> None:
        """Open the model; weights are read on the first call."""
        self._model = open_model(spec)

    def chat(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        """One reply."""
        return self._model.chat(messages, sampling=sampling)


class RayModel:
    """A language model with its workers' name and digest; as many calls at once as there are workers."""

    def __init__(self, spec: str | Mapping[str, Any], *, workers: int) -> None:
        """Start the workers, joining the cluster of RAY_ADDRESS if there is one."""
        try:
            ray: Any = importlib.import_module("ray")
        except ImportError:
            raise ConfigError("--engine: ray needs the extra: pip install 'sqlcrystal[ray]'") from None
        named: LanguageModel = open_model(spec)
        self.name, self.digest, self.slots = named.name, named.digest, workers
        self._ray = ray
        if not ray.is_initialized():
            ray.init(include_dashboard=False, log_to_driver=False, configure_logging=False)
        remote: Any = ray.remote(Worker)
        self._free: queue.SimpleQueue[Any] = queue.SimpleQueue()
        for _ in range(workers):
            self._free.put(remote.remote(spec))

    def chat(self, messages: Sequence[Message], *, sampling: Sampling) -> Completion:
        """One reply from a free worker; an error that the model raised there is raised here."""
        worker = self._free.get()
        try:
            reply: Completion = self._ray.get(worker.chat.remote(list(messages), sampling))
        except self._ray.exceptions.RayTaskError as error:
            cause = error.cause
            raise (
                cause if isinstance(cause, SqlcrystalError) else ModelUnavailable(f"a Ray worker failed: {cause}")
            ) from None
        except self._ray.exceptions.RayError as error:
            raise ModelUnavailable(f"a Ray worker is gone: {error}") from None
        finally:
            self._free.put(worker)
        return reply

    def close(self) -> None:
        """Leave the cluster, ending the workers."""
        self._ray.shutdown()
