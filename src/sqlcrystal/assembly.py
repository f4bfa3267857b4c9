"""Name → implementation tables; the only registry. An arm has one spelling: here, in study files and in tables."""

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from sqlcrystal.acquisition.explore import Explore, Exploring
from sqlcrystal.acquisition.repair import BUDGET, FirstTry, Union
from sqlcrystal.acquisition.resampling import Resample, SelfVote
from sqlcrystal.acquisition.revision import LookFirst, OneBit, Probing
from sqlcrystal.admission.external import ExternalCheck
from sqlcrystal.admission.verifiers import Assertion, EngineSignal, Judge, Noisy, Oracle, Ungated, UserConfirmation
from sqlcrystal.consumption.controls import Foreign, Nothing, Random, SchemaSimilar
from sqlcrystal.consumption.dense import Dense, Mmr, Payload
from sqlcrystal.consumption.lexical import Bm25
from sqlcrystal.databases.symptoms import symptoms
from sqlcrystal.errors import ConfigError
from sqlcrystal.protocols import Check, Database, Embedder, LanguageModel, Retriever, Solver, Source, Verifier, Writer
from sqlcrystal.solving.fallback import Fallback
from sqlcrystal.solving.profile import Profiled
from sqlcrystal.solving.solver import GREEDY, ChainOfThought, SingleShot
from sqlcrystal.types import Question, Sampling
from sqlcrystal.writing.capsule import CapsuleWriter, LessonWriter
from sqlcrystal.writing.card import Trace, Verbatim
from sqlcrystal.writing.diff_writers import Anchor, Diff, DiffGuard, DiffMode
from sqlcrystal.writing.ingredients import Joins, Names, Placebo, QuestionOnly, Skeleton, Values

Implementation = TypeVar("Implementation")


class Reach(NamedTuple):
    """What a retriever may need; the embedder is opened only by those that embed."""

    embedder: Callable[[], Embedder]
    schema_of: Callable[[str], str]
    seed: int = 0


SOLVERS: dict[str, Callable[[LanguageModel, Database, Sampling], Solver]] = {
    "single-shot": lambda model, database, sampling: SingleShot(model, database, sampling=sampling),
    "chain-of-thought": lambda model, database, sampling: ChainOfThought(model, database, sampling=sampling),
    "explore": lambda model, database, sampling: Exploring(model, database, sampling=sampling),
    "profiled": lambda model, database, sampling: Profiled(model, database, sampling=sampling),
    "fallback": lambda model, database, sampling: Fallback(SingleShot(model, database, sampling=sampling), database),
    "profiled-fallback": lambda model, database, sampling: Fallback(
        Profiled(model, database, sampling=sampling), database
    ),
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


class Regime(NamedTuple):
    """Who decides in one regime of admission: whether repair is due, which candidate ends it, what becomes a card."""

    trigger: Check
    accept: Check
    verifier: Verifier


class Bench(NamedTuple):
    """What a regime may need of a benchmark's question: its database, and the bit of a judge who knows gold."""

    question: Question
    database: Database
    judge: Judge
    rate: float = 0.0
    seed: int = 0

    def bit(self, sql: str) -> bool:
        """The judge's bit."""
        return self.judge(self.question, sql)

    def looks_sound(self, sql: str) -> bool:
        """The engine's: nothing that it shows looks wrong."""
        return not symptoms(sql, self.database)


# What a benchmark can feed; the other verifiers need a person, a rule or a service. Without a gate the bit still says
# whether repair is due, so that all arms repair the same questions, and then the first candidate is taken.
REGIMES: dict[str, Callable[[Bench], Regime]] = {
    "oracle": lambda bench: Regime(bench.bit, bench.bit, Oracle(bench.judge)),
    "ungated": lambda bench: Regime(bench.bit, lambda _: True, Ungated()),
    "noisy": lambda bench: Regime(bench.bit, bench.bit, Noisy(bench.judge, rate=bench.rate, seed=bench.seed)),
    "engine": lambda bench: Regime(bench.looks_sound, bench.looks_sound, EngineSignal(bench.database)),
}

WRITERS: dict[str, Callable[[Database, LanguageModel], Writer]] = {
    "W0": lambda database, _: Verbatim(database.fingerprint),
    "W1": lambda database, _: Trace(database.fingerprint),
    "W2": lambda database, _: Diff(database),
    "W3": lambda database, _: DiffMode(database),
    "W3+A": lambda database, _: Anchor(database),
    "W4": lambda database, _: DiffGuard(database),
    "W5": CapsuleWriter,
    "W5-lesson": LessonWriter,
    "W0-values": lambda database, _: Values(database),
    "W0-joins": lambda database, _: Joins(database),
    "W0-names": lambda database, _: Names(database),
    "W0-skeleton": lambda database, _: Skeleton(database),
    "W0-question": lambda database, _: QuestionOnly(database),
    "W0-placebo": lambda database, _: Placebo(database),
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
    return choose(SOLVERS, "solver", name)(model, database, sampling or GREEDY)


def source(name: str, *, model: LanguageModel, database: Database, budget: int = BUDGET) -> Source:
    """A source by name, with its attempt budget K."""
    return choose(SOURCES, "source", name)(model, database, budget)


def regime(name: str, *, bench: Bench) -> Regime:
    """A regime of admission by name."""
    return choose(REGIMES, "admission", name)(bench)


def writer(name: str, *, database: Database, model: LanguageModel) -> Writer:
    """A writer by name; only the capsules call the model."""
    return choose(WRITERS, "writer", name)(database, model)


def retriever(name: str, *, reach: Reach) -> Retriever:
    """A retriever by name."""
    return choose(RETRIEVERS, "retriever", name)(reach)
