"""From a study file to a finished run folder: freezes the design, opens what is needed, runs it, writes the results."""

import hashlib
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from threading import Thread

import msgspec
from msgspec import Struct

from sqlcrystal import assembly
from sqlcrystal.admission.verifiers import Ungated
from sqlcrystal.benchmarks.cases import Benchmark, Split, splits_of
from sqlcrystal.config import StudyFile, digest
from sqlcrystal.consumption.dense import Vectors
from sqlcrystal.databases import accept_privileged, accepts_privileged
from sqlcrystal.databases.layout import spelled_layout
from sqlcrystal.engines.worker_pool import ThreadWorkers
from sqlcrystal.errors import ConfigError, DataError
from sqlcrystal.ledger.folder import RECORDING, Logs, claimed, load_writers, write_results
from sqlcrystal.ledger.records import (
    TRANSFER,
    Contrast,
    Ledger,
    Manifest,
    Outcome,
    Preregistration,
    write_ledger,
    write_whole,
)
from sqlcrystal.models.embeddings import CachedEmbedder, open_embedder
from sqlcrystal.models.opening import open_model
from sqlcrystal.models.recorded import Recorded
from sqlcrystal.models.recording import Recording
from sqlcrystal.protocols import Database, Embedder, LanguageModel, Reporter
from sqlcrystal.scoring.verdicts import DEFAULT_RULE
from sqlcrystal.solving.prompt import render_memory
from sqlcrystal.study.design import Design, PlannedArm, design
from sqlcrystal.study.memories import Memories
from sqlcrystal.study.perform import Performer
from sqlcrystal.study.run import Runner, RunResult, StudyWorkers
from sqlcrystal.study.units import Batch, batches
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
        conditions=_digest([*(getattr(study, name) for name in CONDITIONS), *_later_conditions(study, world)]),
        questions=world.benchmark.digest[:DIGEST_LENGTH],
        prompts={name: _digest(list(prompts)) for name, prompts in _prompts(plan, world)},
        arms={planned.name: _digest(_as_frozen(planned)) for planned in plan.arms},
        contrasts=plan.contrasts,
    )


def _later_conditions(study: StudyFile, world: World) -> list[object]:
    """List the conditions that came later, where they hold: designs from before keep their digests."""
    return [*([True] if study.bare_per_seed else []), *filter(None, [world.definitions.digest])]


def _as_frozen(planned: PlannedArm) -> object:
    """Write an arm as designs were frozen before arms could show definitions, unless it does."""
    document = msgspec.to_builtins(planned)
    if not planned.arm.definitions:
        del document["arm"]["definitions"]
    return document


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


ENGINES = ("local", "ray")


class Finished(Struct, kw_only=True):
    """The result of a run, and how many completions it had to ask the model for."""

    folder: Path
    ledger: Ledger
    left_out: dict[str, str]
    sent: int


class Opened(Struct, kw_only=True):
    """A study with everything it needs at hand."""

    performer: Performer
    splits: dict[int, Split]
    model: Recorded
    embedder_name: str
    digest: str

    @property
    def work(self) -> list[Batch]:
        """The units of the study, in the order they should be done."""
        return batches(self.performer.design, self.splits, reruns=self.performer.study.reruns)


def run_study(
    study: StudyFile,
    folder: Path,
    *,
    jobs: int | None = None,
    engine: str = "local",
    minutes: float | None = None,
    model: LanguageModel | None = None,
    embedder: Embedder | None = None,
    reporter: Reporter | None = None,
) -> Finished:
    """Run a study into a folder, or go on with the one that is there; `minutes` bounds this part of it."""
    if engine not in ENGINES:
        raise ConfigError.unknown("--engine", engine, ENGINES)
    started = _now()
    until = None if minutes is None else time.monotonic() + 60 * minutes
    with ExitStack() as stack:
        stack.enter_context(claimed(folder, study))
        opened = stack.enter_context(open_study(study, folder / RECORDING, model=model, embedder=embedder))
        workers = _worker_pool(opened, engine, jobs)
        stack.callback(workers.close)
        warming = Thread(target=_warm, args=[opened], name="warming")
        warming.start()
        stack.callback(warming.join)
        logs, listener = Logs(folder / "log"), reporter or Reporter()
        result = Runner(opened.performer, opened.work, workers=workers, reporter=listener, logs=logs, until=until).run()
        if not result.outcomes and result.first_error is not None:
            raise result.first_error
        ledger = make_ledger(opened, result, started=started)
        write_results(ledger, folder)
        write_ledger(ledger, folder)
        return Finished(folder=folder, ledger=ledger, left_out=result.left_out, sent=opened.model.sent)


def _warm(opened: Opened) -> None:
    """Load what is slow to load while the first calls are under way; whoever needs it sooner waits for it."""
    opened.performer.memories.warm()
    load_writers()


def _worker_pool(opened: Opened, engine: str, jobs: int | None) -> StudyWorkers:
    performer = opened.performer
    if engine == "local":
        return ThreadWorkers(performer, size=jobs or opened.model.slots)
    from sqlcrystal.engines.ray import RayWorkers

    return RayWorkers(
        performer,
        opened.model,
        size=jobs,
        open_there=partial(open_performer, performer.study, privileged=accepts_privileged()),
    )


def open_performer(study: StudyFile, *, privileged: bool = False) -> Performer:
    """Open a study in a worker: databases, model and embedder, all of which end with the worker's process."""
    accept_privileged(privileged)
    plan, world = design(study), World.of(study)
    memories = Memories(plan, world, lambda: Vectors(open_embedder(study.embedder)), order=study.card_order)
    return Performer(study, world, open_model(study.model), memories)


