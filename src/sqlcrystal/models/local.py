"""A GGUF model run in this process: by llama.cpp, whose read beginnings are kept on disk, or batched for studies.

A schema with its profile takes seconds to read, and the question after it a moment. What is kept is a cache, and may be
deleted at any time. llama.cpp ends the process over a file that is cut short, so each bears the digest of its bytes.
"""

import hashlib
import json
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from msgspec import Struct

from sqlcrystal.errors import BadReply, ConfigError, ModelError, ModelRejected, ModelTimeout, ModelUnavailable
from sqlcrystal.models.catalogue import SAMPLER, LocalWeights, cache_root
from sqlcrystal.types import Completion, Message, Sampling
from sqlcrystal.waiting import Patience, is_over, listener, patience_of

if TYPE_CHECKING:
    from sqlcrystal.models.batch_engine import BatchEngine

BeginningOf: TypeAlias = Callable[[Sequence[Message]], Sequence[Message]]
"""Cuts a prompt after the part that other questions share; nothing where it has none."""

LEAST_CHARACTERS = 1_000
"""A shorter beginning is read about as fast as its file."""
KEPT = ".bin"
SECONDS = 60.0
"""For the server in this process to read or write a file."""


def kept_beginnings() -> Path:
    """Tell where beginnings are kept."""
    return cache_root() / "beginnings"


def delete_beginnings() -> int:
    """Delete every beginning, since each may hold any value that a profile shows; tells how many there were."""
    files = list(kept_beginnings().glob("*"))
    for file in files:
        file.unlink(missing_ok=True)
    return len(files)


class KeptBeginnings:
    """The beginnings of one model on this machine; its one slot is filled from them, and they from it."""

    def __init__(self, beginning_of: BeginningOf, *, weights: str, mebibytes: int) -> None:
        """Keep at most so much on disk, of prompts read with these weights by this llama.cpp."""
        self._beginning_of = beginning_of
        self._weights = weights
        self._bytes = mebibytes * 2**20
        self._folder = kept_beginnings()
        self._seen: set[str] = set()

    def fill(self, slot: "Slot", messages: Sequence[Message]) -> Sequence[Message]:
        """Fill the slot with the beginning of a prompt; gives the beginning if it is still to be kept."""
        beginning = self._beginning_of(messages)
        name = self._name(beginning)
        if name in self._seen or sum(len(message.content) for message in beginning) < LEAST_CHARACTERS:
            return ()
        self._seen.add(name)
        with suppress(OSError):  # another process may delete the file meanwhile
            for file in self._folder.glob(f"{name}-*{KEPT}"):
                if file.name == f"{name}-{_digest(file)}{KEPT}" and slot.restore(file):
                    os.utime(file)
                    return ()
                file.unlink(missing_ok=True)
        return beginning

    def keep(self, slot: "Slot", beginning: Sequence[Message]) -> None:
        """Keep the beginning that the slot holds, and drop those that were not used for longest."""
        name = self._name(beginning)
        part = self._folder / f"{name}-{os.getpid()}.part"
        with suppress(OSError):  # a full or read-only disk costs the next command its time, nothing else
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if slot.save(part):
                part.chmod(0o600)
                part.replace(self._folder / f"{name}-{_digest(part)}{KEPT}")
            self._drop_oldest()

    def _name(self, beginning: Sequence[Message]) -> str:
        text = json.dumps([self._weights, *((message.role, message.content) for message in beginning)])
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]

    def _drop_oldest(self) -> None:
        left = self._bytes
        for file in sorted(self._folder.glob(f"*{KEPT}"), key=lambda file: file.stat().st_mtime, reverse=True):
            left -= file.stat().st_size
            if left < 0:
                file.unlink(missing_ok=True)


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()[:32]


class Slot:
    """The slot of a llama.cpp server in this process; its memory is saved and restored over the server's address."""

    def __init__(self, address: str, *, key: str) -> None:
        """Know the address, and the key that the server asks for."""
        self._address = address
        self._key = key

    def save(self, file: Path) -> bool:
        """Write what the slot has read to a file of the server's folder; False where it could not."""
        return self._do("save", file)

    def restore(self, file: Path) -> bool:
        """Read it back; False where the file is of no use."""
        return self._do("restore", file)

    def _do(self, action: str, file: Path) -> bool:
        body = json.dumps({"filename": file.name})
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        with _connected(self._address) as connection:
            try:
                connection.request("POST", f"/slots/0?action={action}", body, headers)
                return connection.getresponse().status == 200
            except (OSError, HTTPException):
                return False


