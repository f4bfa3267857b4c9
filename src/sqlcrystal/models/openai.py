"""Any endpoint that speaks OpenAI's chat completions: vLLM, Ollama, llama-server, hosted services."""

import hashlib
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from sqlcrystal.config.study import KEY_VARIABLE
from sqlcrystal.errors import BadReply, ConfigError, ModelRejected
from sqlcrystal.listening import listener
from sqlcrystal.models.endpoint import Endpoint, RetryPolicy, TransientError, bad_reply
from sqlcrystal.types import Completion, Message, Sampling


class TokenPrices(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The price of a million tokens, for the accounts of a study."""

    prompt_per_million: float
    completion_per_million: float
    currency: str = "USD"

    def cost(self, *, prompt_tokens: int, completion_tokens: int) -> float:
        """Price that many tokens."""
        return (prompt_tokens * self.prompt_per_million + completion_tokens * self.completion_per_million) / 1_000_000


class OpenAISettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="openai", tag_field="kind"):
    """Where to ask for which model; `identity` stands in for the URL in the digest when one model moves about.

    `extra` is merged into every request body; a null there drops a field the endpoint does not take.
    """

    name: str
    base_url: str
    api_key: str = ""
    keyless: bool = False
    """Send no key unless `api_key` names one, whatever the environment holds: the address came with a study file."""
    identity: str = ""
    concurrency: int = 8
    retry: RetryPolicy = RetryPolicy()
    prices: TokenPrices | None = None
    extra: dict[str, Any] = {}
    headers: dict[str, str] = {}


class OpenAIModel:
    """A chat model behind HTTP; thread-safe.

    It does not guarantee that equal seeds give equal replies, nor that the endpoint serves the same weights tomorrow;
    record a run to make it repeatable. Latency includes retries.
    """

    def __init__(self, settings: OpenAISettings) -> None:
        """Name the model; nothing is connected yet."""
        if not settings.name:
            raise ConfigError("model.name: say which model to ask for, as in http://HOST/v1#NAME")
        self.settings = settings
        self.name = settings.name
        self.prices = settings.prices
        self.digest = endpoint_digest("openai", settings.identity or settings.base_url, settings.name, settings.extra)
        self.slots = settings.concurrency
        self._streams = True
        self._endpoint = Endpoint(
            settings.base_url,
            api_key=settings.api_key or _usual_key(settings),
            concurrency=settings.concurrency,
            policy=settings.retry,
            headers=settings.headers,
        )

    def chat(self, messages: Sequence[Message], *, sampling: Sampling = Sampling()) -> Completion:
        """Give one reply, retried by the policy, or a ModelError that says why there is none."""
        body = {
            "model": self.name,
            "messages": [{"role": message.role, "content": message.content} for message in messages],
            "temperature": sampling.temperature,
            "max_tokens": sampling.max_tokens,
            "seed": sampling.index,
            **self.settings.extra,
        }
        started = time.perf_counter()
        try:
            reply = self._streamed(body) if self._streams and listener() is not None else self._whole(body)
        except _Silence as silence:  # every attempt came back without a word, so that is the answer
            reply = silence.completion
        return msgspec.structs.replace(reply, seconds=time.perf_counter() - started)

    def _whole(self, body: Mapping[str, Any]) -> Completion:
        return self._endpoint.post("/chat/completions", _without_nulls(body), _parse)

    def _streamed(self, body: Mapping[str, Any]) -> Completion:
        """Ask for the reply in pieces, told as they come; an endpoint that refuses is asked for the whole, for good.

        So is one that does not count the tokens of a stream: a whole reply has them.
        """
        streamed = {**body, "stream": True, "stream_options": {"include_usage": True}}
        try:
            reply = self._endpoint.post("/chat/completions", _without_nulls(streamed), _parse, heard=_Pieces)
        except ModelRejected:
            self._streams = False
            return self._whole(body)
        self._streams = bool(reply.prompt_tokens)
        return reply

    def close(self) -> None:
        """Drop the connections."""
        self._endpoint.close()


def _usual_key(settings: OpenAISettings) -> str:
    """Name the variable of the environment that holds the key when the settings name none; empty without a key."""
    return f"${{{KEY_VARIABLE}}}" if os.environ.get(KEY_VARIABLE) and not settings.keyless else ""


def endpoint_digest(kind: str, where: str, name: str, extra: Mapping[str, Any]) -> str:
    """Tell models behind endpoints apart: by the address or its stand-in, the name and every extra field."""
    document = {"kind": kind, "where": where.rstrip("/"), "name": name, "extra": extra}
    return hashlib.sha256(msgspec.json.encode(document, order="sorted")).hexdigest()


class _Content(Struct):
    content: str | None = None


class _Choice(Struct):
    message: _Content
    finish_reason: str | None = None


class _Usage(Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class _ChatReply(Struct):
    choices: list[_Choice]
    usage: _Usage | None = None


_DECODER = msgspec.json.Decoder(_ChatReply)


class _Delta(Struct, frozen=True):
    content: str | None = None


class _PieceChoice(Struct):
    delta: _Delta = _Delta()
    finish_reason: str | None = None


class _Piece(Struct):
    choices: list[_PieceChoice] = []
    usage: _Usage | None = None
    error: Any = None


_PIECE_DECODER = msgspec.json.Decoder(_Piece)
_EVENT = b"data:"


class _Pieces:
    """Gathers the pieces of one streamed reply, and tells who listens the text so far."""

    def __init__(self, *, aloud: bool = True) -> None:
        self._listener = listener() if aloud else None
        self._line = b""
        self._text: list[str] = []
        self._finish_reason = ""
        self._usage = _Usage()

    def __call__(self, piece: bytes) -> None:
        """Take what came, which may end anywhere."""
        *lines, self._line = (self._line + piece).split(b"\n")
        before = len(self._text)
        for line in lines:
            self._take(line.strip())
        if self._listener is not None and len(self._text) > before:
            self._listener("".join(self._text))

    def _take(self, line: bytes) -> None:
        event = line.removeprefix(_EVENT).strip()
        if not line.startswith(_EVENT) or event == b"[DONE]":
            return
        try:
            piece = _PIECE_DECODER.decode(event)
        except msgspec.MsgspecError as error:
            raise bad_reply(
                f"a piece of the reply is none ({error}): {event[:200].decode(errors='replace')!r}"
            ) from None
        if piece.error is not None:
            raise bad_reply(f"the reply ended with an error: {str(piece.error)[:300]}")
        self._usage = piece.usage or self._usage
        for choice in piece.choices[:1]:
            self._text += [choice.delta.content] if choice.delta.content else []
            self._finish_reason = choice.finish_reason or self._finish_reason

    def reply(self) -> _ChatReply:
        """Join the whole reply, as an endpoint gives it that does not stream."""
        if not self._finish_reason:
            raise bad_reply("the reply broke off")
        choice = _Choice(message=_Content("".join(self._text)), finish_reason=self._finish_reason)
        return _ChatReply(choices=[choice], usage=self._usage)


def _joined(answer: bytes) -> _ChatReply:
    """Read a streamed reply that has come to its end."""
    pieces = _Pieces(aloud=False)
    pieces(answer + b"\n")
    return pieces.reply()


class _Silence(BadReply):
    """A whole reply without a word in it."""

    def __init__(self, completion: Completion) -> None:
        super().__init__(f"the reply is empty (finish reason {completion.finish_reason})")
        self.completion = completion


def _parse(answer: bytes) -> Completion:
    try:
        streamed = answer.lstrip().startswith((_EVENT, b":", b"event:"))
        reply = _joined(answer) if streamed else _DECODER.decode(answer)
    except msgspec.MsgspecError as error:
        raise bad_reply(f"the answer is no completion ({error}): {answer[:200].decode(errors='replace')!r}") from None
    if not reply.choices:
        raise bad_reply("the answer has no choices")
    choice, usage = reply.choices[0], reply.usage or _Usage()
    completion = Completion(
        text=choice.message.content or "",
        finish_reason=choice.finish_reason or "stop",
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
    )
    # Reasoning that used up the tokens would do so again, and be billed again; another silence may be the endpoint's.
    if not completion.text.strip() and completion.finish_reason != "length":
        raise TransientError(_Silence(completion))
    return completion


def _without_nulls(body: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in body.items() if value is not None}
