"""The recording as a model that asks nobody: for plans, and for units that may need no call at all."""

from collections.abc import Callable, Sequence

from sqlcrystal.errors import RecordingMiss
from sqlcrystal.models.recorded import Recorded
from sqlcrystal.models.recording import request_key
from sqlcrystal.types import Completion, Message, Sampling


class Peeking:
    """Gives what is recorded; remembers what it gave, and the lengths of the prompts that it had no reply to."""

    def __init__(self, recorded: Recorded, *, length: Callable[[str], int] = len) -> None:
        """`length` measures a message; a plan counts tokens."""
        self.name, self.digest, self.slots = recorded.name, recorded.digest, recorded.slots
        self._recording, self._length = recorded.recording, length
        self.known: dict[str, Completion] = {}
        self.missing: dict[str, int] = {}

    def chat(self, messages: Sequence[Message], *, sampling: Sampling) -> Completion:
        """The recorded reply, or a miss."""
        key = request_key(self.digest, messages, sampling)
        reply = self.known.get(key) or self._recording.get(key)
        if reply is None:
            if key not in self.missing:
                self.missing[key] = sum(self._length(message.content) for message in messages)
            raise RecordingMiss(f"not recorded: {key[:12]}")
        self.known[key] = reply
        return reply

    def close(self) -> None:
        """Nothing to release: the recording belongs to whoever opened it."""
