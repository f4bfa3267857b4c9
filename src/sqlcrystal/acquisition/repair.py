"""Repair under a budget, the loop that every repairing source shares; first-try successes, and T1 and T4 beside it."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import ClassVar, Self

from msgspec.structs import replace

from sqlcrystal.errors import ModelRejected
from sqlcrystal.protocols import Check, Database, LanguageModel
from sqlcrystal.solving.consensus import rows_of
from sqlcrystal.solving.solver import extract_sql, same_words
from sqlcrystal.types import Attempt, Call, Effort, Episode, Execution, Message, Round, Rows, Sampling

BUDGET = 3
KEPT_ROWS = 50


class NamedSource(ABC):
    """A source that a study chooses by name."""

    name: ClassVar[str]
    summary: ClassVar[str]
    """The origin of its episodes in a few words, for reports."""

    @classmethod
    @abstractmethod
    def of(cls, model: LanguageModel, database: Database, *, budget: int) -> Self:
        """Make the source, with its budget of rounds."""

    @abstractmethod
    def acquire(self, attempt: Attempt, *, right: bool, accept: Check) -> Effort:
        """Make an effort of an attempt that is right or wrong; an episode only for a candidate that is accepted."""

    @abstractmethod
    def calls_in(self, rounds: float) -> float:
        """Estimate the model calls of so many rounds, for plans."""


class Repair(NamedSource):
    """Proposes candidates for a wrong first attempt until the check accepts one or the budget is spent."""

    ends_on_repeat: ClassVar[bool] = False
    """Whether a candidate that was proposed before ends the repair: nothing new would be asked after it."""

    def __init__(self, model: LanguageModel, database: Database, *, budget: int = BUDGET) -> None:
        self.model = model
        self.database = database
        self.budget = budget

    @classmethod
    def of(cls, model: LanguageModel, database: Database, *, budget: int) -> Self:
        """Make the source, with its budget of rounds."""
        return cls(model, database, budget=budget)

    @abstractmethod
    def propose(self, attempt: Attempt, past: Sequence[Round]) -> Round:
        """Propose one round's candidate; `past` holds the rounds before it."""

    def acquire(self, attempt: Attempt, *, right: bool, accept: Check) -> Effort:
        """Leave a right attempt alone; spend the budget on a wrong one."""
        rounds: list[Round] = []
        episode = None
        while not right and episode is None and len(rounds) < self.budget:
            try:
                proposed = self.propose(attempt, rounds)
            except ModelRejected:  # the same prompt would be refused again
                break
            accepted = proposed.sql is not None and accept(proposed.sql)
            rounds.append(replace(proposed, accepted=accepted))
            if accepted and proposed.sql is not None:
                episode = Episode(attempt=attempt, source=self.name, sql=proposed.sql, rounds=tuple(rounds))
            elif self.ends_on_repeat and repeats(proposed.sql, attempt, rounds[:-1]):
                break
        return Effort(attempt=attempt, source=self.name, right_at_once=right, rounds=tuple(rounds), episode=episode)

    def calls_in(self, rounds: float) -> float:
        """Count as many as there are rounds, unless a subclass asks more often."""
        return rounds

    def ask(self, purpose: str, messages: tuple[Message, ...], sampling: Sampling) -> Call:
        """Call the model once, on the record."""
        completion = self.model.chat(messages, sampling=sampling)
        return Call(purpose=purpose, messages=messages, sampling=sampling, completion=completion)

    def run(self, sql: str | None) -> Execution | None:
        """Run a candidate; nothing for no candidate."""
        return None if sql is None else self.database.execute(sql)


def greedy(attempt: Attempt) -> Sampling:
    """Keep the attempt's token budget, without sampling."""
    return replace(attempt.call.sampling, temperature=0.0, index=0)


def previous_sql(attempt: Attempt, past: Sequence[Round]) -> str | None:
    """Give the candidate before this round: the last round's, or else the first attempt's."""
    return next((earlier.sql for earlier in reversed(past) if earlier.sql is not None), attempt.sql)


