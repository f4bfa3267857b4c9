"""A model behind a recording: replayed from it, filled into it, or asked live and recorded."""

import random
import re
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from enum import StrEnum
from typing import Literal

from msgspec import Struct

from sqlcrystal.errors import ConfigError, RecordingMiss
from sqlcrystal.models.recording import RecordedCall, Recording, request_key
from sqlcrystal.protocols import LanguageModel
from sqlcrystal.types import Completion, Message, Sampling


class Mode(StrEnum):
    """The places a completion may come from."""

    REPLAY = "replay"
    FILL = "fill"
    LIVE = "live"


class Recorded:
    """A language model with its inner model's name and digest; errors pass through and are never recorded.

    Live ignores what was recorded before this object existed. Within its life an identical request is sent once, in
    flight or finished, so that a replay repeats the run. It does not guarantee that across processes.
    """

    def __init__(
        self, model: LanguageModel, recording: Recording, mode: Mode | Literal["replay", "fill", "live"] = Mode.FILL
    ) -> None:
        """Wrap a model; in replay it is only asked for its name and digest."""
        if mode not in tuple(Mode):
            raise ConfigError.unknown("recording mode", mode, tuple(Mode))
        self.name = model.name
        self.digest = model.digest
        self.slots = model.slots
        self.mode = Mode(mode)
        self.recording = recording
        self._model = model
        self._lock = threading.Lock()
        self._in_flight: dict[str, Future[Completion]] = {}
        self._asked: set[str] = set()
        self.sent = 0
        """How many replies the model itself gave."""

    def chat(self, messages: Sequence[Message], *, sampling: Sampling = Sampling()) -> Completion:
        """Give the recorded reply, or by mode a fresh one; a replay that finds none is a RecordingMiss."""
        key = request_key(self.digest, messages, sampling)
        if self.mode is Mode.REPLAY:
            return self._replay(key, messages)
        with self._lock:
            future = self._in_flight.get(key)
            first = future is None
            if future is None:
                future = self._in_flight[key] = Future()
        if first:
            self._settle(future, key, messages, sampling)
        return future.result()

    def take_over(self, entries: Sequence[RecordedCall]) -> None:
        """Record what workers asked the same model elsewhere."""
        self.recording.add(entries)
        with self._lock:
            self._asked.update(entry.key for entry in entries)
            self.sent += len(entries)

    def close(self) -> None:
        """Close the model; the recording belongs to whoever opened it."""
        self._model.close()

    def _replay(self, key: str, messages: Sequence[Message]) -> Completion:
        completion = self.recording.get(key)
        if completion is None:
            raise RecordingMiss(
                f"no recorded completion of {self.name} ({self.digest[:12]}) for prompt {key[:12]}: "
                f"{excerpt(messages)!r}; replay needs it in {self.recording.path.name}, fill would ask the model"
            )
        return completion

    def _settle(self, future: Future[Completion], key: str, messages: Sequence[Message], sampling: Sampling) -> None:
        try:
            completion = self.recording.get(key) if self.mode is Mode.FILL or key in self._asked else None
            if completion is None:
                completion = self._ask(key, messages, sampling)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(completion)
        finally:
            with self._lock:
                del self._in_flight[key]

    def _ask(self, key: str, messages: Sequence[Message], sampling: Sampling) -> Completion:
        completion = self._model.chat(messages, sampling=sampling)
        entry = RecordedCall.of(self, messages, sampling, completion)
        self.recording.add([entry])
        with self._lock:
            self._asked.add(key)
            self.sent += 1
        return completion


class Disagreement(Struct, frozen=True, kw_only=True):
    """A prompt whose live reply was not the recorded one."""

    key: str
    prompt: str
    recorded: str
    live: str


class Verification(Struct, frozen=True, kw_only=True):
    """The re-asked completions that came back word for word."""

    model: str
    asked: int
    agreed: int
    disagreements: tuple[Disagreement, ...]


def verify(recording: Recording, model: LanguageModel, *, n: int, rng: random.Random, jobs: int = 1) -> Verification:
    """Re-ask a random sample of this model's recorded prompts live and compare the texts exactly."""
    entries = [entry for entry in recording.entries() if entry.digest == model.digest]
    if not entries:
        raise ConfigError(f"recording {recording.path}: holds no completion of {model.name} ({model.digest[:12]})")
    # Asked in the recording's order, so that prompts over one database follow each other and share its prefix.
    chosen = [entries[index] for index in sorted(rng.sample(range(len(entries)), min(n, len(entries))))]

    def reask(entry: RecordedCall) -> str:
        return model.chat(entry.messages, sampling=entry.sampling).text

    with ThreadPoolExecutor(max_workers=jobs) as pool:
        live = list(pool.map(reask, chosen))
    disagreements = tuple(
        Disagreement(key=entry.key, prompt=excerpt(entry.messages), recorded=entry.completion.text, live=text)
        for entry, text in zip(chosen, live, strict=True)
        if text != entry.completion.text
    )
    return Verification(
        model=model.name, asked=len(chosen), agreed=len(chosen) - len(disagreements), disagreements=disagreements
    )


def excerpt(messages: Sequence[Message], *, width: int = 200) -> str:
    """Cut from a prompt the part a person recognises it by: its first tables and its question, else its end."""
    text = "\n".join(message.content for message in messages)
    tables = re.findall(r"CREATE TABLE\s+[\"`\[]?(\w+)", text)[:3]
    questions: list[str] = re.findall(r"^\W*question\b\W*(.+)$", text, flags=re.IGNORECASE | re.MULTILINE)
    telling = questions[-1] if questions else " ".join(text.split())[-width:]
    return f"{', '.join(tables)}…: {telling[:width]}" if tables else telling[:width]


class Peeking:
    """Gives what is recorded and asks no model; remembers what it gave, and the lengths of prompts without a reply."""

    def __init__(self, recorded: Recorded, *, length: Callable[[str], int] = len) -> None:
        """Measure messages by `length`; a plan counts tokens."""
        self.name, self.digest, self.slots = recorded.name, recorded.digest, recorded.slots
        self._recording, self._length = recorded.recording, length
        self.known: dict[str, Completion] = {}
        self.missing: dict[str, int] = {}

    def chat(self, messages: Sequence[Message], *, sampling: Sampling) -> Completion:
        """Give the recorded reply, or raise a miss."""
        key = request_key(self.digest, messages, sampling)
        reply = self.known.get(key) or self._recording.get(key)
        if reply is None:
            if key not in self.missing:
                self.missing[key] = sum(self._length(message.content) for message in messages)
            raise RecordingMiss(f"not recorded: {key[:12]}")
        self.known[key] = reply
        return reply

    def close(self) -> None:
        """Release nothing: the recording is closed by its opener."""