@contextmanager
def _connected(address: str) -> Iterator[HTTPConnection]:
    place = urlsplit(address)
    connection = HTTPConnection(place.hostname or "", place.port, timeout=SECONDS)
    try:
        yield connection
    finally:
        connection.close()


class LocalSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="local", tag_field="kind"):
    """The weights to run, and how; only `name` or `path` (a .gguf of your own) changes what is answered."""

    name: str = ""
    path: str = ""
    slots: int = 1
    context: int = 8192
    deadline: float = 1800.0
    threads: int = 0
    reuse_prefix: bool = True
    cache_mib: int = 1024
    kept_mib: int = 512


class LocalModel:
    """Thread-safe for any number of callers; `slots` of them are served at once.

    Weights are read on the first call, so a replay needs none. It does not guarantee the same text twice: greedy
    decoding changes with what else is in the batch; record a run to make it repeatable. The deadline starts when a
    call gets its slot and is looked at after every token and every 512 tokens of the prompt.
    """

    def __init__(self, settings: LocalSettings) -> None:
        """Name the model; nothing is loaded yet."""
        if settings.slots < 1:
            raise ConfigError(f"slots: {settings.slots} is below 1")
        self.settings = settings
        self._weights = LocalWeights.of(name=settings.name, path=settings.path)
        self.name, self.digest, self.slots = self._weights.name, self._weights.digest, settings.slots
        self._lock = threading.Lock()
        self._free = threading.BoundedSemaphore(settings.slots)
        self._server: Any = None
        self._key = secrets.token_urlsafe()
        self._beginnings: KeptBeginnings | None = None

    def keep_beginnings(self, beginning_of: BeginningOf) -> None:
        """Keep what prompts begin with on disk from now on; only a model of one slot knows which slot holds it."""
        kept = self.settings.kept_mib if self.settings.reuse_prefix and self.slots == 1 else 0
        if kept:
            read_by = f"{self.digest} {_runtime()} {self.settings.context}"
            self._beginnings = KeptBeginnings(beginning_of, weights=read_by, mebibytes=kept)

    def chat(
        self, messages: Sequence[Message], *, sampling: Sampling = Sampling(), stop: Sequence[str] = ()
    ) -> Completion:
        """Give one reply, up to the first text of `stop` in it.

        A prompt longer than a slot's context is a ModelRejected that names both lengths.
        """
        server = self.load()
        request = {
            **_request(messages, sampling, reuse_prefix=self.settings.reuse_prefix),
            **({"stop": list(stop)} if stop else {}),
        }
        if not self._free.acquire(timeout=patience_of(threading.TIMEOUT_MAX).left):
            raise ModelTimeout(f"model {self.name}: no slot became free in time")
        try:
            with self._beginning(server, messages):
                reply = _StreamedReply(patience_of(self.settings.deadline))
                server.handle_chat_completions(request, reply.receive)
                return reply.completion(self.name)
        except ValueError as error:
            raise ModelRejected(f"model {self.name}: {error}") from None
        finally:
            self._free.release()

    @contextmanager
    def _beginning(self, server: Any, messages: Sequence[Message]) -> Iterator[None]:
        """Read the beginning of a prompt from disk before its reply, or keep it there after the first one."""
        if self._beginnings is None:
            yield
            return
        slot = Slot(server.listening_address, key=self._key)
        new = self._beginnings.fill(slot, messages)
        yield
        if new and not is_over():
            # The slot then holds the beginning without the question, which is nobody's to keep.
            request = _request(new, Sampling(max_tokens=1), reuse_prefix=True)
            server.handle_chat_completions(request, lambda _: False)
            self._beginnings.keep(slot, new)

    def load(self) -> Any:
        """Read the weights if they are not in memory yet, refusing a file that is not what its name says."""
        with self._lock:
            if self._server is None:
                self._weights.check()
                self._server = _start_server(self._weights.path, self.settings, key=self._key)
            return self._server

    def close(self) -> None:
        """Free the weights; the next call reads them again."""
        with self._lock:
            self._server = None


