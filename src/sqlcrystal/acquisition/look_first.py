"""T3-look, our form of T3 for small models: look at the suspect columns without asking, then write the query anew.

The first round looks up what the columns of the wrong query really hold, which needs no call; a small model's own
probes often repeat its query, so they are asked for from the second round on. And the revision is shown what was
learnt, not the wrong query: a small model copies whatever SQL it is shown.
"""

from collections.abc import Sequence
from typing import ClassVar

from msgspec.structs import replace

from sqlcrystal.acquisition.look import look, report, run_probes
from sqlcrystal.acquisition.one_bit import CLOSING
from sqlcrystal.acquisition.probe import PROBE_CLOSING, PROBE_SYSTEM, REVISE_SYSTEM, Probing, render_facts
from sqlcrystal.acquisition.repair import clip, greedy, previous_sql, same_words
from sqlcrystal.acquisition.suspects import suspects
from sqlcrystal.solving.extract import extract_sql
from sqlcrystal.solving.prompt import render_question, render_schema
from sqlcrystal.types import Attempt, Call, Execution, Failure, Round

PROBE_TOKENS = 96
REVISE_CLOSING = "Use the values as they are stored. " + CLOSING


class LookFirst(Probing):
    """One call in the first round; then two: propose one to four probes, revise with all reports so far."""

    name: ClassVar[str] = "T3-look"
    ends_on_repeat: ClassVar[bool] = True

    def propose(self, attempt: Attempt, past: Sequence[Round]) -> Round:
        """Look, then write the query anew."""
        previous, schema = previous_sql(attempt, past), self.database.schema()
        returned = self.run(previous)
        suspected = suspects(previous, schema, self.database.dialect)
        probes = list(run_probes(self.database, suspected.probes))
        calls = []
        if past or not probes:
            calls.append(self.ask_for_probes(attempt, previous, returned))
            own = look(self.database, calls[0].completion.text)
            probes.extend(probe for probe in own if not same_words(probe.sql, previous))
        by_sql = {probe.sql: probe for probe in (*(probe for spent in past for probe in spent.probes), *probes)}
        facts = [*render_failure(returned), *suspected.misplaced, *report(tuple(by_sql.values()))]
        sections = (render_schema(schema), render_facts(facts), render_question(attempt.question), REVISE_CLOSING)
        calls.append(self.ask("revise", self.prompt(REVISE_SYSTEM, *sections), greedy(attempt)))
        sql = extract_sql(calls[-1].completion.text)
        return Round(calls=tuple(calls), sql=sql, execution=clip(self.run(sql)), probes=tuple(probes))

    def calls_in(self, rounds: float) -> float:
        """The first round mostly needs no call for probes."""
        return max(2 * rounds - 1, 0.0)

    def ask_for_probes(self, attempt: Attempt, previous: str | None, returned: Execution | None) -> Call:
        """The model's own probes, in few tokens: a small model's long list repeats itself."""
        sampling = greedy(attempt)
        short = replace(sampling, max_tokens=min(PROBE_TOKENS, sampling.max_tokens))
        situation = self.describe(attempt, previous, returned)
        return self.ask("probe", self.prompt(PROBE_SYSTEM, situation, PROBE_CLOSING), short)


def render_failure(execution: Execution | None) -> list[str]:
    """Why the previous query did not run, if it did not."""
    return [f"A query failed: {execution.message}"] if isinstance(execution, Failure) else []
