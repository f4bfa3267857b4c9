"""The fixed solver: one model call per question, greedy by default; and the SQL out of its reply in any form.

The rules, in order:
1. A reasoning model's <think>…</think> is dropped.
2. Of the complete fenced blocks that hold a query, the last one counts: models correct themselves downward.
3. Without one, a fence that was never closed (truncated output) counts up to the end of the reply.
4. Without any fence, the query starts at the first SELECT or WITH … AS ( that is not prose, and ends at a semicolon
   or at a blank line outside parentheses.
5. A block with several statements gives its last query; trailing semicolons and comments after them go.
A block fenced as SQL that holds no query (an UPDATE, say) is still taken, so that the guard refuses it on the record.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Self

from sqlcrystal.databases.engines import SQL_TAGS
from sqlcrystal.protocols import Database, LanguageModel
from sqlcrystal.solving.prompt import CHAIN_OF_THOUGHT, SINGLE_SHOT, HeaderOf, Style, build_prompt, no_header
from sqlcrystal.types import Attempt, Call, Card, Question, Sampling

FENCE = re.compile(r"```[ \t]*(?P<tag>[A-Za-z0-9_+-]*)[ \t]*\n?(?P<body>.*?)```", re.DOTALL)
OPEN_FENCE = re.compile(r"```[ \t]*(?P<tag>[A-Za-z0-9_+-]*)[ \t]*\n?(?P<body>(?:(?!```).)*)\Z", re.DOTALL)
THINKING = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
LEXEME = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|--[^\n]*|/\*.*?\*/|;|.", re.DOTALL)
QUERY = re.compile(r"[\s(]*(?:SELECT|WITH|VALUES)\b", re.IGNORECASE)
START = re.compile(
    r"\bWITH\s+(?:RECURSIVE\s+)?[\"`\w]+\s*(?:\([^)]*\)\s*)?AS\s+(?:(?:NOT\s+)?MATERIALIZED\s+)?\("
    r"|\bWITH\s+(?:RECURSIVE\s+)?[\"`\w]+\s*(?:\([^)]*\)\s*)?AS\("
    r"|\bSELECT\s+(?=[\d'\"(*-])"
    r"|\bSELECT\s+(?=\w+\()"
    r"|\bSELECT\b(?=.*?\sFROM\s)",
    re.IGNORECASE | re.DOTALL,
)
REMARKS_BEFORE = re.compile(r"\A(?:--[^\n]*(?:\n|\Z)|/\*.*?\*/|\s|;)*", re.DOTALL)


def extract_sql(reply: str) -> str | None:
    """Find the one query a reply proposes, or None when it holds none."""
    text = THINKING.sub("", reply)
    blocks = _blocks(text)
    for body in reversed(blocks):
        if query := _last_query(body):
            return query
    if blocks:
        return _clean(blocks[-1]) or None
    return _unfenced(text)


def extract_blocks(reply: str) -> tuple[str, ...]:
    """Find every fenced query of a reply, in order, without repeats; a reply without fences gives its one query."""
    text = THINKING.sub("", reply)
    blocks = _blocks(text)
    queries = [query for body in blocks for query in _queries(body)]
    if not blocks and (query := _unfenced(text)):
        queries = [query]
    return tuple(dict.fromkeys(queries))


def _blocks(text: str) -> list[str]:
    """Find the bodies of the complete blocks that may be SQL, or else of the one block that was cut off."""
    complete = [match["body"] for match in FENCE.finditer(text) if _may_be_sql(match["tag"], match["body"])]
    if complete:
        return complete
    cut = OPEN_FENCE.search(FENCE.sub("", text))
    return [cut["body"]] if cut and _may_be_sql(cut["tag"], cut["body"]) else []


def _may_be_sql(tag: str, body: str) -> bool:
    """Tell whether a block is tagged as SQL, or looks like it under another tag or none."""
    if tag.upper() in {"SELECT", "WITH"}:  # "```SELECT 1```": the tag is the query's first word; see _unfenced
        return False
    return bool(body.strip()) and (tag.lower() in SQL_TAGS or bool(_queries(body)))


def _statements(sql: str) -> list[str]:
    """Split at semicolons outside quotes and comments."""
    parts = [""]
    for lexeme in LEXEME.findall(sql):
        if lexeme == ";":
            parts.append("")
        else:
            parts[-1] += lexeme
    return parts


def _queries(body: str) -> list[str]:
    """Find the statements of a block that read data, without leading or trailing comments."""
    cleaned = (_clean(part) for part in _statements(body))
    return [statement for statement in cleaned if QUERY.match(statement)]


def same_words(sql: str | None, other: str | None) -> bool:
    """Tell whether two queries differ in nothing but space, case and a semicolon."""
    return (sql or "").lower().rstrip("; \n").split() == (other or "").lower().rstrip("; \n").split()


def _last_query(body: str) -> str | None:
    """Find the last statement of a block that reads data."""
    queries = _queries(body)
    return queries[-1] if queries else None


def _clean(sql: str) -> str:
    """Strip space, semicolons, and comments before the first and after the last word."""
    return REMARKS_BEFORE.sub("", sql).strip().rstrip(";").strip()


def _unfenced(text: str) -> str | None:
    """Find the query of a reply without fences."""
    starts = [match.start() for match in START.finditer(text)]
    if not starts:
        return None
    at_line = [start for start in starts if not text[:start].rpartition("\n")[2].strip("`> \t")]
    start = (at_line or starts)[0]
    depth = 0
    end = len(text)
    quoted = text[:start].endswith("`")
    for lexeme in LEXEME.finditer(text, start):
        piece = lexeme.group()
        depth += (piece == "(") - (piece == ")")
        blank = piece == "\n" and depth <= 0 and re.match(r"[ \t]*\n", text[lexeme.end() :])
        if piece == ";" or blank or (piece.startswith("`") and (quoted or text.startswith("```", lexeme.start()))):
            end = lexeme.start()
            break
    return _clean(text[start:end]) or None


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