def _start_server(path: Path, settings: LocalSettings, *, key: str) -> Any:
    try:
        import xllamacpp
    except ImportError:
        raise ConfigError(
            "model: running weights in process needs the extra: pip install 'sqlcrystal[local]'"
        ) from None
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_parallel = settings.slots
    # llama.cpp divides n_ctx among the slots; `context` is what one prompt and its reply may use.
    params.n_ctx = settings.context * settings.slots
    params.cache_ram_mib = settings.cache_mib if settings.reuse_prefix else 0
    params.n_batch = 512  # the deadline is looked at once per batch
    params.verbosity = -1
    # It listens on this machine, uncalled for: without the key other users of it could ask, and read prompts.
    params.api_keys, params.endpoint_slots, params.ui = [key], False, False
    params.slot_save_path = f"{kept_beginnings()}/"
    threads = settings.threads or free_cores(os.cpu_count() or 1, _load())
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    try:
        return xllamacpp.Server(params)
    except RuntimeError as error:
        raise ModelUnavailable(f"model {path.stem}: llama.cpp cannot load {path}: {error}") from error


def free_cores(cores: int, load: float) -> int:
    """Count the cores that other work leaves, at least one: llama.cpp's threads wait for the slowest of them."""
    return max(1, min(cores, round(cores - load)))


def _load() -> float:
    """Tell how many others want a core; nothing where the system does not say."""
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):  # Windows has none
        return 0.0


def _request(messages: Sequence[Message], sampling: Sampling, *, reuse_prefix: bool) -> dict[str, Any]:
    return {
        "messages": [{"role": message.role, "content": message.content} for message in messages],
        "temperature": sampling.temperature,
        "max_tokens": sampling.max_tokens,
        "seed": sampling.index,
        "cache_prompt": reuse_prefix,
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_progress": True,
        **SAMPLER,
    }


class _StreamedReply:
    """Gathers the pieces of one streamed reply, and stops the stream when its time is up."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience  # taken here: llama.cpp may call back from a thread of its own
        self._listener = listener()
        self._raised: BaseException | None = None
        self._started = time.perf_counter()
        self._timed_out = False
        self._error: Mapping[str, Any] = {}
        self._text: list[str] = []
        self._finish_reason = ""
        self._usage: Mapping[str, int] = {}

    def receive(self, piece: Mapping[str, Any]) -> bool:
        """Take one piece; True tells llama.cpp to stop."""
        self._error = piece.get("error") or self._error
        self._usage = piece.get("usage") or self._usage
        for choice in piece.get("choices", ()):
            self._text.append(choice["delta"].get("content") or "")
            self._finish_reason = choice["finish_reason"] or self._finish_reason
        self._timed_out = not self._usage and not self._patience.left
        self._tell()
        return self._timed_out or self._raised is not None

    def _tell(self) -> None:
        """Let the listener hear the text so far; what it raises ends the reply, and must not pass through llama.cpp."""
        if self._listener is None or not self._text:
            return
        try:
            self._listener("".join(self._text))
        except BaseException as error:
            self._raised, self._listener = error, None

    def completion(self, name: str) -> Completion:
        """Join the whole reply, or raise why there is none."""
        if self._raised is not None:
            raise self._raised
        if self._error:
            raise _refusal(name, self._error)
        if self._timed_out:
            raise ModelTimeout(f"model {name}: no whole reply within {self._patience.seconds:g} s")
        if not self._usage:
            raise BadReply(f"model {name}: the reply broke off (finish reason {self._finish_reason or 'unknown'})")
        return Completion(
            text="".join(self._text),
            finish_reason=self._finish_reason,
            prompt_tokens=self._usage["prompt_tokens"],
            completion_tokens=self._usage["completion_tokens"],
            seconds=time.perf_counter() - self._started,
            runtime=_runtime(),
        )


def _runtime() -> str:
    return f"llama.cpp, xllamacpp {version('xllamacpp')}, as packed"


def _refusal(name: str, error: Mapping[str, Any]) -> ModelError:
    if error.get("type") == "exceed_context_size_error":
        return ModelRejected(
            f"model {name}: the prompt has {error['n_prompt_tokens']} tokens, "
            f"a slot holds {error['n_ctx']}; raise `context` or shorten the prompt"
        )
    kind = ModelRejected if 400 <= int(error.get("code", 500)) < 500 else ModelUnavailable
    return kind(f"model {name}: {error.get('message', error)}")


class BatchedSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="batched", tag_field="kind"):
    """The weights to run, and how; only `name` or `path` (a .gguf of your own) changes what is answered."""

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
