"""The endpoint of `make peers`: `model serve` in this process, with every call counted under its caller's key."""

import socket
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import uvicorn
from msgspec.structs import replace
from starlette.types import ASGIApp, Receive, Scope, Send

from sqlcrystal.interfaces.server.model_app import ServedModel, make_model_app
from sqlcrystal.models.embeddings import WordLlamaEmbedder
from sqlcrystal.types import Call, Completion, Message, Sampling

LONGEST_REPLY = 384
"""Tokens of one reply, whichever tool asks, as in the studies."""
_caller: ContextVar[str] = ContextVar("caller", default="")


class CountedModel:
    """A model that remembers what each caller asked and was told."""

    def __init__(self, model: ServedModel) -> None:
        """Count nothing yet."""
        self.name, self.slots = model.name, model.slots
        self._model = model
        self._lock = threading.Lock()
        self._calls: dict[str, list[Call]] = defaultdict(list)

    def chat(self, messages: Sequence[Message], *, sampling: Sampling, stop: Sequence[str] = ()) -> Completion:
        """Give the model's reply."""
        sampling = replace(sampling, max_tokens=min(sampling.max_tokens, LONGEST_REPLY))
        reply = self._model.chat(messages, sampling=sampling, stop=stop)
        call = Call(purpose="peer", messages=tuple(messages), sampling=sampling, completion=reply)
        with self._lock:
            self._calls[_caller.get()].append(call)
        return reply

    def taken(self, key: str) -> list[Call]:
        """Hand over a caller's calls since the last time."""
        with self._lock:
            return self._calls.pop(key, [])


class _Named:
    """ASGI middleware: notes whose key a request bears."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = dict(scope.get("headers", ())).get(b"authorization", b"").decode()
        _caller.set(given.removeprefix("Bearer "))
        await self._app(scope, receive, send)


@contextmanager
def endpoint(model: CountedModel) -> Iterator[str]:
    """Serve a model on a free port of this machine; gives the base URL."""
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    app = _Named(make_model_app(model, WordLlamaEmbedder()))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.05)
        if not thread.is_alive():
            raise RuntimeError("the endpoint did not start")
    try:
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/v1"
    finally:
        server.should_exit = True
        thread.join(30)
        bound.close()
