"""A model that replies from a script: shipped for tests and documentation, never for measuring."""

import hashlib
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

from sqlcrystal.errors import BadReply
from sqlcrystal.types import Completion, Message, Sampling

Reply = str | Completion | None
Script = Callable[[Sequence[Message], Sampling], Reply] | Mapping[str, str] | Iterable[str]


class ScriptedModel:
    """Replies by a callable, by regex rules tried in order against the whole prompt, or by a list used up in order.

    Token counts are words, not tokens; latency is zero. It does not guarantee anything about a real model's behaviour.
    """

    def __init__(self, script: Script, *, name: str = "scripted") -> None:
        """Take the script; a mapping is regex → reply, any other iterable is replies in order."""
        self.name = name
        self.digest = hashlib.sha256(f"scripted:{name}".encode()).hexdigest()
        self.prompts: list[tuple[Message, ...]] = []
        self.samplings: list[Sampling] = []
        self.slots = 4
        self._lock = threading.Lock()
        self._reply = _as_callable(script)

    def chat(self, messages: Sequence[Message], *, sampling: Sampling = Sampling()) -> Completion:
        """Give the script's reply to these messages; BadReply when it has none."""
        with self._lock:
            self.prompts.append(tuple(messages))
            self.samplings.append(sampling)
            reply = self._reply(messages, sampling)
        if isinstance(reply, Completion):
            return reply
        if reply is None:
            raise BadReply(f"{self.name}: the script has no reply to …{prompt_text(messages)[-200:]!r}")
        prompt_tokens = sum(len(message.content.split()) for message in messages)
        return Completion(text=reply, prompt_tokens=prompt_tokens, completion_tokens=len(reply.split()))

    def close(self) -> None:
        """Release nothing."""


def prompt_text(messages: Sequence[Message]) -> str:
    """Join all messages to one text, in order."""
    return "\n\n".join(message.content for message in messages)


def _as_callable(script: Script) -> Callable[[Sequence[Message], Sampling], Reply]:
    if callable(script):
        return script
    if isinstance(script, Mapping):
        rules = [(re.compile(pattern, re.DOTALL), reply) for pattern, reply in script.items()]

        def by_rule(messages: Sequence[Message], _: Sampling) -> Reply:
            text = prompt_text(messages)
            return next((reply for pattern, reply in rules if pattern.search(text)), None)

        return by_rule
    replies = iter(script)

    def in_order(_: Sequence[Message], __: Sampling) -> Reply:
        return next(replies, None)

    return in_order
