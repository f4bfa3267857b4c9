"""Name → implementation tables; the only registry. An arm has one spelling: its class's, in study files and tables."""

import re
from collections.abc import Callable, Mapping
from typing import ClassVar, NamedTuple, Protocol, TypeVar

from sqlcrystal.acquisition.explore import Explore, Exploring
from sqlcrystal.acquisition.from_log import FromLog
from sqlcrystal.acquisition.repair import BUDGET, FirstTry, NamedSource, Resample, SelfVote
from sqlcrystal.acquisition.revision import (
    LookFirst,
    OneBit,
    Probing,
    SpelledThenLook,
    SpelledThenOneBit,
    Union,
    UnionLook,
)
from sqlcrystal.admission.verifiers import EngineSignal, Judge, Noisy, Oracle, RoundTrip, Ungated
from sqlcrystal.consumption.controls import Foreign, Nothing, Random, SchemaSimilar
from sqlcrystal.consumption.dense import Dense, Mmr, Payload
from sqlcrystal.consumption.lexical import Bm25
from sqlcrystal.consumption.retriever import NamedRetriever, Reach
from sqlcrystal.databases.symptoms import symptoms
from sqlcrystal.errors import ConfigError
from sqlcrystal.protocols import Check, Database, LanguageModel, Retriever, Solver, Source, Verifier, Writer
from sqlcrystal.solving.consensus import Consensus
from sqlcrystal.solving.fallback import Fallback
from sqlcrystal.solving.profile import Profiled, ProfiledFallback
from sqlcrystal.solving.solver import GREEDY, ChainOfThought, NamedSolver, SingleShot
from sqlcrystal.types import Question, Sampling
from sqlcrystal.writing.capsule import CapsuleWriter, LessonWriter
from sqlcrystal.writing.card import CardWriter, Trace, Verbatim
from sqlcrystal.writing.diff_writers import Anchor, Diff, DiffGuard, DiffMode
from sqlcrystal.writing.ingredients import Joins, Names, Placebo, QuestionOnly, Skeleton, Values

Implementation = TypeVar("Implementation")
_LOG = re.compile(rf"{FromLog.name}(?::(\d+(?:\.\d+)?)%)?")


class Named(Protocol):
    """A stage that says its name."""

    name: ClassVar[str]


Stage = TypeVar("Stage", bound=Named)


def by_name(*stages: type[Stage]) -> dict[str, type[Stage]]:
    """Look stages up by the name that each says of itself."""
    return {stage.name: stage for stage in stages}


SOLVERS: dict[str, type[NamedSolver]] = by_name(
    SingleShot,
    ChainOfThought,
    Exploring,
    Profiled,
    Fallback,
    ProfiledFallback,
    Consensus,
)

SOURCES: dict[str, type[NamedSource]] = by_name(
    Resample,
    OneBit,
    Probing,
    LookFirst,
    SelfVote,
    FirstTry,
    Union,
    UnionLook,
    Explore,
    SpelledThenLook,
    SpelledThenOneBit,
)
SERVED_SOURCES = {"allowed": SpelledThenLook.name, "never": SpelledThenOneBit.name}
"""The source of repairs served, by whether values may leave the database; the setting `served` measures the first."""

WRITERS: dict[str, type[CardWriter]] = by_name(
    Verbatim,
    Trace,
    Diff,
    DiffMode,
    Anchor,
    DiffGuard,
    CapsuleWriter,
    LessonWriter,
    Values,
    Joins,
    Names,
    Skeleton,
    QuestionOnly,
    Placebo,
)

RETRIEVERS: dict[str, type[NamedRetriever]] = by_name(
    Dense,
    Bm25,
    Payload,
    Mmr,
    Random,
    Foreign,
    SchemaSimilar,
    Nothing,
)


class Regime(NamedTuple):
    """The checks of one regime of admission: whether repair is due, which candidate ends it, which becomes a card."""

    trigger: Check
    accept: Check
    verifier: Verifier


