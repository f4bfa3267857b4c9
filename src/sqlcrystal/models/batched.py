"""A GGUF model for studies: many calls at once, with the common beginning of their prompts read once."""

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from sqlcrystal.errors import ConfigError, ModelRejected
from sqlcrystal.models.catalogue import LocalWeights
from sqlcrystal.types import Completion, Message, Sampling

if TYPE_CHECKING:
    from sqlcrystal.models.batch_engine import BatchEngine


class BatchedSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="batched", tag_field="kind"):
    """Which weights to run and how; only `name` or `path` (a .gguf of your own) changes what is answered."""

    name: str = ""
    path: str = ""
    slots: int = 32
    context: int = 8192
    threads: int = 0
    cache_mib: int = 2048


class BatchedModel:
    """Thread-safe; `slots` replies are written together, token by token, and a new call joins between two tokens.

    Weights, digest and sampling are those of the local model, so the two share recordings. They add up in another order
    and precision, so that one greedy reply in eight differs; nor does it guarantee the same text twice.
    """

    def __init__(self, settings: BatchedSettings) -> None:
        """Name the model; nothing is loaded yet."""
        if settings.slots < 1:
            raise ConfigError(f"slots: {settings.slots} is below 1")
        self.settings = settings
        self._weights = LocalWeights.of(name=settings.name, path=settings.path)
        self.name, self.digest, self.slots = self._weights.name, self._weights.digest, settings.slots
        self._lock = threading.Lock()
        self._engine: BatchEngine | None = None

    def chat(
        self, messages: Sequence[Message], *, sampling: Sampling = Sampling(), stop: Sequence[str] = ()
    ) -> Completion:
        """Give one reply, up to the first text of `stop` in it.

        A prompt longer than the context is a ModelRejected that names both lengths.
        """
        engine = self.load()
        prompt = engine.text.tokens(messages)
        if len(prompt) >= engine.context:
            raise ModelRejected(
                f"model {self.name}: the prompt has {len(prompt)} tokens, "
                f"a slot holds {engine.context}; raise `context` or shorten the prompt"
            )
        return engine.ask(prompt, sampling, stop).result()

    def load(self) -> "BatchEngine":
        """Unpack the weights if they are not in memory yet, refusing a file that is not what its name says."""
        with self._lock:
            if self._engine is None:
                self._weights.check()
                self._engine = _engine(self._weights, self.settings)
            return self._engine

    def close(self) -> None:
        """Free the weights once the calls under way are over; the next call unpacks them again."""
        with self._lock:
            engine, self._engine = self._engine, None
        if engine is not None:
            engine.end()


def _engine(weights: LocalWeights, settings: BatchedSettings) -> "BatchEngine":
    try:
        from sqlcrystal.models.batch_engine import BatchEngine
    except ImportError:
        raise ConfigError("model: many replies at once need the extra: pip install 'sqlcrystal[batched]'") from None
    return BatchEngine(
        weights,
        slots=settings.slots,
        context=settings.context,
        threads=settings.threads,
        cache_mib=settings.cache_mib,
    )
