"""T1 and T4: further samples of the first prompt, taken one by one or elected by agreement."""

from collections.abc import Hashable, Sequence
from typing import ClassVar

from msgspec.structs import replace

from sqlcrystal.acquisition.repair import BUDGET, Repair, clip
from sqlcrystal.protocols import Database, LanguageModel
from sqlcrystal.solving.consensus import rows_of
from sqlcrystal.solving.extract import extract_sql
from sqlcrystal.types import Attempt, Execution, Round

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
