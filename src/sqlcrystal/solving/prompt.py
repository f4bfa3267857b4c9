"""The paper's solver prompt: the memory block is the only part that varies between arms."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from sqlcrystal.databases.engines import title_of
from sqlcrystal.types import Call, Card, Execution, Failure, Message, Question

RULES = """\
You are an expert data analyst who writes correct {dialect} SQL. \
Given a database schema and a question, output ONE {dialect} SELECT query that answers it.
Rules:
- Use ONLY the tables and columns in the schema.
- Quote identifiers with spaces/special chars.
- Read-only: a single SELECT (or WITH ... SELECT); no INSERT/UPDATE/DELETE/DDL.
- Return exactly the columns the question asks for.
"""


class Style(NamedTuple):
    """The system prompt and closing line of one way to solve."""

    system: str
    closing: str


SINGLE_SHOT = Style(
    system=RULES + "- Output the SQL inside a ```sql ... ``` block only.",
    closing="Write the {dialect} query now, inside a ```sql block.",
)
CHAIN_OF_THOUGHT = Style(
    system=RULES
    + "- Think step by step first: the tables, the joins, the filters, the columns to return.\n"
    + "- Then output the final SQL inside ONE ```sql ... ``` block.",
    closing="Think step by step, then write the {dialect} query inside a final ```sql block.",
)

MEMORY = "[Relevant experience -- verified facts and rules]"
QUESTION = "[Question]"

HeaderOf: TypeAlias = Callable[[str], str]
"""The line above the cards of a writer, by the writer's name; empty where it has none."""


def no_header(writer: str) -> str:  # noqa: ARG001
    """Show cards without a line above them."""
    return ""


def render_schema(schema: str) -> str:
    """Write the schema section; first after the system prompt, so that a prefix cache can reuse it."""
    return f"[Database schema]\n{schema.strip()}"


def render_question(question: Question) -> str:
    """Write the question section, with the evidence hint on its own line."""
    hint = f"\nHint: {question.evidence.strip()}" if question.evidence.strip() else ""
    return f"{QUESTION}\n{question.text.strip()}{hint}"


def render_memory(cards: Sequence[Card], header_of: HeaderOf = no_header) -> str:
    """Write the memory section: each writer's cards under its header, in the order of retrieval; empty for none."""
    by_writer: dict[str, list[str]] = {}
    for card in cards:
        by_writer.setdefault(card.writer, []).append(card.text.strip())
    blocks = [
        "\n".join([*filter(None, [header_of(writer)]), "\n\n".join(texts)]) for writer, texts in by_writer.items()
    ]
    return "\n".join([MEMORY, *blocks]) if blocks else ""


def render_execution(execution: Execution, *, rows: int = 10, cell: int = 60) -> str:
    """Write what a statement returned in the few lines of a small context: columns, then a|b per row."""
    if isinstance(execution, Failure):
        return f"ERROR ({execution.kind}): {_shorten(execution.message, 200)}"
    if not execution.rows:
        return "(no rows)"
    shown = [
        "|".join(_shorten("NULL" if value is None else str(value), cell) for value in row)
        for row in execution.rows[:rows]
    ]
    more = len(execution.rows) - len(shown)
    return "\n".join(["|".join(execution.columns), *shown, *([f"... {more} more rows"] if more else [])])


def build_prompt(
    *,
    schema: str,
    dialect: str,
    question: Question,
    cards: Sequence[Card] = (),
    header_of: HeaderOf = no_header,
    style: Style = SINGLE_SHOT,
) -> tuple[Message, Message]:
    """Write the system prompt and the user message of one solve."""
    name = title_of(dialect)
    sections = [render_schema(schema), render_memory(cards, header_of), render_question(question)]
    user = "\n".join([*filter(None, sections), style.closing.format(dialect=name)])
    return Message("system", style.system.format(dialect=name)), Message("user", user)


def shared_beginning(messages: Sequence[Message]) -> Sequence[Message]:
    """Cut a prompt after the schema section, which all questions of a database share; nothing where it has none."""
    *before, last = messages
    end = _end_of_schema(last.content)
    return (*before, Message(last.role, last.content[:end])) if end else ()


def unread_tokens(calls: Sequence[Call]) -> int:
    """Estimate the prompt tokens of an answer that a prefix cache must still read, from the share of its characters.

    The cache holds the system prompt and the schema section, which all questions of a database share, and the earlier
    prompts of the same answer.
    """
    unread, read = 0.0, list[str]()
    for call in calls:
        text = "\0".join(message.content for message in call.messages)
        known = max((_shared(text, earlier) for earlier in read), default=0)
        unread += call.completion.prompt_tokens * (1 - max(known, _end_of_schema(text)) / max(1, len(text)))
        read.append(text)
    return round(unread)


def _end_of_schema(text: str) -> int:
    return min((place for mark in (MEMORY, QUESTION) if (place := text.find(f"\n{mark}\n")) >= 0), default=0)


def _shared(text: str, other: str) -> int:
    """Count the characters with which two texts begin alike."""
    pairs = enumerate(zip(text, other, strict=False))
    return next((place for place, (one, two) in pairs if one != two), min(len(text), len(other)))


def _shorten(text: str, limit: int) -> str:
    """Shorten to one line of at most `limit` characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