class Bench(NamedTuple):
    """A benchmark's question as a regime may need it: with its database, and the bit of a judge who knows gold."""

    question: Question
    database: Database
    judge: Judge
    rate: float = 0.0
    seed: int = 0
    logged: str = ""
    """The query of a log, where the episode starts from one."""

    def bit(self, sql: str) -> bool:
        """Ask the judge."""
        return self.judge(self.question, sql)

    def looks_sound(self, sql: str) -> bool:
        """Ask the engine whether anything that it shows looks wrong."""
        return not symptoms(sql, self.database)


class RegimeKind(NamedTuple):
    """A regime that a study chooses by its signal, before it is known for which question."""

    summary: str
    make: Callable[[Bench], Regime]
    takes_first: bool = False
    """True where any first candidate ends the repair."""


# The regimes that a benchmark can feed; the other verifiers need a person, a rule or a service. Without a gate the bit
# still says whether repair is due, so that all arms repair the same questions; then the first candidate is taken.
REGIMES: dict[str, RegimeKind] = {
    Oracle.signal: RegimeKind(
        "checked against gold's result before storage",
        lambda bench: Regime(bench.bit, bench.bit, Oracle(bench.judge)),
    ),
    Ungated.signal: RegimeKind(
        "stored without a check", lambda bench: Regime(bench.bit, lambda _: True, Ungated()), takes_first=True
    ),
    Noisy.signal: RegimeKind(
        "checked against gold's result, with errors",
        lambda bench: Regime(bench.bit, bench.bit, Noisy(bench.judge, rate=bench.rate, seed=bench.seed)),
    ),
    EngineSignal.signal: RegimeKind(
        "checked by what the database engine shows, without an oracle",
        lambda bench: Regime(bench.looks_sound, bench.looks_sound, EngineSignal(bench.database)),
    ),
    RoundTrip.signal: RegimeKind(
        "checked by a round trip: its question, asked again, leads back to the same rows",
        lambda bench: Regime(
            lambda _: False,
            lambda sql: RoundTrip(bench.database).leads_back(sql, bench.logged),
            RoundTrip(bench.database),
        ),
    ),
}


def choose(table: Mapping[str, Implementation], key: str, name: str) -> Implementation:
    """Look up an implementation, or raise a ConfigError that lists the choices."""
    if name not in table:
        raise ConfigError.unknown(key, name, table)
    return table[name]


def solver(name: str, *, model: LanguageModel, database: Database, sampling: Sampling | None = None) -> Solver:
    """Make a solver by name; greedy with 2,048 tokens unless told otherwise."""
    kind = choose(SOLVERS, "solver", name)
    return kind.of(model, database, sampling=sampling or GREEDY, header_of=header)


def log_share(source: str) -> float | None:
    """Tell the share of a log that is wrong or stale, where a source starts from one: `log:30%` is 0.3, `log` is 0."""
    found = _LOG.fullmatch(source)
    return float(found[1] or 0) / 100 if found else None


def source(
    name: str,
    *,
    model: LanguageModel,
    database: Database,
    budget: int = BUDGET,
    sampling: Sampling | None = None,
) -> Source:
    """Make a source by name, with its attempt budget K; `sampling` is for one that starts from a log.

    No table lists that one: the others start from a question, and make an effort of its first attempt.
    """
    if log_share(name) is not None:
        return FromLog.of(model, database, budget=budget, sampling=sampling or GREEDY)
    return choose(SOURCES, "source", name).of(model, database, budget=budget)


def regime(name: str, *, bench: Bench) -> Regime:
    """Make a regime of admission by name."""
    return choose(REGIMES, "admission", name).make(bench)


def writer(name: str, *, database: Database, model: LanguageModel) -> Writer:
    """Make a writer by name; few call the model, and those say so (`calls_model`)."""
    return choose(WRITERS, "writer", name).of(database, model)


def header(writer: str) -> str:
    """Give the line above a writer's cards in a prompt; none for a writer that is not known here."""
    return WRITERS[writer].header if writer in WRITERS else ""


def retriever(name: str, *, reach: Reach) -> Retriever:
    """Make a retriever by name."""
    return choose(RETRIEVERS, "retriever", name).of(reach)


def retriever_in_service(name: str, *, key: str) -> type[NamedRetriever]:
    """Look up a retriever that a team's settings name under a key; those that cross databases are no choice there."""
    return choose({kind.name: kind for kind in RETRIEVERS.values() if not kind.crosses_databases}, key, name)