def repeats(sql: str | None, attempt: Attempt, past: Sequence[Round]) -> bool:
    """Tell whether a candidate is no other than the attempt or an earlier candidate."""
    return any(same_words(sql, earlier) for earlier in (attempt.sql, *(spent.sql for spent in past)))


def clip(execution: Execution | None) -> Execution | None:
    """Keep the first rows of an execution, so that a wrong cross join does not fill the disk."""
    if isinstance(execution, Rows) and len(execution.rows) > KEPT_ROWS:
        return replace(execution, rows=execution.rows[:KEPT_ROWS])
    return execution


class FirstTry(NamedSource):
    """Keeps answers that were right at once, with an empty trace."""

    name: ClassVar[str] = "success"
    summary: ClassVar[str] = "first-try successes"

    @classmethod
    def of(cls, model: LanguageModel, database: Database, *, budget: int) -> Self:  # noqa: ARG003
        """Make the source, which needs nothing."""
        return cls()

    def acquire(self, attempt: Attempt, *, right: bool, accept: Check) -> Effort:  # noqa: ARG002
        """Keep the first attempt itself, if it is right."""
        kept = right and attempt.sql is not None
        episode = Episode(attempt=attempt, source=self.name, sql=attempt.sql or "") if kept else None
        return Effort(attempt=attempt, source=self.name, right_at_once=right, episode=episode)

    def calls_in(self, rounds: float) -> float:  # noqa: ARG002
        """Count none: it never asks."""
        return 0.0


# ── further samples ───────────────────────────────────────────────────────────────────────────────────────────────────


TEMPERATURE = 0.8


class Resample(Repair):
    """Asks the very prompt of the first attempt again, one sample a round."""

    name: ClassVar[str] = "T1"
    summary: ClassVar[str] = "resampling without feedback"

    def propose(self, attempt: Attempt, past: Sequence[Round]) -> Round:
        """Draw one more sample of the solve prompt; its index tells recordings apart."""
        sampling = replace(attempt.call.sampling, temperature=TEMPERATURE, index=len(past) + 1)
        call = self.ask("sample", attempt.call.messages, sampling)
        sql = extract_sql(call.completion.text)
        return Round(calls=(call,), sql=sql, execution=clip(self.run(sql)))


SAMPLES = 5


class SelfVote(Repair):
    """Samples the solve prompt five times a round and elects the largest cluster of equal result sets."""

    name: ClassVar[str] = "T4"
    summary: ClassVar[str] = "a self-vote"

    def __init__(
        self, model: LanguageModel, database: Database, *, budget: int = BUDGET, samples: int = SAMPLES
    ) -> None:
        super().__init__(model, database, budget=budget)
        self.samples = samples

    def propose(self, attempt: Attempt, past: Sequence[Round]) -> Round:
        """Sample, execute, cluster, elect."""
        first = len(past) * self.samples + 1
        calls = tuple(
            self.ask(
                "sample",
                attempt.call.messages,
                replace(attempt.call.sampling, temperature=TEMPERATURE, index=first + offset),
            )
            for offset in range(self.samples)
        )
        ballots = [(sql, self.database.execute(sql)) for call in calls if (sql := extract_sql(call.completion.text))]
        elected = elect(ballots)
        if elected is None:
            return Round(calls=calls, sql=None)
        sql, execution = elected
        return Round(calls=calls, sql=sql, execution=clip(execution))

    def calls_in(self, rounds: float) -> float:
        """Count a call for every sample."""
        return self.samples * rounds


def elect(ballots: Sequence[tuple[str, Execution]]) -> tuple[str, Execution] | None:
    """Elect the first member of the largest cluster; of equally large ones, the cluster whose first member came first.

    Two results are one cluster when they are the same set of rows. A failure never votes; if all fail, none wins.
    """
    clusters: dict[Hashable, list[tuple[str, Execution]]] = {}
    for sql, execution in ballots:
        if (rows := rows_of(execution)) is not None:
            clusters.setdefault(rows, []).append((sql, execution))
    return max(clusters.values(), key=len)[0] if clusters else None
