"""From a study file to a finished run folder: opens what a study needs, runs it, writes what it found."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from threading import Thread

from msgspec import Struct

from sqlcrystal.benchmarks.cases import Benchmark
from sqlcrystal.benchmarks.split import Split, splits_of
from sqlcrystal.config import StudyFile, digest
from sqlcrystal.consumption.dense import Vectors
from sqlcrystal.databases import accept_privileged, accepts_privileged
from sqlcrystal.engines.worker_pool import ThreadWorkers
from sqlcrystal.errors import ConfigError, DataError
from sqlcrystal.ledger.folder import RECORDING, claimed
from sqlcrystal.ledger.log import Logs
from sqlcrystal.ledger.records import Ledger, Manifest, write_ledger
from sqlcrystal.ledger.results import load_writers, write_results
from sqlcrystal.models.embeddings import CachedEmbedder, open_embedder
from sqlcrystal.models.opening import open_model
from sqlcrystal.models.recorded import Recorded
from sqlcrystal.models.recording import Recording
from sqlcrystal.protocols import Embedder, LanguageModel
from sqlcrystal.study.design import design
from sqlcrystal.study.freezing import FrozenDesign, freeze, preregistration
from sqlcrystal.study.memories import Memories
from sqlcrystal.study.perform import Performer
from sqlcrystal.study.reporter import Reporter
from sqlcrystal.study.run import Runner, RunResult, StudyWorkers
from sqlcrystal.study.units import Batch, batches
from sqlcrystal.study.world import World
from sqlcrystal.version import __version__

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
            digest=digest(study, model=recorded.digest, embedder=configured, questions=world.benchmark.digest),
        )


def make_ledger(opened: Opened, result: RunResult, *, started: str) -> Ledger:
    """The facts of the complete batches, and the cards of the arms that have one."""
    study, plan, world = opened.performer.study, opened.performer.design, opened.performer.world
    recorded_arms = {row.arm for rows in result.outcomes.values() for row in rows}
    manifest = Manifest(
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
    return Ledger(
        manifest=manifest,
        outcomes=tuple(row for rows in result.outcomes.values() for row in rows),
        cards=tuple(
            card
            for planned in plan.arms
            if planned.name in recorded_arms and planned.remembers
            for seed in planned.seeds
            for card in opened.performer.memories.audit(planned, seed, result.holdings, rule=study.rule)
        ),
        questions={case.question.id: case.question.text for case in world.benchmark.cases},
        known=tuple(case.question.id for case in world.benchmark.cases if case.known),
        turns=turns_of(world.benchmark),
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
