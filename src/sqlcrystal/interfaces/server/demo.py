"""The demo: Quarry's databases, and the replies a real model gave to its questions, played back."""

import hashlib
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from sqlcrystal.bank import Scope
from sqlcrystal.bank.records import EVERY_DATABASE
from sqlcrystal.benchmarks.quarry import load
from sqlcrystal.config import DatabaseEntry, TeamFile
from sqlcrystal.config.bundled import FOLDERS
from sqlcrystal.errors import DataError, ModelRejected
from sqlcrystal.models.recording import RecordedCall, Recording
from sqlcrystal.serving import Crystal
from sqlcrystal.types import Completion, Message, Sampling

MODEL = "qwen2.5-coder-1.5b"
RECORDING = Path("recordings/quarry.jsonl.xz")
WITHOUT_CARDS = "recorded without these cards"
"""How a completion ended that was recorded for the question alone; the page says so."""
HOLD_OUT = 0.2
_CARDS = re.compile(r"\n\[Relevant experience.*?(?=\n\[Question\]\n)", re.DOTALL)
_ASKED = re.compile(r"\[Question\]\n(?P<text>.*?)(?:\nHint: [^\n]*)?\n[^\n]*```sql block\.?$", re.DOTALL)


class NotRecorded(ModelRejected):
    """A prompt that the recording does not hold."""


class Prompt(NamedTuple):
    """A prompt by what counts: the rules, the schema and the question, without cards and hints."""

    system: str
    schema: str
    question: str


class RecordedReplies:
    """A model that says what it once said: to the same prompt, or to the same question without cards; nothing else."""

    def __init__(self, entries: Iterator[RecordedCall]) -> None:
        """Index the greedy replies of one model."""
        self.name = f"{MODEL}, recorded"
        self.digest = hashlib.sha256(self.name.encode()).hexdigest()
        self.slots = 4
        self._exact: dict[tuple[Message, ...], Completion] = {}
        self._bare: dict[Prompt, Completion] = {}
        for entry in entries:
            if entry.model != MODEL or entry.sampling.temperature or entry.sampling.index:
                continue
            self._exact[entry.messages] = entry.completion
            if not _CARDS.search(entry.messages[-1].content) and (prompt := _prompt(entry.messages)):
                self._bare[prompt] = entry.completion

    def chat(self, messages: Sequence[Message], *, sampling: Sampling = Sampling()) -> Completion:  # noqa: ARG002
        """The recorded reply, whatever the sampling; NotRecorded says how to get a live model."""
        exact = self._exact.get(tuple(messages))
        if exact is not None:
            return exact
        prompt = _prompt(messages)
        bare = self._bare.get(prompt) if prompt else None
        if bare is None:
            raise NotRecorded(
                "Not in the recording: this demo plays back what a model once replied. For any question, connect a "
                "model (sqlcrystal model pull, then sqlcrystal serve); the page /demo lists what was recorded."
            )
        return Completion(
            text=bare.text,
            finish_reason=WITHOUT_CARDS if _CARDS.search(messages[-1].content) else bare.finish_reason,
            prompt_tokens=bare.prompt_tokens,
            completion_tokens=bare.completion_tokens,
            seconds=bare.seconds,
        )

    def close(self) -> None:
        """Nothing to release."""


class DemoCrystal(Crystal):
    """A Crystal that knows which questions were recorded."""

    questions: dict[str, list[str]]

    def recorded_questions(self, database: str) -> list[str]:
        """What can be asked of a database."""
        return self.questions.get(database, [])


@contextmanager
def demo_crystal(store: str | None = None) -> Iterator[DemoCrystal]:
    """Everything the demo needs; without a store of its own, what was done is gone when it ends."""
    benchmark = load()
    recording = Recording(_recording_path())
    replies = RecordedReplies(recording.entries())
    recording.close()
    with tempfile.TemporaryDirectory(prefix="sqlcrystal-demo-") as folder:
        entries = {name: _entry(place) for name, place in benchmark.locations.items()}
        team = TeamFile(databases=entries, store=store or str(Path(folder) / "demo.db"), model=MODEL, budget=1)
        crystal = DemoCrystal(team, model=replies)
        crystal.questions = {
            name: [case.question.text for case in benchmark.cases if case.question.database == name]
            for name in benchmark.databases
        }
        try:
            yield crystal
        finally:
            crystal.close()


def _entry(place: str) -> DatabaseEntry:
    return DatabaseEntry(url=place, replay=True, hold_out=HOLD_OUT)


def demo_token(crystal: Crystal) -> str:
    """A token for whoever started the demo."""
    everything = [(EVERY_DATABASE, scope) for scope in Scope]
    return crystal.store.tokens.issue("you", everything, by="demo")[0]


def _recording_path() -> Path:
    for folder in FOLDERS:
        if (folder / RECORDING).is_file():
            return folder / RECORDING
    raise DataError(f"demo: {RECORDING} is not beside this package; install it from a wheel or a checkout")


def _prompt(messages: Sequence[Message]) -> Prompt | None:
    if len(messages) != 2:
        return None
    user = _CARDS.sub("", messages[1].content)
    schema, mark, _ = user.partition("\n[Question]\n")
    asked = _ASKED.search(user)
    return Prompt(messages[0].content, schema, asked["text"].strip()) if mark and asked else None