def freeze_study(study: StudyFile, path: Path) -> FrozenDesign:
    """Freeze a design before it is run; no model is asked."""
    world = World.of(study)
    try:
        return freeze(study, design(study), world, path)
    finally:
        world.close()


@contextmanager
def open_study(
    study: StudyFile, recording: Path, *, model: LanguageModel | None = None, embedder: Embedder | None = None
) -> Iterator[Opened]:
    """Everything a study needs; closed together at the end."""
    plan = design(study)
    with ExitStack() as stack:
        world = World.of(study)
        stack.callback(world.close)
        asked = model or open_model(study.model)
        if model is None:
            stack.callback(asked.close)
        layers = [stack.enter_context(Recording(path)) for path in _layers(study)]
        working = stack.enter_context(Recording(recording, also=layers))
        recorded = Recorded(asked, working, study.mode)

        def get_embedder() -> Embedder:
            opened = embedder or open_embedder(study.embedder)
            if opened.name != "wordllama" and embedder is None:  # slow, or different every time it is asked
                opened = CachedEmbedder(opened, recording.with_name("embeddings.sqlite"))
            if embedder is None:
                stack.callback(opened.close)
            return Vectors(opened)

        configured = study.embedder if isinstance(study.embedder, str) else str(study.embedder.get("name", "?"))
        yield Opened(
            performer=Performer(study, world, recorded, Memories(plan, world, get_embedder, order=study.card_order)),
            splits=splits_of(world.benchmark.cases, seeds=study.seeds, folds=study.folds),
            model=recorded,
            embedder_name=embedder.name if embedder else configured,
            digest=digest(study, model=recorded.digest, embedder=configured, **world.identities),
        )


def make_ledger(opened: Opened, result: RunResult, *, started: str) -> Ledger:
    """Gather the facts of the complete batches, and the cards of the arms that have one."""
    study, plan, world = opened.performer.study, opened.performer.design, opened.performer.world
    outcomes = tuple(row for rows in result.outcomes.values() for row in rows)
    recorded_arms = {row.arm for row in outcomes}
    return Ledger(
        manifest=_manifest(opened, result, started=started),
        outcomes=outcomes,
        cards=tuple(
            card
            for planned in plan.arms
            if planned.name in recorded_arms and planned.remembers
            for seed in planned.seeds
            for card in opened.performer.memories.audit(planned, seed, result.collections, rule=study.rule)
        ),
        questions={case.question.id: case.question.text for case in world.benchmark.cases},
        known=tuple(case.question.id for case in world.benchmark.cases if case.known),
        turns=turns_of(world.benchmark),
        lucky=_lucky(opened, outcomes) if world.generated else None,
    )


def _lucky(opened: Opened, outcomes: Sequence[Outcome]) -> tuple[tuple[int, str], ...]:
    """Find the default's changes whose right answer is wrong on further instances of its database."""
    plan, world = opened.performer.design, opened.performer.world
    questions = {case.question.key: case.question for case in world.benchmark.cases}
    default = plan.arm(plan.default)
    alike = [arm for arm in plan.arms if not arm.remembers and arm.arm.solver == default.arm.solver]
    answered: dict[str, dict[tuple[int, str], Outcome]] = defaultdict(dict)
    for row in outcomes:
        if row.setting == TRANSFER:
            answered[row.arm][row.seed, row.question] = row
    memory = answered[default.name]
    floor = answered[alike[0].name] if alike else {}
    changed = [key for key in memory if key in floor and memory[key].right != floor[key].right]
    right = [memory[key] if memory[key].right else floor[key] for key in changed]
    return tuple(
        (row.seed, row.question)
        for row in right
        if row.sql and row.rules[DEFAULT_RULE] and world.by_luck(questions[row.database, row.question], row.sql)
    )


def _manifest(opened: Opened, result: RunResult, *, started: str) -> Manifest:
    study, plan, world = opened.performer.study, opened.performer.design, opened.performer.world
    return Manifest(
        study=study.name,
        digest=opened.digest,
        version=__version__,
        benchmark=world.benchmark.name,
        model=opened.model.name,
        model_digest=opened.model.digest,
        embedder=opened.embedder_name,
        seeds=study.splits,
        rule=study.rule,
        default_arm=plan.default,
        arms=tuple(planned.arm for planned in plan.arms),
        contrasts=plan.contrasts,
        budget=study.budget,
        max_tokens=study.max_tokens,
        card_order=study.card_order,
        check=study.check,
        recordings=tuple(Path(name).name for name in study.recordings),
        equivalence_margin=0.0 if study.equivalence_margin == "drift" else study.equivalence_margin,
        bare_per_seed=study.bare_per_seed,
        margin_from_drift=study.equivalence_margin == "drift",
        started=started,
        finished=_now(),
        left_out=tuple(result.left_out),
        folds=study.folds,
        fold_seed=study.seeds[0] if study.folds else 0,
        missing_databases=world.benchmark.skipped,
        preregistration=preregistration(study, plan, world),
    )


def turns_of(benchmark: Benchmark) -> dict[str, tuple[str, int]]:
    """Place every question of a benchmark in its dialogue; empty where no question follows another."""
    if not any(case.earlier for case in benchmark.cases):
        return {}
    return {case.question.id: (case.opening.id, len(case.earlier) + 1) for case in benchmark.cases}


def _layers(study: StudyFile) -> list[Path]:
    """The recordings to read beside the run's own; in fill and live, those that are not there are passed over."""
    paths = [Path(name) for name in study.recordings]
    if study.mode == "replay":
        for path in paths:
            if not path.is_file():
                raise DataError(f"recordings: {path} is not there, and replay asks no model")
    return [path for path in paths if path.is_file()]


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
