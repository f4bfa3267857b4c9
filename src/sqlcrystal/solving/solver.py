"""The fixed solver: one model call per question, greedy by default."""

from collections.abc import Sequence
from typing import ClassVar

from sqlcrystal.protocols import Database, LanguageModel
from sqlcrystal.solving.extract import extract_sql
from sqlcrystal.solving.prompt import CHAIN_OF_THOUGHT, SINGLE_SHOT, Style, build_prompt
from sqlcrystal.types import Attempt, Call, Card, Question, Sampling

GREEDY = Sampling(temperature=0.0, max_tokens=2048)


class SingleShot:
    """Answers in one call; a reply without SQL is an attempt whose `sql` is None."""

    style: ClassVar[Style] = SINGLE_SHOT

    def __init__(self, model: LanguageModel, database: Database, *, sampling: Sampling = GREEDY) -> None:
        self.model = model
        self.database = database
        self.sampling = sampling

    def shown(self, question: Question) -> Database:  # noqa: ARG002
        """Give the database as prompts show it, for this question and for the repair of its answer."""
        return self.database

    def solve(self, question: Question, cards: Sequence[Card] = ()) -> Attempt:
        """One attempt, with the cards in its prompt."""
        messages = build_prompt(
            schema=self.shown(question).schema(),
            dialect=self.database.dialect,
            question=question,
            cards=cards,
            style=self.style,
        )
        completion = self.model.chat(messages, sampling=self.sampling)
        call = Call(purpose="solve", messages=messages, sampling=self.sampling, completion=completion)
        return Attempt(
            question=question, calls=(call,), sql=extract_sql(completion.text), cards=tuple(card.id for card in cards)
        )


class ChainOfThought(SingleShot):
    """Thinks step by step before the final block; the paper's optional variant."""

    style: ClassVar[Style] = CHAIN_OF_THOUGHT
