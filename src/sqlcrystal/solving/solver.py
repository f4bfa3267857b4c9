"""The fixed solver: one model call per question, greedy by default."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Self

from sqlcrystal.protocols import Database, LanguageModel
from sqlcrystal.solving.extract import extract_sql
from sqlcrystal.solving.prompt import CHAIN_OF_THOUGHT, SINGLE_SHOT, HeaderOf, Style, build_prompt, no_header
from sqlcrystal.types import Attempt, Call, Card, Question, Sampling

GREEDY = Sampling(temperature=0.0, max_tokens=2048)


class NamedSolver(ABC):
    """A solver that a study chooses by name."""

    name: ClassVar[str]
    summary: ClassVar[str]
    """Its way in a few words, for reports."""

    @classmethod
    @abstractmethod
    def of(cls, model: LanguageModel, database: Database, *, sampling: Sampling, header_of: HeaderOf) -> Self:
        """Make the solver; `header_of` gives the line above each writer's cards."""

    @abstractmethod
    def shown(self, question: Question) -> Database:
        """Give the database as prompts show it, for this question and for the repair of its answer."""

    @abstractmethod
    def solve(self, question: Question, cards: Sequence[Card] = ()) -> Attempt:
        """Make one attempt, with the cards in its prompt."""


class PromptingSolver(NamedSolver):
    """A solver that asks one model about one database, whose whole schema its prompts show."""

    def __init__(
        self,
        model: LanguageModel,
        database: Database,
        *,
        sampling: Sampling = GREEDY,
        header_of: HeaderOf = no_header,
    ) -> None:
        self.model = model
        self.database = database
        self.sampling = sampling
        self.header_of = header_of

    @classmethod
    def of(cls, model: LanguageModel, database: Database, *, sampling: Sampling, header_of: HeaderOf) -> Self:
        """Make the solver."""
        return cls(model, database, sampling=sampling, header_of=header_of)

    def shown(self, question: Question) -> Database:  # noqa: ARG002
        """Show the whole schema."""
        return self.database


class SingleShot(PromptingSolver):
    """Answers in one call; a reply without SQL is an attempt whose `sql` is None."""

    name: ClassVar[str] = "single-shot"
    summary: ClassVar[str] = "answered in one shot"
    style: ClassVar[Style] = SINGLE_SHOT

    def solve(self, question: Question, cards: Sequence[Card] = ()) -> Attempt:
        """Make one attempt, with the cards in its prompt."""
        messages = build_prompt(
            schema=self.shown(question).schema(),
            dialect=self.database.dialect,
            question=question,
            cards=cards,
            header_of=self.header_of,
            style=self.style,
        )
        completion = self.model.chat(messages, sampling=self.sampling)
        call = Call(purpose="solve", messages=messages, sampling=self.sampling, completion=completion)
        return Attempt(
            question=question, calls=(call,), sql=extract_sql(completion.text), cards=tuple(card.id for card in cards)
        )


class ChainOfThought(SingleShot):
    """Thinks step by step before the final block; the paper's optional variant."""

    name: ClassVar[str] = "chain-of-thought"
    summary: ClassVar[str] = "chain of thought"
    style: ClassVar[Style] = CHAIN_OF_THOUGHT
