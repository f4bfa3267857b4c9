"""The three-row shop: the smallest database on which a question can be answered wrong and then repaired."""

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

from sqlcrystal.types import Completion, Message, Question, Sampling

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


class Answers:
    """A model that answers by a function of the prompt, and remembers what it was asked."""

    name = "answers"
    digest = "answers"

    def __init__(self, reply: Callable[[Sequence[Message], Sampling], str]) -> None:
        self.reply = reply
        self.asked: list[tuple[tuple[Message, ...], Sampling]] = []

    def chat(self, messages: Sequence[Message], *, sampling: Sampling) -> Completion:
        """Whatever the function says."""
        self.asked.append((tuple(messages), sampling))
        return Completion(text=self.reply(messages, sampling), prompt_tokens=10, completion_tokens=5)
