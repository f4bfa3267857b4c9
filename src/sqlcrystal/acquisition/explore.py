"""Pre-answer exploration, the paper's baseline: probe before the first answer, with no word about correctness."""

from collections.abc import Sequence
from typing import ClassVar

from msgspec.structs import replace

from sqlcrystal.acquisition.repair import Repair, clip, greedy
from sqlcrystal.acquisition.revision import look, render_facts, report
from sqlcrystal.databases.engines import title_of
from sqlcrystal.protocols import Check, Database, LanguageModel
from sqlcrystal.solving.prompt import SINGLE_SHOT, HeaderOf, build_prompt, no_header, render_question, render_schema
from sqlcrystal.solving.solver import PromptingSolver, extract_sql
from sqlcrystal.types import Attempt, Call, Card, Effort, Message, Probe, Question, Round, Sampling

SYSTEM = (
    "You are about to write a {dialect} query. Explore first: interrogate the DB with small READ-ONLY probe queries."
)
CLOSING = (
    "Propose 1-4 READ-ONLY {dialect} probe queries that would reveal what you need to know, such as the DISTINCT "
    "values of a column you will filter on or a few rows of a table you will read. "
    "Output EACH probe in its own ```sql block. Do not write the final answer yet."
)


class Exploring(PromptingSolver):
    """A solver that looks before it answers; its attempt's prompt holds the probe reports."""

    name: ClassVar[str] = "explore"
    summary: ClassVar[str] = "explores before it answers"

    def solve(self, question: Question, cards: Sequence[Card] = ()) -> Attempt:
        """Explore, then answer in one shot."""
        calls, _ = explore(self.model, self.database, question, self.sampling, cards=cards, header_of=self.header_of)
        sql = extract_sql(calls[-1].completion.text)
        return Attempt(question=question, calls=calls, sql=sql, cards=tuple(card.id for card in cards))


class Explore(Repair):
    """The same exploration as a source: one round for every question, blind to the first attempt and its verdict."""

    name: ClassVar[str] = "explore"
    summary: ClassVar[str] = "exploring before the first answer"

    def __init__(self, model: LanguageModel, database: Database, *, budget: int = 1) -> None:
        super().__init__(model, database, budget=min(budget, 1))

    def acquire(self, attempt: Attempt, *, right: bool, accept: Check) -> Effort:
        """Explore whether or not the first attempt was right: exploring may also break what was."""
        return replace(super().acquire(attempt, right=False, accept=accept), right_at_once=right)

    def propose(self, attempt: Attempt, past: Sequence[Round]) -> Round:  # noqa: ARG002
        """Explore and answer as if for the first time."""
        calls, probes = explore(self.model, self.database, attempt.question, greedy(attempt))
        sql = extract_sql(calls[-1].completion.text)
        return Round(calls=calls, sql=sql, execution=clip(self.run(sql)), probes=probes)

    def calls_in(self, rounds: float) -> float:
        """Count probes and answer, each a call; there is one round at most."""
        return 2 * min(rounds, 1.0)


def explore(
    model: LanguageModel,
    database: Database,
    question: Question,
    sampling: Sampling,
    *,
    cards: Sequence[Card] = (),
    header_of: HeaderOf = no_header,
) -> tuple[tuple[Call, Call], tuple[Probe, ...]]:
    """Ask for probes, run them, then ask for the answer with their reports before the closing line."""
    schema, name = database.schema(), title_of(database.dialect)
    closing = CLOSING.format(dialect=name)
    user = "\n".join([render_schema(schema), render_question(question), closing])
    asked = _ask(
        model,
        (Message("system", SYSTEM.format(dialect=name)), Message("user", user)),
        sampling,
    )
    probes = look(database, asked.completion.text)
    system, bare = build_prompt(
        schema=schema, dialect=database.dialect, question=question, cards=cards, header_of=header_of
    )
    body = bare.content.removesuffix(SINGLE_SHOT.closing.format(dialect=name))
    informed = Message("user", f"{body}{render_facts(report(probes))}\n{SINGLE_SHOT.closing.format(dialect=name)}")
    return (asked, _ask(model, (system, informed), sampling)), probes


def _ask(model: LanguageModel, messages: tuple[Message, ...], sampling: Sampling) -> Call:
    completion = model.chat(messages, sampling=sampling)
    return Call(purpose="explore", messages=messages, sampling=sampling, completion=completion)
