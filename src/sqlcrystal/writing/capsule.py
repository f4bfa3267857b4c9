"""W5 and W5-lesson: a summary distilled by the model, behind the consistency fence."""

import re
from typing import ClassVar

import msgspec
from msgspec import Struct

from sqlcrystal.protocols import Database, LanguageModel
from sqlcrystal.types import Call, Episode, Message, Sampling
from sqlcrystal.writing.card import one_line
from sqlcrystal.writing.diffs import DiffMode
from sqlcrystal.writing.fence import fence
from sqlcrystal.writing.lexicon import lexicon
from sqlcrystal.writing.trace import render_probes

SYSTEM = (
    "You write a compact Text2SQL repair memory. Use only the provided wrong and repaired SQL. "
    "Output JSON only with keys trigger, applicability, negative_guard, lesson."
)
SAMPLING = Sampling(temperature=0.0, max_tokens=2048)


class Capsule(Struct, frozen=True, kw_only=True):
    """What the model distilled; an empty field was not given, or was blanked by the fence."""

    trigger: str = ""
    applicability: str = ""
    negative_guard: str = ""
    lesson: str = ""


LABELS = {
    "trigger": "Trigger",
    "applicability": "Apply-when",
    "negative_guard": "Do-NOT-apply-when",
    "lesson": "Lesson",
}


class CapsuleWriter(DiffMode):
    """W5: the labelled diff, then the capsule's fields that survived the fence."""

    name: ClassVar[str] = "W5"

    def __init__(self, database: Database, model: LanguageModel) -> None:
        super().__init__(database)
        self.model = model

    def compose(self, episode: Episode) -> tuple[str, tuple[Call, ...]]:
        """The labelled diff and the capsule."""
        capsule, call = distil(self.model, self.database, episode)
        lines = [f"- {label}: {text}" for field, label in LABELS.items() if (text := getattr(capsule, field))]
        return "\n".join([self.render(episode), *lines]), (call,)


class LessonWriter(CapsuleWriter):
    """W5-lesson: the capsule's lesson alone, without any SQL."""

    name: ClassVar[str] = "W5-lesson"

    def compose(self, episode: Episode) -> tuple[str, tuple[Call, ...]]:
        """The lesson, if it survived the fence."""
        capsule, call = distil(self.model, self.database, episode)
        return f"- Lesson: {capsule.lesson or '(none)'}", (call,)


def distil(model: LanguageModel, database: Database, episode: Episode) -> tuple[Capsule, Call]:
    """Ask for a capsule and fence every field of it."""
    messages = prompt(episode)
    completion = model.chat(messages, sampling=SAMPLING)
    capsule, words = read(completion.text), lexicon(database)
    fenced = Capsule(**{field: fence(one_line(getattr(capsule, field)), episode, words) for field in LABELS})
    return fenced, Call(purpose="capsule", messages=messages, sampling=SAMPLING, completion=completion)


def prompt(episode: Episode) -> tuple[Message, Message]:
    """The paper's CAPSULE prompt: question, evidence, wrong SQL, repaired SQL and probe reports."""
    question = episode.question
    probes = [line for spent in episode.rounds for line in render_probes(spent.probes)]
    sections = [
        f"[Question]\n{question.text.strip()}",
        f"[Evidence]\n{question.evidence.strip() or '(none)'}",
        f"[Initial wrong SQL]\n{episode.attempt.sql or '(no SQL)'}",
        f"[Final repaired SQL]\n{episode.sql}",
        "[Probe reports]\n" + ("\n".join(probes) or "(none)"),
    ]
    return Message("system", SYSTEM), Message("user", "\n".join(sections))


def read(reply: str) -> Capsule:
    """The capsule in a reply: the first JSON object, fenced or not; a field that is no text is left out."""
    start = reply.find("{")
    for end in [match.end() for match in re.finditer(r"}", reply)][::-1]:
        try:
            document = msgspec.json.decode(reply[start:end].encode()) if start >= 0 else None
        except msgspec.DecodeError:
            continue
        if isinstance(document, dict):
            return Capsule(**{field: _text(document.get(field)) for field in LABELS})
    return Capsule()


def _text(value: object) -> str:
    if isinstance(value, list):
        return "; ".join(str(item) for item in value if isinstance(item, str))
    return value if isinstance(value, str) else ""
