"""Freezing a design before it is recorded: a digest of each part, so that a report can say what came later."""

import hashlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from sqlcrystal import assembly
from sqlcrystal.admission.verifiers import Ungated
from sqlcrystal.config import StudyFile
from sqlcrystal.databases.layout import spelled_layout
from sqlcrystal.errors import DataError
from sqlcrystal.ledger.records import Contrast, Preregistration
from sqlcrystal.ledger.whole_files import write_whole
from sqlcrystal.protocols import Database
from sqlcrystal.solving.prompt import render_memory
from sqlcrystal.study.design import Design
from sqlcrystal.study.world import World
from sqlcrystal.types import Attempt, Call, Completion, Episode, Message, Question, Round, Sampling
from sqlcrystal.version import __version__

DIGEST_LENGTH = 16
CONDITIONS = (
    "seeds", "folds", "max_tokens", "budget", "card_order", "timeout", "check", "rule", "equivalence_margin", "reruns"
)  # fmt: skip


class FrozenDesign(Struct, frozen=True, kw_only=True):
    """A design as it was on a day, part by part."""

    study: str
    at: str
    version: str
    conditions: str
    questions: str
    prompts: dict[str, str]
    """By solver, source and writer."""
    arms: dict[str, str]
    contrasts: tuple[Contrast, ...]

    @property
    def digest(self) -> str:
        """Name all parts together."""
        return _digest(self)


def freeze(study: StudyFile, plan: Design, world: World, path: Path) -> FrozenDesign:
    """Write the digests of a design to a file that must not exist yet: what was frozen is never overwritten."""
    if path.exists():
        raise DataError(f"{path}: the design was frozen already; delete the file to freeze it anew, and say so")
    frozen = frozen_design(study, plan, world)
    write_whole(path, msgspec.json.format(msgspec.json.encode(frozen), indent=2) + b"\n")
    return frozen


def frozen_design(study: StudyFile, plan: Design, world: World) -> FrozenDesign:
    """Take down the design as it is now."""
    return FrozenDesign(
        study=study.name,
        at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        version=__version__,
        conditions=_digest([*(getattr(study, name) for name in CONDITIONS), *([True] if study.bare_per_seed else [])]),
        questions=world.benchmark.digest[:DIGEST_LENGTH],
        prompts={name: _digest(list(prompts)) for name, prompts in _prompts(plan, world)},
        arms={planned.name: _digest(planned) for planned in plan.arms},
        contrasts=plan.contrasts,
    )


def preregistration(study: StudyFile, plan: Design, world: World) -> Preregistration | None:
    """Tell how a study differs from the design that was frozen for it; None where none was."""
    if not study.frozen:
        return None
    try:
        before = msgspec.json.decode(Path(study.frozen).read_bytes(), type=FrozenDesign)
    except (OSError, msgspec.MsgspecError) as error:
        raise DataError(f"{study.frozen}: not a frozen design: {error}") from None
    now = frozen_design(study, plan, world)
    ordered = [contrast for contrast in before.contrasts if contrast in now.contrasts]
    changed = [
        *(name for name in ("conditions", "questions") if getattr(before, name) != getattr(now, name)),
        *(f"prompts of {name}" for name, digest in now.prompts.items() if before.prompts.get(name, digest) != digest),
        *(f"arm {name}" for name, digest in now.arms.items() if before.arms.get(name, digest) != digest),
        *(["order of contrasts"] if ordered != [c for c in now.contrasts if c in before.contrasts] else []),
    ]
    return Preregistration(
        at=before.at,
        digest=before.digest,
        changed=tuple(changed),
        added_arms=tuple(name for name in now.arms if name not in before.arms),
        added_contrasts=tuple(contrast.name for contrast in now.contrasts if contrast not in before.contrasts),
    )


def _prompts(plan: Design, world: World) -> Iterator[tuple[str, Iterator[list[tuple[Message, ...]]]]]:
    """Collect the prompts of every solver, source and writer that the arms name, over examples."""
    questions = [case.question for case in world.benchmark.cases]
    examples = list({question.database: question for question in reversed(questions)}.values())
    for name in _named(plan, "solver"):
        yield f"solver {name}", (_solved(name, question, world.database(question.database)) for question in questions)
    for name in _named(plan, "source"):
        yield f"source {name}", (_sourced(name, question, world.database(question.database)) for question in examples)
    for name in _named(plan, "writer"):
        yield f"writer {name}", (_written(name, question, world.database(question.database)) for question in examples)


def _named(plan: Design, factor: str) -> list[str]:
    """List the values of a factor over all arms; an arm without memory needs no source or writer of its own."""
    return sorted({getattr(planned.arm, factor) for planned in plan.arms if factor == "solver" or planned.remembers})


class _Listening:
    """A model that keeps every prompt, and always answers with the same query."""

    name, digest, slots = "listening", "", 1

    def __init__(self, sql: str) -> None:
        self._reply = Completion(text=f"```sql\n{sql}\n```")
        self.heard: list[tuple[Message, ...]] = []

    def chat(self, messages: Sequence[Message], *, sampling: Sampling) -> Completion:  # noqa: ARG002
        """Keep the prompt."""
        self.heard.append(tuple(messages))
        return self._reply

    def close(self) -> None:
        """Release nothing."""


def _solved(name: str, question: Question, database: Database) -> list[tuple[Message, ...]]:
    model = _Listening("SELECT 1")
    assembly.solver(name, model=model, database=database).solve(question)
    return model.heard


def _sourced(name: str, question: Question, database: Database) -> list[tuple[Message, ...]]:
    """Collect the prompts of a repair that never succeeds."""
    episode = _example(question, database)
    model = _Listening(episode.sql)
    source = assembly.source(name, model=model, database=database)
    source.acquire(episode.attempt, right=False, accept=lambda _: False)
    return model.heard


def _written(name: str, question: Question, database: Database) -> list[tuple[Message, ...]]:
    """Collect the prompts of a writer that asks the model, and the memory section with its card."""
    episode = _example(question, database)
    model = _Listening(episode.sql)
    written = assembly.writer(name, database=database, model=model).write(Ungated().verify(episode))
    return [*model.heard, (Message("user", render_memory([written.card], assembly.header)),)]


def _example(question: Question, database: Database) -> Episode:
    """Make up a repair over the first table of a database: a filter that finds nothing is taken away."""
    table, columns = next(iter(spelled_layout(database.schema(), database.dialect).items()))
    right = f'SELECT "{columns[-1]}" FROM "{table}"'
    wrong = f"""{right} WHERE "{columns[-1]}" = 'nothing'"""
    [messages] = _solved("single-shot", question, database)
    call = Call(purpose="solve", messages=messages, sampling=Sampling(), completion=Completion(text=""))
    attempt = Attempt(question=question, calls=(call,), sql=wrong)
    return Episode(attempt=attempt, source="T3", sql=right, rounds=(Round(calls=(call,), sql=right, accepted=True),))


def _digest(part: object) -> str:
    return hashlib.sha256(msgspec.json.encode(part, order="sorted")).hexdigest()[:DIGEST_LENGTH]
