"""The three-row shop: the smallest database on which a question can be answered wrong and then repaired."""

import re
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from sqlcrystal.types import Message, Question, Sampling

SCHEMA = """\
CREATE TABLE item (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    price INTEGER NOT NULL
);"""
ROWS = [(1, "Bolt", "HW", 120), (2, "Nut", "HW", 80), (3, "Tea", "FD", 450)]

QUESTION = Question(
    id="shop-1", database="shop", text="How many hardware items are there?", evidence="hardware is a kind"
)
WRONG = "SELECT COUNT(*) FROM item WHERE kind = 'hardware'"
RIGHT = "SELECT COUNT(*) FROM item WHERE kind = 'HW'"
PROBE = "SELECT DISTINCT kind FROM item"
PROFILE = re.compile(r"^-- item\..*$", re.MULTILINE)


def build(path: Path) -> Path:
    """Write the shop to a SQLite file."""
    with sqlite3.connect(path) as connection:
        connection.execute(SCHEMA)
        connection.executemany("INSERT INTO item VALUES (?, ?, ?, ?)", ROWS)
    connection.close()
    return path


def fenced(*queries: str) -> str:
    """A reply with each query in its own block."""
    return "\n".join(f"```sql\n{query}\n```" for query in queries)


def repairing(messages: Sequence[Message], _: Sampling) -> str:
    """A model that errs at first, probes when told so, and is right once it has seen what the probes revealed.

    The profile of the columns is lost on it, so that a story about repair begins with a wrong answer.
    """
    system, seen = messages[0].content, PROFILE.sub("", messages[1].content)
    if "debugging" in system or "Explore first" in system:
        return fenced(PROBE, "SELECT price FROM item WHERE name = 'Tea'")
    if system.startswith("You write a compact"):
        return '{"trigger": "kind is filtered", "applicability": "", "negative_guard": "", "lesson": "kind holds HW"}'
    return fenced(RIGHT if "HW" in seen or "correcting" in system else WRONG)


def right(sql: str) -> bool:
    """The oracle's bit for the shop's one question."""
    return sql == RIGHT


OWN_TESTS = f"""
- name: hardware
  question: {QUESTION.text}
  sql: {RIGHT}
- name: all items
  question: How many items are there?
  rows: [[3]]
"""


def helped(messages: Sequence[Message], _: Sampling) -> str:
    """Right about hardware only where a card says how."""
    question = messages[1].content.rsplit("[Question]", 1)[-1]
    return fenced(RIGHT if "hardware" in question and RIGHT in messages[1].content else "SELECT COUNT(*) FROM item")
