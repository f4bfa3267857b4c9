"""The documents of OpenAI's interface, as its clients read them: replies whole and in pieces, models, usage, errors."""

import secrets
import time
from collections.abc import Mapping

import msgspec
from starlette.responses import Response

from sqlcrystal.interfaces.server.replies import json_reply

DONE = b"data: [DONE]\n\n"
"""The end of a stream."""
PING = b": waiting\n\n"
"""A comment that clients pass over, so that no proxy on the way takes silence for the end."""


class Replying:
    """One reply under way: its id and model stand in the whole of it and in each of its pieces."""

    def __init__(self, model: str) -> None:
        """Give the reply an id of its own."""
        self._id = f"chatcmpl-{secrets.token_hex(12)}"
        self._model = model

    def whole(self, text: str, usage: Mapping[str, int], *, finish: str = "stop", **more: object) -> dict[str, object]:
        """Write the reply as one document."""
        message = {"role": "assistant", "content": text, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
        return {**self._head("chat.completion"), "choices": [choice], "usage": usage, **more}

    def chunk(self, delta: Mapping[str, object], *, finish: str | None = None, **more: object) -> bytes:
        """Write one piece as an event of a stream."""
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return server_event({**self._head("chat.completion.chunk"), "choices": [choice], **more})

    def count(self, usage: Mapping[str, int]) -> bytes:
        """Write the event that holds no text but the tokens, for clients that ask for it."""
        return server_event({**self._head("chat.completion.chunk"), "choices": [], "usage": usage})

    def _head(self, kind: str) -> dict[str, object]:
        return {"id": self._id, "object": kind, "created": int(time.time()), "model": self._model}


def server_event(document: object) -> bytes:
    """Write a document as an event without a name."""
    return b"data: " + msgspec.json.encode(document) + b"\n\n"


def model_document(name: str) -> dict[str, object]:
    """Describe a model by its name."""
    return {"id": name, "object": "model", "created": 0, "owned_by": "sqlcrystal"}


def usage_document(prompt: int, completion: int) -> dict[str, int]:
    """Tell the tokens of one request."""
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def error_document(status: int, detail: str) -> dict[str, object]:
    """Tell an error."""
    kind = {401: "authentication_error", 429: "rate_limit_error"}.get(status, "invalid_request_error")
    kind = "server_error" if status >= 500 else kind
    return {"error": {"message": detail, "type": kind, "param": None, "code": None}}


def error_reply(status: int, detail: object) -> Response:
    """Answer with an error."""
    return json_reply(error_document(status, detail if isinstance(detail, str) else str(detail)), status=status)
