"""One HTTP endpoint asked with patience: retries, backoff, bounded concurrency and a hard deadline per call."""

import os
import random
import re
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Struct

from sqlcrystal.errors import (
    BadReply,
    ConfigError,
    ModelError,
    ModelRefusedAccess,
    ModelRejected,
    ModelTimeout,
    ModelUnavailable,
)
from sqlcrystal.patience import patience_of

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

TRANSIENT_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
_REFERENCE = re.compile(r"\$\{(\w+)\}")
_PUBLIC_HEADER = re.compile(r"(?i)user-agent|http-referer|x-title|accept(-[a-z]+)?|[a-z-]+-version")
"""Headers whose values are no secrets; those of all others come from the environment."""
NO_ACCESS_STATUSES = frozenset({401, 402, 403, 404})


class RetryPolicy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How often and how long one call may try; times are in seconds."""

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

        `heard` makes, for each attempt anew, what hears the pieces of its answer as they come.
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
