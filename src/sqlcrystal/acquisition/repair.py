"""Repair under a budget: the loop that every repairing source shares."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from msgspec.structs import replace

from sqlcrystal.protocols import Check, Database, LanguageModel, Watch, ignore
from sqlcrystal.types import Attempt, Call, Episode, Execution, Message, Round, Rows, Sampling

BUDGET = 3
KEPT_ROWS = 50


class Repair(ABC):
    """Proposes candidates for a wrong first attempt until the check accepts one or the budget is spent."""

    name: ClassVar[str]

    def __init__(self, model: LanguageModel, database: Database, *, budget: int = BUDGET) -> None:
        self.model = model
        self.database = database
        self.budget = budget

    @abstractmethod
    def propose(self, attempt: Attempt, past: Sequence[Round]) -> Round:
        """One round's candidate; `past` holds the rounds before it."""

    def acquire(self, attempt: Attempt, check: Check, *, watch: Watch = ignore) -> Episode | None:
        """An episode if a repair was needed and one was accepted."""
        if attempt.sql is not None and check(attempt.sql):
            return None
        return self.repair(attempt, check, watch=watch)

    def repair(self, attempt: Attempt, check: Check, *, watch: Watch = ignore) -> Episode | None:
        """Spend the budget on an attempt that is known to be wrong."""
        rounds: list[Round] = []
        for _ in range(self.budget):
            proposed = self.propose(attempt, rounds)
            accepted = proposed.sql is not None and check(proposed.sql)
            rounds.append(replace(proposed, accepted=accepted))
            watch(rounds[-1])
            if accepted and proposed.sql is not None:
                return Episode(attempt=attempt, source=self.name, sql=proposed.sql, rounds=tuple(rounds))
        return None

    def ask(self, purpose: str, messages: tuple[Message, ...], sampling: Sampling) -> Call:
        """One model call, on the record."""
        completion = self.model.chat(messages, sampling=sampling)
        return Call(purpose=purpose, messages=messages, sampling=sampling, completion=completion)

    def run(self, sql: str | None) -> Execution | None:
        """What a candidate returns; nothing for no candidate."""
        return None if sql is None else self.database.execute(sql)


def greedy(attempt: Attempt) -> Sampling:
    """The attempt's token budget, without sampling."""
    return replace(attempt.call.sampling, temperature=0.0, index=0)


def previous_sql(attempt: Attempt, past: Sequence[Round]) -> str | None:
    """The candidate before this round: the last round's, or else the first attempt's."""
    return next((r.sql for r in reversed(past) if r.sql is not None), attempt.sql)


def clip(execution: Execution | None) -> Execution | None:
    """What the trace keeps of an execution: its first rows, so that a wrong cross join does not fill the disk."""
    if isinstance(execution, Rows) and len(execution.rows) > KEPT_ROWS:
        return replace(execution, rows=execution.rows[:KEPT_ROWS])
    return execution
