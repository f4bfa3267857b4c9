"""T3, the main source: probe the database between attempts, then revise on what the probes revealed.

Two things make it work with small models too. What the columns of the wrong query hold is looked up in any case, since
a small model's own probes often repeat its query. And a revision that repeats the previous SQL has learnt nothing: it
is asked for once more without showing that SQL, because a small model copies whatever SQL it is shown.
"""

from collections.abc import Sequence
from typing import ClassVar

from msgspec.structs import replace

from sqlcrystal.acquisition.look import SHOWN_CELL, SHOWN_ROWS, look, report, run_probes
from sqlcrystal.acquisition.one_bit import CLOSING, render_previous
from sqlcrystal.acquisition.repair import Repair, clip, greedy, previous_sql
from sqlcrystal.acquisition.suspects import suspect_probes
from sqlcrystal.solving.dialect import dialect_name
from sqlcrystal.solving.extract import extract_sql
from sqlcrystal.solving.prompt import render_execution, render_question, render_schema
from sqlcrystal.types import Attempt, Execution, Message, Probe, Round

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
PROBE_TOKENS = 160
AFRESH = "Use the values as they are stored. " + CLOSING


class Probing(Repair):
    """Two calls a round, at times three: propose one to four probes, revise with their reports, revise afresh."""

    name: ClassVar[str] = "T3"

    def propose(self, attempt: Attempt, past: Sequence[Round]) -> Round:
        """Probe, then revise the previous candidate."""
        previous = previous_sql(attempt, past)
        situation = self.describe(attempt, previous, self.run(previous))
        sampling = greedy(attempt)
        held = run_probes(self.database, suspect_probes(previous, self.database.dialect))
        asked = self.ask(
            "probe",
            self.prompt(PROBE_SYSTEM, situation, PROBE_CLOSING),
            replace(sampling, max_tokens=min(PROBE_TOKENS, sampling.max_tokens)),
        )
        known = {probe.sql for probe in held}
        probes = (*held, *(probe for probe in look(self.database, asked.completion.text) if probe.sql not in known))
        revised = self.prompt(REVISE_SYSTEM, situation, render_probes(probes), CLOSING)
        calls = [asked, self.ask("revise", revised, sampling)]
        sql = extract_sql(calls[-1].completion.text)
        if sql is not None and same_words(sql, previous):
            schema, question = render_schema(self.database.schema()), render_question(attempt.question)
            facts = render_probes(held or probes)
            calls.append(self.ask("revise", self.prompt(REVISE_SYSTEM, schema, facts, question, AFRESH), sampling))
            sql = extract_sql(calls[-1].completion.text)
        return Round(calls=tuple(calls), sql=sql, execution=clip(self.run(sql)), probes=probes)

    def describe(self, attempt: Attempt, previous: str | None, execution: Execution | None) -> str:
        """What both calls of a round are told: schema, question, previous SQL, and what it returned."""
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


def render_probes(probes: Sequence[Probe]) -> str:
    """The section with the probe reports."""
    return f"[Database probes and what they revealed]\n{report(probes)}"


def same_words(sql: str | None, other: str | None) -> bool:
    """Whether two queries differ in nothing but space, case and semicolons."""
    return _words(sql) == _words(other)


def _words(sql: str | None) -> list[str]:
    return (sql or "").lower().rstrip("; \n").split()
