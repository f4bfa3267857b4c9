"""Cards from queries that were run: the model writes the question a query answers, and is then asked that question."""

import re
from typing import ClassVar, Self

from msgspec.structs import replace

from sqlcrystal.acquisition.repair import BUDGET, NamedSource, clip
from sqlcrystal.databases.engines import title_of
from sqlcrystal.errors import ModelRejected
from sqlcrystal.protocols import Check, Database, LanguageModel
from sqlcrystal.solving.prompt import render_schema
from sqlcrystal.solving.solver import GREEDY, SingleShot
from sqlcrystal.types import Attempt, Call, Effort, Episode, Message, Round, Sampling

SYSTEM = (
    "You read {dialect} queries. Write the ONE question, in plain English, that a colleague asked and this query "
    "answers.\n"
    "- Say what is returned, in the order of its columns, and how it is sorted or limited.\n"
    "- Name every value it compares with, spelled as in the query.\n"
    "- One sentence, no SQL, no explanation."
)
CLOSING = "Write the question now."
TEMPERATURE = 0.8
LONGEST_QUESTION = 600
_QUESTION_TOKENS = 160
_STATEMENT = re.compile(r"^(?=CREATE\b)", re.MULTILINE | re.IGNORECASE)
_CREATED = re.compile(r"CREATE[\w\s]*?\s(?:TABLE|VIEW)\s+(?:IF\s+NOT\s+EXISTS\s+)?([^\s(]+)", re.IGNORECASE)
_SIGNS = "\"'`“”*_ "
_LEADING = re.compile(r"^(?:\W*(?:the\s+)?(?:question|q)\s*(?:\d+)?\s*(?:is)?\s*[:.]\s*|[-*\d.]+\s+)", re.IGNORECASE)
_CODE = re.compile(r"^(?:```|select\b|with\b.*\bas\s*\()", re.IGNORECASE)


class FromLog(NamedSource):
    """Starts from a query instead of a question: its input is the query, as an attempt that nobody asked for.

    The attempt of its effort is the answer to the question that was written; the check sees that answer's SQL.
    """

    name: ClassVar[str] = "log"
    summary: ClassVar[str] = "queries that were run, each with a question written for it"

    def __init__(
        self, model: LanguageModel, database: Database, *, budget: int = BUDGET, sampling: Sampling = GREEDY
    ) -> None:
        self.model = model
        self.database = database
        self.budget = budget
        self.sampling = sampling

    @classmethod
    def of(cls, model: LanguageModel, database: Database, *, budget: int, sampling: Sampling = GREEDY) -> Self:
        """Make the source, with its budget of wordings and how the question is asked again."""
        return cls(model, database, budget=budget, sampling=sampling)

    def acquire(self, attempt: Attempt, *, right: bool, accept: Check) -> Effort:  # noqa: ARG002
        """Word the query anew until the question leads back to what the check accepts, or the budget is spent."""
        back, rounds = attempt, list[Round]()
        while attempt.sql is not None and len(rounds) < self.budget and not (rounds and rounds[-1].accepted):
            try:
                worded = self._worded(attempt.sql, len(rounds))
                text = question_in(worded.completion.text)
                if text is None:
                    rounds.append(Round(calls=(worded,), sql=None))
                    continue
                solver = SingleShot(self.model, self.database, sampling=self.sampling)
                back = solver.solve(replace(attempt.question, text=text))
            except ModelRejected:  # the same prompt would be refused again
                break
            result = None if back.sql is None else self.database.execute(back.sql)
            accepted = back.sql is not None and accept(back.sql)
            calls = (worded, *back.calls)
            rounds.append(Round(calls=calls, sql=attempt.sql, execution=clip(result), accepted=accepted))
        closed = bool(rounds) and rounds[-1].accepted
        episode = (
            Episode(attempt=back, source=self.name, sql=attempt.sql or "", rounds=tuple(rounds)) if closed else None
        )
        return Effort(attempt=back, source=self.name, rounds=tuple(rounds), episode=episode)

    def calls_in(self, rounds: float) -> float:
        """Count two a round: one writes the question, one answers it."""
        return 2 * rounds

    def _worded(self, sql: str, past: int) -> Call:
        """Ask for the question, greedily at first and then as another sample of the same prompt."""
        messages = question_prompt(sql, schema=self.database.schema(), dialect=self.database.dialect)
        temperature = TEMPERATURE if past else 0.0
        sampling = Sampling(temperature=temperature, max_tokens=_QUESTION_TOKENS, index=past)
        completion = self.model.chat(messages, sampling=sampling)
        return Call(purpose="word", messages=messages, sampling=sampling, completion=completion)


def question_prompt(sql: str, *, schema: str, dialect: str) -> tuple[Message, Message]:
    """Write the prompt for the question of a query, with the tables that it names."""
    name = title_of(dialect)
    user = "\n".join([render_schema(_tables_of(sql, schema)), f"[Query]\n```sql\n{sql.strip()}\n```", CLOSING])
    return Message("system", SYSTEM.format(dialect=name)), Message("user", user)


def question_in(reply: str) -> str | None:
    """Find the question in a reply: its first line of words; None where it holds code or nothing."""
    for line in reply.strip().splitlines():
        if _CODE.match(line.strip()):
            return None
        text = _LEADING.sub("", line.strip(), count=1).strip(_SIGNS)
        if len(text.split()) > 1:
            return text if len(text) <= LONGEST_QUESTION else None
    return None


def _tables_of(sql: str, schema: str) -> str:
    """Leave out of a schema the tables that a query does not name; all of it where none is recognised."""
    words = set(re.findall(r"\w+", sql.casefold()))
    parts = _STATEMENT.split(schema)
    named = [part for part in parts if _is_named(part, words)]
    return "".join(named) if any(_CREATED.match(part) for part in named) else schema


def _is_named(part: str, words: set[str]) -> bool:
    created = _CREATED.match(part)
    if created is None:
        return True
    names = re.findall(r"\w+", created[1].casefold())
    return bool(names) and names[-1] in words
