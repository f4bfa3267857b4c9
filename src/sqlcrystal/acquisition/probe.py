"""T3, the paper's main source: in every round the model proposes probes, sees their reports, and revises its SQL."""

from collections.abc import Sequence
from typing import ClassVar

from sqlcrystal.acquisition.look import SHOWN_CELL, SHOWN_ROWS, look, report
from sqlcrystal.acquisition.one_bit import CLOSING, render_previous
from sqlcrystal.acquisition.repair import Repair, clip, greedy, previous_sql
from sqlcrystal.databases.engines import title_of
from sqlcrystal.solving.extract import extract_sql
from sqlcrystal.solving.prompt import render_execution, render_question, render_schema
from sqlcrystal.types import Attempt, Execution, Message, Round

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


class Probing(Repair):
    """Two calls a round: propose one to four probes, then revise with its SQL, its result and all reports in view."""

    name: ClassVar[str] = "T3"

    def propose(self, attempt: Attempt, past: Sequence[Round]) -> Round:
        """Ask for probes, run them, ask for the revision."""
        previous = previous_sql(attempt, past)
        situation = self.describe(attempt, previous, self.run(previous))
        asked = self.ask("probe", self.prompt(PROBE_SYSTEM, situation, PROBE_CLOSING), greedy(attempt))
        probes = look(self.database, asked.completion.text)
        facts = render_facts(report([*(probe for spent in past for probe in spent.probes), *probes]))
        revised = self.ask("revise", self.prompt(REVISE_SYSTEM, situation, facts, CLOSING), greedy(attempt))
        sql = extract_sql(revised.completion.text)
        return Round(calls=(asked, revised), sql=sql, execution=clip(self.run(sql)), probes=probes)

    def calls_in(self, rounds: float) -> float:
        """Probes and revision, each a call."""
        return 2 * rounds

    def describe(self, attempt: Attempt, previous: str | None, execution: Execution | None) -> str:
        """What both calls are told: schema, question, previous SQL, and what it returned."""
        sections = [render_schema(self.database.schema()), render_question(attempt.question), render_previous(previous)]
        if execution is not None:
            sections.append(f"[What it returned]\n{render_execution(execution, rows=SHOWN_ROWS, cell=SHOWN_CELL)}")
        return "\n".join(sections)

    def prompt(self, system: str, *sections: str) -> tuple[Message, Message]:
        """A system prompt and the sections, in the database's dialect; the sections before the last are verbatim."""
        name = title_of(self.database.dialect)
        *opening, closing = sections
        user = "\n".join([*opening, closing.format(dialect=name)])
        return Message("system", system.format(dialect=name)), Message("user", user)


def render_facts(facts: Sequence[str]) -> str:
    """The section with what the probes revealed."""
    return "\n".join(["[Database probes and what they revealed]", *(f"- {fact}" for fact in facts)])
