"""Texts that are answered with a sentence and no SQL: greetings, orders to change data, questions about something else.

Rules alone, no model and no vectors, so that they cost nothing and a reader can tell when they hold. The last rule is
for English only: it keeps silent over a schema or a question in which too few common English words stand.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from sqlcrystal.errors import NotAQuestion
from sqlcrystal.serving.workspace import OpenDatabase, Workspace
from sqlcrystal.telling.words import meet, stems
from sqlcrystal.types import Question, Table

_GREETING = re.compile(
    r"(?:hello|hi|hey|hiya|howdy|greetings|good (?:morning|afternoon|evening|day|night)|thanks?|thank you|many thanks"
    r"|bye|goodbye|ok(?:ay)?|test(?:ing)?|help|how are you|who are you|what can you do)"
    r"(?:[\s,]+(?:there|all|everyone|everybody|again|you|very much|so much|a lot|world|please|doing|today|me))*"
    r"[\s!.?,]*",
    re.IGNORECASE,
)
_ASKED_NICELY = r"(?:please[\s,]+|(?:can|could|would|will) you (?:please )?|i (?:want|need) (?:you )?to |let'?s |now )?"
_ORDER = re.compile(
    rf"{_ASKED_NICELY}(?:"
    r"(?:delete|erase|wipe|purge|truncate|insert|overwrite|alter)\s+(?!me\b|us\b|on\b)\S+"
    r"|update\s+(?!me\b|us\b|on\b|(?:the|this|that|your|my)\s+(?:list|table|result|query|answer|output)\b)\S+"
    r"|drop\s+(?:the|all|every|table|database|column|view|index)\b"
    r"|remove\s+(?:all|every|the)\b"
    r"|(?:add|create)\s+(?:a|an|new)\s+(?:new\s+)?(?:row|record|entry|table|column|user|customer)\b"
    r"|(?:set|change|rename)\s+(?:the|all|every)\b.*\bto\b)",
    re.IGNORECASE | re.DOTALL,
)
COMMON = """
a about according across after all also among an and any are as at average based before below between by can compare
could count did display do does during each every find first for from get give given has have how identify if in
include is it its least let like list many me more most need of on only or out over per please provide report return
show since some sort than that the their there these they this those to top under until up was we were what when where
which while who whom whose why will with within without would you your our number numbers much them ones same different
distinct ever other both either us
"""
_TIME = """
last first next previous current now today yesterday tomorrow year years month months week day days past recent ago time
"""
_OF_SCHEMAS = """
date year type number price address city country title description first last start end count amount quantity customer
order product employee student department location age category size value rank birth gender day time month school
"""
_SAYS_A_VALUE = re.compile(r"\d|[\"“‘«]|(?<!\w)'|(?<=\s)[A-Z]\w*|[^\x00-\x7f]")
_QUOTED = re.compile(r"'([^']*)'")
ENGLISH_SCHEMA, ENGLISH_QUESTION = 3, 1
"""So many common words must stand in a schema and in a question for a missing one to say anything."""
MOST_TABLES = 200
"""A schema with more than these is about too much to say what it is not about."""


def refuse_what_asks_nothing(workspace: Workspace, opened: OpenDatabase, question: Question) -> None:
    """Raise a sentence for a text that no SQL can answer; let every other text through."""
    text = question.text
    if _GREETING.fullmatch(text):
        some = ", ".join(table.name for table in list(opened.presenter.tables())[:5])
        raise NotAQuestion(f"This answers questions about the database {opened.name} (it has {some}); ask one.")
    if _ORDER.match(text):
        raise NotAQuestion("This only reads: nothing was changed, and nothing can be. Ask for the rows that you mean.")
    tables = opened.presenter.tables()
    if len(tables) <= MOST_TABLES and is_about_something_else(text, tables) and not _is_known(workspace, question):
        raise NotAQuestion(
            f"No word of the question names anything in the database {opened.name}. Name a table or a column of it, "
            f"or put a value that it holds in quotes."
        )


def is_about_something_else(text: str, tables: Sequence[Table]) -> bool:
    """Tell whether a question names nothing of a schema, and no value that its rows may hold."""
    if _SAYS_A_VALUE.search(text[1:]):
        return False
    said, schema = stems(text), _stems_of(_vocabulary(tables))
    asked = said - stems(_TIME)
    spoken = {word for word in re.findall(r"[a-z]+", text.lower()) if len(word) > 2}
    if len(spoken & set((COMMON + _TIME).split())) < ENGLISH_QUESTION:
        return False
    if len(schema & stems(_OF_SCHEMAS)) < ENGLISH_SCHEMA or asked & schema:
        return False
    content = {word for word in asked - stems(COMMON) if len(word) > 1}
    return bool(content) and not meet(content, schema)


def _is_known(workspace: Workspace, question: Question) -> bool:
    """Tell whether somebody vouched for an answer to this very question, or defined a term that stands in it."""
    if not workspace.store_exists():
        return False
    if workspace.glossary(question.database).found(question.text):
        return True
    return bool(workspace.store.bank.find(database=question.database, question=question.text))


def _vocabulary(tables: Sequence[Table]) -> str:
    """Gather the words of a schema: names, comments, and the values that its definitions list."""
    words: list[str] = []
    for table in tables:
        words += [table.name, table.comment, *_QUOTED.findall(table.definition)]
        words += [f"{column.name} {column.comment}" for column in table.columns]
        if not table.columns:
            words.append(table.definition)
    return "\n".join(words)


@lru_cache(maxsize=64)
def _stems_of(vocabulary: str) -> frozenset[str]:
    return stems(vocabulary)
