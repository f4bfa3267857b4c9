"""Any endpoint that speaks OpenAI's chat completions, asked with patience: retries, backoff, a deadline per call."""

import hashlib
import os
import random
import re
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Struct

from sqlcrystal.config.study import KEY_VARIABLE
from sqlcrystal.errors import (
    BadReply,
    ConfigError,
    ModelError,
    ModelRefusedAccess,
    ModelRejected,
    ModelTimeout,
    ModelUnavailable,
)
from sqlcrystal.types import Completion, Message, Sampling
from sqlcrystal.waiting import listener, patience_of

if TYPE_CHECKING:
    import httpx


T = TypeVar("T")

TRANSIENT_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
_REFERENCE = re.compile(r"\$\{(\w+)\}")
_PUBLIC_HEADER = re.compile(r"(?i)user-agent|http-referer|x-title|accept(-[a-z]+)?|[a-z-]+-version")
"""Headers whose values are no secrets; those of all others come from the environment."""
NO_ACCESS_STATUSES = frozenset({401, 402, 403, 404})


class RetryPolicy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The tries and the time that one call may take; times are in seconds."""

    attempts: int = 6
    timeout: float = 120.0
    deadline: float = 300.0
    first_wait: float = 0.5
    longest_wait: float = 30.0

    def __post_init__(self) -> None:
        """Refuse a policy under which no call could end well."""
        for field in ("attempts", "timeout", "deadline"):
            if getattr(self, field) <= 0:
                raise ValueError(f"{field} must be above 0")

    def wait(self, attempt: int, retry_after: float) -> float:
        """Compute the wait after a failed attempt: doubling with jitter, never less than the server asked for."""
        backoff = min(self.longest_wait, self.first_wait * 2.0 ** (attempt - 1))
        return max(retry_after, backoff * random.uniform(0.5, 1.0))


class TransientError(Exception):
    """A failure worth another attempt: the error to raise if there is none, and the wait that the server asked for."""

    def __init__(self, error: ModelError, *, retry_after: float = 0.0) -> None:
        """Carry the error a caller would see."""
        super().__init__(str(error))
        self.error = error
        self.retry_after = retry_after


class Endpoint:
    """Posts JSON and parses the answer; safe for many threads, of which `concurrency` are served at once.

    The deadline starts when a call is let through and holds while waiting, connecting and reading the body; it does not
    guarantee against a server that sends its response headers byte by byte. A request that timed out may still have
    been answered and billed by the server.
    """

    def __init__(
        self, base_url: str, *, api_key: str, concurrency: int, policy: RetryPolicy, headers: Mapping[str, str]
    ) -> None:
        """Check the settings; nothing is connected, and the key is not read, before the first call."""
        if not base_url.startswith(("http://", "https://")):
            raise ConfigError(f"model.base_url: {without_user(base_url)!r} is no http:// or https:// URL")
        if without_user(base_url) != base_url:
            raise ConfigError("model.base_url: holds a user or password; a secret is never written in a URL")
        for name, value in headers.items():
            if not _PUBLIC_HEADER.fullmatch(name) and not _REFERENCE.search(value):
                raise ConfigError(
                    f"model.headers.{name}: name an environment variable as ${{NAME}}; a literal would lie in every run"
                )
        if api_key and not re.fullmatch(r"\$\{\w+\}", api_key):
            raise ConfigError(
                "model.api_key: name an environment variable as ${NAME}; a key is never written in a file"
            )
        if concurrency < 1:
            raise ConfigError(f"model.concurrency: {concurrency} is below 1")
        self.base_url = base_url.rstrip("/")
        self.policy = policy
        self._api_key = api_key
        self._headers = dict(headers)
        self._concurrency = concurrency
        self._free = threading.BoundedSemaphore(concurrency)
        self._lock = threading.Lock()
        self._client: httpx.Client | None = None

    def post(
        self,
        path: str,
        body: Mapping[str, Any],
        parse: Callable[[bytes], T],
        *,
        heard: Callable[[], Callable[[bytes], None]] | None = None,
    ) -> T:
        """Post until an answer parses, the attempts are used up or the deadline passes.

        `heard` makes, for each attempt anew, a hearer of the pieces of its answer as they come.
        """
        client, content, policy = self._connect(), msgspec.json.encode(body), self.policy
        with self._free:
            patience = patience_of(policy.deadline)
            ends = time.monotonic() + patience.left
            for attempt in range(1, policy.attempts + 1):
                try:
                    return parse(self._send(client, path, content, ends, heard() if heard is not None else None))
                except TransientError as failure:
                    if attempt == policy.attempts:
                        raise failure.error from None
                    wait = policy.wait(attempt, failure.retry_after)
                    if time.monotonic() + wait >= ends:
                        raise ModelTimeout(
                            f"{self.base_url}: the deadline of {patience.seconds:g} s leaves no time for attempt "
                            f"{attempt + 1}; last failure: {failure}"
                        ) from None
                time.sleep(wait)
        raise AssertionError("unreachable")

    def close(self) -> None:
        """Drop every connection; the next call opens new ones."""
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None

    def _connect(self) -> "httpx.Client":
        with self._lock:
            if self._client is None:
                filled = {
                    name: _REFERENCE.sub(lambda match, name=name: _variable(match[1], f"model.headers.{name}"), value)  # type: ignore[misc]
                    for name, value in self._headers.items()
                }
                headers = {**filled, "content-type": "application/json"}
                if self._api_key:
                    headers["authorization"] = f"Bearer {_from_environment(self._api_key)}"
                import httpx  # it loads slowly, and only those who ask an endpoint need it

                limits = httpx.Limits(max_connections=self._concurrency, max_keepalive_connections=self._concurrency)
                self._client = httpx.Client(headers=headers, limits=limits)
            return self._client

    def _send(
        self, client: "httpx.Client", path: str, content: bytes, ends: float, heard: Callable[[bytes], None] | None
    ) -> bytes:
        """Make one attempt; its own time is cut at the deadline."""
        import httpx

        allowed = min(self.policy.timeout, ends - time.monotonic())
        if allowed <= 0:
            raise ModelTimeout(f"{self.base_url}: no time is left for a call")
        cut = time.monotonic() + allowed
        try:
            with client.stream("POST", self.base_url + path, content=content, timeout=allowed) as response:
                answer = _read_until(response, cut, heard if response.status_code == 200 else None)
        except (httpx.TransportError, httpx.DecodingError, OSError) as error:
            now = time.monotonic()
            if now >= ends:
                raise ModelTimeout(f"{self.base_url}: no answer within {self.policy.deadline:g} s") from None
            reason = "timed out" if now >= cut else f"{type(error).__name__}: {error}".rstrip(": ")
            raise TransientError(ModelUnavailable(f"{self.base_url}: {reason}")) from None
        self._check_status(response, answer)
        return answer

    def _check_status(self, response: "httpx.Response", answer: bytes) -> None:
        status = response.status_code
        if status == 200:
            return
        problem = f"{self.base_url}: HTTP {status}: {' '.join(answer.decode(errors='replace').split())[:300]}"
        if status in TRANSIENT_STATUSES or status >= 500:
            retry_after = _retry_after(response.headers.get("retry-after", ""))
            raise TransientError(ModelUnavailable(problem), retry_after=retry_after)
        if status in (401, 403):
            problem += f" ({self._key_from()})"
        error = (ModelRefusedAccess if status in NO_ACCESS_STATUSES else ModelRejected)(problem)
        if status in (401, 403) and not self._api_key:
            error.hinting("set SQLCRYSTAL_API_KEY, or name the variable that holds the key with --api-key-env")
        raise error

    def _key_from(self) -> str:
        if self._api_key:
            return f"the key came from {self._api_key[2:-1]}"
        return "no key was sent"


def bad_reply(message: str) -> TransientError:
    """Make the error of an answer that is none; another attempt may bring one."""
    return TransientError(BadReply(message))


def _read_until(response: "httpx.Response", ends: float, heard: Callable[[bytes], None] | None) -> bytes:
    """Read the whole body, and cut the connection when time is up: a read timeout alone restarts with every byte."""
    connection = response.extensions["network_stream"].get_extra_info("socket")

    def cut() -> None:
        with suppress(OSError, AttributeError):
            connection.shutdown(socket.SHUT_RDWR)

    watchdog = threading.Timer(max(0.0, ends - time.monotonic()), cut)
    watchdog.daemon = True
    watchdog.start()
    try:
        if heard is None:
            return response.read()
        pieces = []
        for piece in response.iter_bytes():
            pieces.append(piece)
            heard(piece)
        return b"".join(pieces)
    finally:
        watchdog.cancel()


def _retry_after(header: str) -> float:
    """Seconds from now, from a number or an HTTP date; 0 when the header says nothing usable."""
    with suppress(ValueError):
        return max(0.0, float(header))
    with suppress(ValueError, TypeError):
        return max(0.0, (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds())
    return 0.0


def _from_environment(reference: str) -> str:
    return _variable(reference[2:-1], "model.api_key")


def _variable(name: str, key: str) -> str:
    value = os.environ.get(name, "")
    if not value:
        raise ConfigError(f"{key}: the environment variable {name} is not set")
    return value


def without_user(url: str) -> str:
    """Strip the user and password that may stand before the host of a URL."""
    return re.sub(r"(?<=//)[^/?#]*@", "", url)


class TokenPrices(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The price of a million tokens, for the accounts of a study."""

    prompt_per_million: float
    completion_per_million: float
    currency: str = "USD"

    def cost(self, *, prompt_tokens: int, completion_tokens: int) -> float:
        """Price that many tokens."""
        return (prompt_tokens * self.prompt_per_million + completion_tokens * self.completion_per_million) / 1_000_000


class OpenAISettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="openai", tag_field="kind"):
    """A model and its endpoint; `identity` stands in for the URL in the digest when one model moves about.

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
