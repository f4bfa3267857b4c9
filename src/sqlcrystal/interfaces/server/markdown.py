"""Answers as Markdown for chats, in which nothing of the database can become a link, an image or HTML."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from sqlcrystal.escaping import fenced, visible

ROWS_IN_CHAT = 50
HOW = "Reply `right`, or `wrong: …` with a note or the right SQL, or ask on."
"""What a person can say next; the chat reads it as a verdict."""
PICK = "Reply `1` or `2` for the one that is meant, or `wrong: …` if neither is."
"""The words a person can say where an answer has two readings."""
# What a chat client may turn into a link, an image or HTML, and with it send a value elsewhere.
_LINKABLE = re.compile(r"[^\W\d_][.:@/]|[.:@/][^\W\d_]")
"""Clients link addresses and bare names of hosts, whatever is escaped in them; what is code they leave alone."""
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()<>#+!|~&:@-])")


def in_markdown(answer: Mapping[str, Any]) -> str:
    """An answer as Markdown in which nothing of the database can become a link, an image or HTML."""
    parts = [f"Read as: {plain(answer['question'])}"] if answer["follows"] else []
    parts.append(fenced(visible(answer["sql"])) if answer["sql"] else "The reply held no SQL.")
    if answer["words"]:
        parts.append(plain(answer["words"]) + _unasked(answer["unasked"]))
    if answer["error"]:
        parts.append(f"It did not run: {plain(answer['error'])}")
    elif answer["sql"]:
        parts.append(rows_in_markdown(answer["columns"], answer["rows"] or [], answer["row_count"]))
    used = ", ".join(f"`{card['id'][:8]}`" for card in answer["cards"])
    parts += _readings(answer["readings"])
    how = PICK if answer["readings"] else HOW
    parts.append(f"Answer `{answer['id']}`, {'cards used: ' + used if used else 'no cards used'}. {how}")
    if answer["audit"]:
        parts.append("Chance chose this answer to be judged, whatever it says: it waits in the queue until it is.")
    return "\n\n".join(parts)


def _readings(readings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Write the two readings of a question: the first is above, the second with its SQL and rows."""
    if not readings:
        return []
    first, second = readings
    told = [f"This can be read in two ways. 1: {plain(first['words']) or 'as above'}"]
    told.append(f"2: {plain(second['words']) or 'by this query'}")
    return [
        *told,
        fenced(visible(second["sql"])),
        rows_in_markdown(second["columns"], second["rows"], second["row_count"]),
    ]


def _unasked(parts: Sequence[str]) -> str:
    """Name the parts of the words that no word of the question asks for."""
    return f" Not asked for: {'; '.join(map(plain, parts))}." if parts else ""


def plain(text: object) -> str:
    """Text that Markdown leaves alone, on one line; as code where a client might make a link of its words."""
    line = " ".join(visible(str(text)).split())
    if _LINKABLE.search(line):
        fence = "`" * (1 + max((len(run) for run in re.findall(r"`+", line)), default=0))
        return f"{fence} {line} {fence}".replace("|", "\\|")
    return _MARKDOWN.sub(r"\\\1", line)


def rows_in_markdown(columns: Sequence[str], rows: Sequence[Sequence[Any]], count: int) -> str:
    """Rows as a table, and how many there are."""
    shown = rows[:ROWS_IN_CHAT]
    words = f"{count} row{'' if count == 1 else 's'}"
    more = f"First {len(shown)} of {words}." if count > len(shown) else f"{words}."
    return f"{_table(columns, shown)}\n\n{more}"


def _table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    head = ["| " + " | ".join(plain(column) or " " for column in columns) + " |", "|" + " --- |" * len(columns)]
    body = ["| " + " | ".join("NULL" if cell is None else plain(cell) for cell in row) + " |" for row in rows]
    return "\n".join([*head, *body])
