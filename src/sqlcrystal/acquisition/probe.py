"""T3, the main source: probe the database between attempts, then revise on what the probes revealed.

Two things make it work with small models too. The first round looks up what the columns of the wrong query really hold,
which needs no call; a small model's own probes often repeat its query, so they are asked for from the second round on.
And the revision is shown what was learnt, not the wrong query: a small model copies whatever SQL it is shown.
"""

from collections.abc import Sequence
from typing import ClassVar

from msgspec.structs import replace

from sqlcrystal.acquisition.look import SHOWN_CELL, SHOWN_ROWS, look, report, run_probes
from sqlcrystal.acquisition.one_bit import CLOSING, render_previous
from sqlcrystal.acquisition.repair import Repair, clip, greedy, previous_sql
from sqlcrystal.acquisition.suspects import suspects
from sqlcrystal.solving.dialect import dialect_name
from sqlcrystal.solving.extract import extract_sql
from sqlcrystal.solving.prompt import render_execution, render_question, render_schema
from sqlcrystal.types import Attempt, Call, Execution, Failure, Message, Round

PROBE_SYSTEM = (
    "You are debugging a {dialect} query judged INCORRECT. "
    "You do NOT have the correct answer -- only that your query is wrong. "
    "Diagnose by interrogating the DB with small READ-ONLY probe queries."
)
PROBE_CLOSING = (
    "Propose 1-4 READ-ONLY {dialect} probe queries that would reveal your mistake, such as the DISTINCT values of a "
    "column you filter on or a few rows of a table you read. "
    "Output EACH probe in its own ```sql block. Do not write the final answer yet."
)
REVISE_SYSTEM = (
    "You are correcting a {dialect} query. Use what the DB probes revealed to fix the specific mistake. "
    "You still cannot see the correct answer. Output ONE corrected query."
)
PROBE_TOKENS = 96
REVISE_CLOSING = "Use the values as they are stored. " + CLOSING


class Probing(Repair):
    """One call in the first round; then two: propose one to four probes, revise with all reports so far."""

    name: ClassVar[str] = "T3"

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
        known = {probe.sql: probe for probe in (*(probe for spent in past for probe in spent.probes), *probes)}
        facts = [*render_failure(returned), *suspected.misplaced, *report(tuple(known.values()))]
        sections = (render_schema(schema), render_facts(facts), render_question(attempt.question), REVISE_CLOSING)
        calls.append(self.ask("revise", self.prompt(REVISE_SYSTEM, *sections), greedy(attempt)))
        sql = extract_sql(calls[-1].completion.text)
        return Round(calls=tuple(calls), sql=sql, execution=clip(self.run(sql)), probes=tuple(probes))

    def ask_for_probes(self, attempt: Attempt, previous: str | None, returned: Execution | None) -> Call:
        """The model's own probes, in few tokens: a long list repeats itself."""
        sampling = greedy(attempt)
        short = replace(sampling, max_tokens=min(PROBE_TOKENS, sampling.max_tokens))
        situation = self.describe(attempt, previous, returned)
        return self.ask("probe", self.prompt(PROBE_SYSTEM, situation, PROBE_CLOSING), short)

    def describe(self, attempt: Attempt, previous: str | None, execution: Execution | None) -> str:
        """What a call for probes is told: schema, question, previous SQL, and what it returned."""
        sections = [render_schema(self.database.schema()), render_question(attempt.question), render_previous(previous)]
        if execution is not None:
            sections.append(f"[What it returned]\n{render_execution(execution, rows=SHOWN_ROWS, cell=SHOWN_CELL)}")
        return "\n".join(sections)

    def prompt(self, system: str, *sections: str) -> tuple[Message, Message]:
        """A system prompt and the sections, in the database's dialect; the sections before the last are verbatim."""
        name = dialect_name(self.database.dialect)
        *told, closing = sections
        user = "\n".join([*told, closing.format(dialect=name)])
        return Message("system", system.format(dialect=name)), Message("user", user)


def render_facts(facts: Sequence[str]) -> str:
    """The section with what the probes revealed."""
    return "\n".join(["[Database probes and what they revealed]", *(f"- {fact}" for fact in facts)])


def render_failure(execution: Execution | None) -> list[str]:
    """Why the previous query did not run, if it did not."""
    return [f"A query failed: {execution.message}"] if isinstance(execution, Failure) else []


def same_words(sql: str, other: str | None) -> bool:
    """Whether two queries differ in nothing but space, case and a semicolon."""
    return sql.lower().rstrip("; \n").split() == (other or "").lower().rstrip("; \n").split()
