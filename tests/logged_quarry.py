"""A scripted model that knows the questions of Quarry's queries, and a log of them: learning without a real model."""

import re
from collections.abc import Sequence
from pathlib import Path

from shop import fenced
from sqlcrystal.benchmarks.catalogue import load_benchmark
from sqlcrystal.benchmarks.query_log import write_log
from sqlcrystal.databases.parsing import parse, written
from sqlcrystal.types import Message, Sampling

QUERY = re.compile(r"\[Query\]\n```sql\n(.*?)\n```", re.DOTALL)
DATABASE = "webshop"


class Reader:
    """Writes the question of a query as the benchmark has it, and answers it with the same query."""

    def __init__(self, database: str = DATABASE) -> None:
        benchmark = load_benchmark("quarry").only([database])
        self.cases = benchmark.cases
        self.location = benchmark.locations[database]
        self.questions = {self.plain(case.sql): " ".join(case.question.text.split()) for case in self.cases}
        self.queries = {question: sql for sql, question in self.questions.items()}

    def plain(self, sql: str) -> str:
        """The query as shapes write it."""
        return written(parse(sql, "sqlite"), "sqlite", comments=False)

    def __call__(self, messages: Sequence[Message], _: Sampling) -> str:
        """The question of a query, or the query of a question; nothing sensible for what is not known."""
        system, user = messages[0].content, messages[1].content
        if system.startswith("You read"):
            query = QUERY.search(user)
            return self.questions.get(self.plain(query[1]) if query else "", "What is in this log?")
        asked = user.rpartition("[Question]\n")[2].partition("\n")[0].strip()
        return fenced(self.queries.get(asked, "SELECT 1"))


def write(folder: Path, database: str = DATABASE) -> Path:
    """A log of 200 statements over one database."""
    write_log(load_benchmark("quarry").only([database]).cases, folder)
    return folder
