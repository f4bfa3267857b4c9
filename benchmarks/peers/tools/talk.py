"""The talk between `make peers` and a tool in an environment of its own: one JSON document a line, in and out.

Asked are {"do": "open", "place", "examples"}, {"do": "answer", "question"} and {"do": "run", "sql"}; what comes back is
{"sql"}, {"rows"} or {"error"}. A tool is a class with the three methods; what libraries print goes to standard error.
"""

import json
import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

PATIENCE = 3600.0
"""Seconds that a tool's client waits for a reply: the model is shared, and the asker keeps the time."""


class Endpoint(NamedTuple):
    """Where every tool finds the model and the embedder."""

    base_url: str
    key: str
    model: str
    embedder: str


class Tool(Protocol):
    """A tool as its users meet it."""

    def open(self, place: str, examples: list[dict[str, str]]) -> None:
        """Take a SQLite file, with questions and their verified SQL for tools that have a memory."""

    def answer(self, question: str) -> str:
        """Give the SQL for a question."""

    def run(self, sql: str) -> int:
        """Execute SQL the way the tool does, and count the rows."""


def converse(make: Callable[[Endpoint], Tool]) -> None:
    """Answer line by line until the input ends."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    tool = make(Endpoint(*sys.argv[1:5]))
    for line in sys.stdin:
        out.write(json.dumps(_reply(tool, json.loads(line))) + "\n")
        out.flush()


def _reply(tool: Tool, asked: dict[str, Any]) -> dict[str, object]:
    try:
        if asked["do"] == "open":
            tool.open(asked["place"], asked["examples"])
            return {}
        if asked["do"] == "answer":
            return {"sql": tool.answer(asked["question"])}
        return {"rows": tool.run(asked["sql"])}
    except Exception as error:  # whatever a library raises is its answer
        return {"error": f"{type(error).__name__}: {error}"[:2000]}
