"""The bare prompts: what a person writes who has a model, a schema and no tool.

`OPENAI` is OpenAI's demonstration of text-to-SQL, which evaluations on Spider took over; `DDL` shows the CREATE TABLE
statements, which those evaluations found to do better. Both end as they do there, and the SQL is run with sqlite3.
"""

import re
import sqlite3
import sys

import openai
from talk import PATIENCE, Endpoint, converse

OPENAI = """### Complete sqlite SQL query only and with no explanation
### SQLite SQL tables, with their properties:
#
{tables}
#
### {question}
SELECT"""
DDL = """/* Given the following database schema: */
{ddl}

/* Answer the following with a SQLite query only and with no explanation: {question} */
SELECT"""


class Bare:
    """One prompt, one reply."""

    def __init__(self, endpoint: Endpoint, template: str) -> None:
        """Keep the client."""
        self._client = openai.OpenAI(base_url=endpoint.base_url, api_key=endpoint.key, max_retries=0, timeout=PATIENCE)
        self._model, self._template = endpoint.model, template

    def open(self, place: str, examples: list[dict[str, str]]) -> None:  # noqa: ARG002
        """Read the schema; there is no memory."""
        self._connection = sqlite3.connect(place)
        named = "SELECT name, sql FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'"
        tables = self._connection.execute(named).fetchall()
        self._ddl = "\n\n".join(sql for _, sql in tables)
        self._tables = "\n".join(f"# {name}({', '.join(self._columns(name))})" for name, _ in tables)

    def answer(self, question: str) -> str:
        """Ask once, greedily."""
        prompt = self._template.format(ddl=self._ddl, tables=self._tables, question=question)
        reply = self._client.chat.completions.create(
            model=self._model, messages=[{"role": "user", "content": prompt}], temperature=0
        )
        return sql_of(reply.choices[0].message.content or "")

    def run(self, sql: str) -> int:
        """Run it as a script would."""
        rows = self._connection.execute(sql).fetchall()
        self._connection.commit()
        return len(rows)

    def _columns(self, table: str) -> list[str]:
        return [row[1] for row in self._connection.execute(f'PRAGMA table_info("{table}")')]


def sql_of(reply: str) -> str:
    """Take the SQL out of a reply: a block of code, or the text; the prompt has written the SELECT already."""
    block = re.search(r"```(?:sql|sqlite)?\s*\n?(.*?)(?:```|$)", reply, re.DOTALL | re.IGNORECASE)
    sql = (block[1] if block else reply).strip()
    begins = re.match(r"(select|with|insert|update|delete|drop|create|alter|replace|pragma|truncate)\b", sql, re.I)
    return sql if begins or not sql else f"SELECT {sql}"


if __name__ == "__main__":
    chosen = {"openai": OPENAI, "ddl": DDL}[sys.argv[5]]
    converse(lambda endpoint: Bare(endpoint, chosen))
