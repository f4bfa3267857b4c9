"""A local model behind OpenAI's interface, with the embedder beside it; no database and no team is here."""

import asyncio
import base64
import secrets
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Annotated, Any, Literal, Protocol

import numpy as np
from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, FastAPI, HTTPException, Request
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from sqlcrystal.errors import ModelRejected, NotFound, UserError
from sqlcrystal.interfaces.server.access import given_token
from sqlcrystal.interfaces.server.chat import ChatBody
from sqlcrystal.interfaces.server.errors import add_errors, status_and_line
from sqlcrystal.interfaces.server.replies import (
    DONE,
    PING,
    PING_SECONDS,
    Replying,
    error_document,
    error_reply,
    event_stream,
    json_reply,
    model_document,
    server_event,
    usage_document,
)
from sqlcrystal.interfaces.server.settings import BodyLimit
from sqlcrystal.protocols import Embedder
from sqlcrystal.types import Completion, Message, Sampling
from sqlcrystal.writing.card import estimate_tokens

LARGEST_BODY = 8 * 2**20
TEXT_ONLY = ("tools", "functions", "logprobs")
"""Fields that ask for more than a text; passing over them would give an answer that their senders cannot read."""


class ServedModel(Protocol):
    """A chat model that ends its reply where the caller says."""

    name: str
    slots: int

    def chat(self, messages: Sequence[Message], *, sampling: Sampling, stop: Sequence[str]) -> Completion:
        """Give one reply, up to the first text of `stop` in it."""
        ...


class ChatRequest(ChatBody):
    """A chat as OpenAI's clients send it; without a temperature the likeliest words are written."""

    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    stream_options: dict[str, Any] | None = None

    def sampling(self) -> Sampling:
        """Tell how the reply is drawn."""
        most = self.max_completion_tokens or self.max_tokens or Sampling().max_tokens
        return Sampling(temperature=self.temperature or 0.0, max_tokens=most, index=self.seed or 0)

    def stops(self) -> tuple[str, ...]:
        """List the texts that end the reply."""
        given = [self.stop] if isinstance(self.stop, str) else self.stop or []
        return tuple(words for words in given if words)

    def refuse_more_than_text(self) -> None:
        """Say what is asked for that is no text."""
        extra = self.model_extra or {}
        asked = [field for field in TEXT_ONLY if extra.get(field)]
        if (extra.get("response_format") or {"type": "text"}).get("type") != "text":
            asked.append("response_format")
        if asked:
            raise UserError(f"{asked[0]}: this model answers in text only; leave it out")


class EmbeddingRequest(BaseModel):
    """Texts to embed as OpenAI's clients send them."""

    model_config = ConfigDict(extra="allow")
    model: str
    input: Any
    encoding_format: Literal["float", "base64"] = "float"

    def texts(self) -> list[str]:
        """List the texts; some clients send numbers of tokens, of a vocabulary that is not ours."""
        given = [self.input] if isinstance(self.input, str) else self.input
        if not isinstance(given, list) or not given or not all(isinstance(text, str) for text in given):
            raise UserError("input: give a text or a list of texts, not tokens (LangChain: check_embedding_ctx_length)")
        return given


class ModelDoor:
    """The routes over one model and one embedder."""

    def __init__(self, model: ServedModel, embedder: Embedder) -> None:
        """Wait in threads, as many as the model has slots; further calls queue."""
        self._model, self._embedder = model, embedder
        self._limiter = CapacityLimiter(model.slots)
        self.router = APIRouter(prefix="/v1")
        self.router.add_api_route("/models", self.models)
        self.router.add_api_route("/models/{name}", self.one_model)
        self.router.add_api_route("/chat/completions", self.chat, methods=["POST"])
        self.router.add_api_route("/embeddings", self.embeddings, methods=["POST"])

    async def models(self) -> Response:
        """List the chat model and the embedder."""
        names = (self._model.name, self._embedder.name)
        return json_reply({"object": "list", "data": [model_document(name) for name in names]})

    async def one_model(self, name: str) -> Response:
        """Describe one of both."""
        return json_reply(model_document(_known(name, self._model.name, self._embedder.name)))

    async def chat(self, body: ChatRequest) -> Response:
        """Reply to a chat, whole or as a stream; a stream comes when the reply is whole, and until then pings."""
        _known(body.model, self._model.name)
        body.refuse_more_than_text()
        messages = [Message(turn.role, turn.text()) for turn in body.messages]
        ask = partial(self._model.chat, messages, sampling=body.sampling(), stop=body.stops())
        call = asyncio.create_task(run_sync(ask, limiter=self._limiter))
        replying = Replying(self._model.name)
        if body.stream:
            counted = bool((body.stream_options or {}).get("include_usage"))
            return event_stream(_streamed(call, replying, counted=counted))
        try:
            reply = await call
        except ModelRejected as error:  # too long a prompt: the caller's to mend
            raise HTTPException(400, str(error)) from None
        return json_reply(replying.whole(reply.text, _usage(reply), finish=reply.finish_reason))

    async def embeddings(self, body: EmbeddingRequest) -> Response:
        """Embed texts."""
        _known(body.model, self._embedder.name)
        texts = body.texts()
        vectors = await run_sync(self._embedder.embed, texts)
        written = [_base64(vector) if body.encoding_format == "base64" else vector.tolist() for vector in vectors]
        data = [{"object": "embedding", "index": index, "embedding": row} for index, row in enumerate(written)]
        tokens = sum(map(estimate_tokens, texts))
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return json_reply({"object": "list", "model": body.model, "data": data, "usage": usage})


def make_model_app(model: ServedModel, embedder: Embedder, *, key: str = "") -> FastAPI:
    """The door to a model and an embedder, which the caller closes; with a key it opens to its holders only."""

    async def holds_the_key(request: Request) -> None:
        given, _ = given_token(request)
        if key and not secrets.compare_digest(given.encode(), key.encode()):
            raise HTTPException(401, "this model is served to holders of its key: Authorization: Bearer …")

    app = FastAPI(title=model.name, docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    app.add_middleware(BodyLimit, limit=LARGEST_BODY)
    add_errors(app, _reply)
    app.include_router(ModelDoor(model, embedder).router, dependencies=[Depends(holds_the_key)])
    return app


async def _streamed(call: "asyncio.Task[Completion]", replying: Replying, *, counted: bool) -> AsyncIterator[bytes]:
    yield replying.chunk({"role": "assistant", "content": ""})
    while not (await asyncio.wait([call], timeout=PING_SECONDS))[0]:
        yield PING
    if error := call.exception():
        yield server_event(error_document(*status_and_line(error)))
        return
    reply = call.result()
    for line in reply.text.splitlines(keepends=True):
        yield replying.chunk({"content": line})
    yield replying.chunk({}, finish=reply.finish_reason)
    if counted:
        yield replying.count(_usage(reply))
    yield DONE


def _base64(vector: NDArray[np.float32]) -> str:
    return base64.b64encode(vector.astype("<f4").tobytes()).decode()


def _usage(reply: Completion) -> dict[str, int]:
    return usage_document(reply.prompt_tokens, reply.completion_tokens)


def _known(name: str, *names: str) -> str:
    if name not in names:
        raise NotFound(f"model: no {name!r} here; choose from {', '.join(names)}")
    return name


def _reply(_request: Request, status: int, detail: object, _headers: dict[str, str] | None) -> Response:
    return error_reply(status, detail)
