"""Name → implementation tables; the only registry. An arm has one spelling: here, in study files and in tables."""

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from sqlcrystal.acquisition import (
    BUDGET,
    Explore,
    Exploring,
    FirstTry,
    LookFirst,
    OneBit,
    Probing,
    Resample,
    SelfVote,
    Union,
)
from sqlcrystal.admission import Assertion, EngineSignal, ExternalCheck, Judge, Noisy, Oracle, Ungated, UserConfirmation
from sqlcrystal.consumption import Bm25, Dense, Foreign, Mmr, Nothing, Payload, Random, SchemaSimilar
from sqlcrystal.errors import ConfigError
from sqlcrystal.protocols import Database, Embedder, LanguageModel, Retriever, Solver, Source, Verifier, Writer
from sqlcrystal.solving import ChainOfThought, SingleShot
from sqlcrystal.types import Sampling
from sqlcrystal.writing import Anchor, CapsuleWriter, Diff, DiffGuard, DiffMode, LessonWriter, Trace, Verbatim

Implementation = TypeVar("Implementation")


class Reach(NamedTuple):
    """What a retriever may need; the embedder is opened only by those that embed."""

    embedder: Callable[[], Embedder]
    schema_of: Callable[[str], str]
    seed: int = 0


SOLVERS: dict[str, type[SingleShot] | type[Exploring]] = {
    "single-shot": SingleShot,
    "chain-of-thought": ChainOfThought,
    "explore": Exploring,
}

SOURCES: dict[str, Callable[[LanguageModel, Database, int], Source]] = {
    "T1": lambda model, database, budget: Resample(model, database, budget=budget),
    "T2": lambda model, database, budget: OneBit(model, database, budget=budget),
    "T3": lambda model, database, budget: Probing(model, database, budget=budget),
    "T3-look": lambda model, database, budget: LookFirst(model, database, budget=budget),
    "T4": lambda model, database, budget: SelfVote(model, database, budget=budget),
    "success": lambda *_: FirstTry(),
    "union": lambda model, database, budget: Union(Probing(model, database, budget=budget)),
    "union-look": lambda model, database, budget: Union(LookFirst(model, database, budget=budget), name="union-look"),
    "explore": lambda model, database, _: Explore(model, database),
}

VERIFIERS: dict[str, type[Verifier]] = {
    "oracle": Oracle,
    "ungated": Ungated,
    "noisy": Noisy,
    "user": UserConfirmation,
    "assertion": Assertion,
    "external": ExternalCheck,
    "engine": EngineSignal,
}

# The verifiers a benchmark can feed; the others need a person, a rule or a service.
GATES: dict[str, Callable[[Judge, float, int], Verifier]] = {
    "oracle": lambda judge, *_: Oracle(judge),
    "ungated": lambda *_: Ungated(),
    "noisy": lambda judge, rate, seed: Noisy(judge, rate=rate, seed=seed),
}

WRITERS: dict[str, Callable[[Database, LanguageModel], Writer]] = {
    "W0": lambda database, _: Verbatim(database),
    "W1": lambda database, _: Trace(database),
    "W2": lambda database, _: Diff(database),
    "W3": lambda database, _: DiffMode(database),
    "W3+A": lambda database, _: Anchor(database),
    "W4": lambda database, _: DiffGuard(database),
    "W5": CapsuleWriter,
    "W5-lesson": LessonWriter,
}

RETRIEVERS: dict[str, Callable[[Reach], Retriever]] = {
    "dense": lambda reach: Dense(reach.embedder()),
    "bm25": lambda _: Bm25(),
    "payload": lambda reach: Payload(reach.embedder()),
    "mmr": lambda reach: Mmr(reach.embedder()),
    "random": lambda reach: Random(seed=reach.seed),
    "foreign": lambda reach: Foreign(reach.embedder()),
    "schema-similar": lambda reach: SchemaSimilar(reach.embedder(), reach.schema_of),
    "none": lambda _: Nothing(),
}


def choose(table: Mapping[str, Implementation], key: str, name: str) -> Implementation:
    """The implementation of that name, or a ConfigError that lists the choices."""
    if name not in table:
        raise ConfigError.unknown(key, name, table)
    return table[name]


def solver(name: str, *, model: LanguageModel, database: Database, sampling: Sampling | None = None) -> Solver:
    """A solver by name; greedy with 2,048 tokens unless told otherwise."""
    made = choose(SOLVERS, "solver", name)
    return made(model, database) if sampling is None else made(model, database, sampling=sampling)


def source(name: str, *, model: LanguageModel, database: Database, budget: int = BUDGET) -> Source:
    """A source by name, with its attempt budget K."""
    return choose(SOURCES, "source", name)(model, database, budget)


def gate(name: str, *, judge: Judge, rate: float = 0.1, seed: int = 0) -> Verifier:
    """A benchmark's verifier by name."""
    return choose(GATES, "admission", name)(judge, rate, seed)


def writer(name: str, *, database: Database, model: LanguageModel) -> Writer:
    """A writer by name; only the capsules call the model."""
    return choose(WRITERS, "writer", name)(database, model)


def retriever(name: str, *, reach: Reach) -> Retriever:
    """A retriever by name."""
    return choose(RETRIEVERS, "retriever", name)(reach)
