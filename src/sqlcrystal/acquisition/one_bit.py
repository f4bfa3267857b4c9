"""T2: revise on one bit, the fixed sentence that the previous SQL was wrong."""

from collections.abc import Sequence
from typing import ClassVar

from sqlcrystal.acquisition.repair import Repair, clip, greedy, previous_sql
from sqlcrystal.databases.engines import title_of
from sqlcrystal.solving.extract import extract_sql
from sqlcrystal.solving.prompt import render_question, render_schema
from sqlcrystal.types import Attempt, Message, Question, Round

SYSTEM = "You are correcting a {dialect} query. Output ONE corrected query."
FEEDBACK = "The previous SQL did not answer the question correctly. Please revise it."
CLOSING = "Write the corrected {dialect} query now, inside a ```sql block."


class OneBit(Repair):
    """Revises the last candidate; learns nothing but that it was wrong."""

    name: ClassVar[str] = "T2"
    ends_on_repeat: ClassVar[bool] = True

    def propose(self, attempt: Attempt, past: Sequence[Round]) -> Round:
        """One revision of the previous candidate."""
        messages = revise_prompt(
            schema=self.database.schema(),
            dialect=self.database.dialect,
            question=attempt.question,
            previous=previous_sql(attempt, past),
        )
        call = self.ask("revise", messages, greedy(attempt))
        sql = extract_sql(call.completion.text)
        return Round(calls=(call,), sql=sql, execution=clip(self.run(sql)))


def revise_prompt(*, schema: str, dialect: str, question: Question, previous: str | None) -> tuple[Message, Message]:
    """The paper's one-bit REVISE prompt."""
    name = title_of(dialect)
    user = "\n".join(
        [
            render_schema(schema),
            render_question(question),
            render_previous(previous),
            FEEDBACK,
            CLOSING.format(dialect=name),
        ]
    )
    return Message("system", SYSTEM.format(dialect=name)), Message("user", user)


def render_previous(sql: str | None) -> str:
    """The previous candidate's section."""
    return "[Previous SQL]\n" + (f"```sql\n{sql}\n```" if sql else "(the reply held no SQL)")
