"""A chat as its messages tell it: the answer that the last one goes on from, or a verdict; and replies as Markdown.

Chats keep no state here: each request brings all messages, and every reply of ours names its answer or proposal.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlcrystal.bank import Scope
from sqlcrystal.errors import Contradicted, Forbidden, NotFound, UserError
from sqlcrystal.escaping import fenced, visible
from sqlcrystal.interfaces.server.work import Work
from sqlcrystal.serving.crystal import Crystal
from sqlcrystal.serving.documents import Rejection, Ruling
from sqlcrystal.solving.solver import QUERY

ROWS_IN_CHAT = 50
HOW = "Reply `right`, or `wrong: …` with a note or the right SQL, or ask on."
"""The words that a person can say next; the chat reads it as a verdict."""
PICK = "Reply `1` or `2` for the one that is meant, or `wrong: …` if neither is."
"""The words a person can say where an answer has two readings."""
# Signs that a chat client may turn into a link, an image or HTML, and with it send a value elsewhere.
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


_NAMED = re.compile(r"\b(?:Answer|Proposal) `(?P<id>(?:p-)?[0-9a-f]{8,64})`")
_RIGHT = re.compile(r"right(?P<anyway>[,;]?\s+anyway)?[.!]?", re.IGNORECASE)
_WRONG = re.compile(r"wrong(?:[.!]?|\s*:\s*(?P<note>.*))", re.IGNORECASE | re.DOTALL)
_PICK = re.compile(r"(?P<reading>[12])[.)!]?(?P<anyway>[,;]?\s+anyway)?[.!]?", re.IGNORECASE)
_CLIENTS_OWN = "### Task:"
"""How Open WebUI begins the prompts for its own titles, tags and suggestions, which are no questions to a database."""


class Said(NamedTuple):
    """One message: its role and its text."""

    role: str
    text: str


class Wish(NamedTuple):
    """The last message of a chat: a question or a verdict, and the answer or proposal that it is about."""

    text: str
    about: str = ""

    @property
    def is_verdict(self) -> bool:
        """Tell whether it judges what was answered last."""
        return bool(self.about) and any(said.fullmatch(self.text) for said in (_RIGHT, _WRONG, _PICK))


def wish_of(messages: Sequence[Said]) -> Wish:
    """Read the last message of a person, and the answer that the last reply before it gave."""
    place = next((place for place in reversed(range(len(messages))) if messages[place].role == "user"), None)
    text = messages[place].text.strip() if place is not None else ""
    if not text:
        raise UserError("messages: the last user message is the question, and there is none")
    if text.startswith(_CLIENTS_OWN):
        raise UserError(
            "messages: this asks for a title, tags or the like, not for data; switch that off in the client"
        )
    replies = [said.text for said in messages[:place] if said.role == "assistant"]
    named = [found["id"] for reply in replies[-1:] for found in _NAMED.finditer(reply)]
    return Wish(text, named[-1] if named else "")


def goes_on_from(door: Crystal, wish: Wish, database: str) -> str:
    """Name the answer that a question goes on from; none where it is gone, or the chat has changed its database."""
    try:
        return wish.about if wish.about and door.database_of(wish.about, Scope.ASK) == database else ""
    except (NotFound, Forbidden):
        return ""


async def judge(work: Work, door: Crystal, wish: Wish) -> str:
    """Give the verdict that a message says, and write what came of it."""
    right, wrong, picked = (said.fullmatch(wish.text) for said in (_RIGHT, _WRONG, _PICK))
    if right is not None or picked is not None:
        try:
            ruling = await work.write(lambda: _vouch(door, wish.about, right, picked))
        except Contradicted as doubt:
            again = f"{picked['reading']}, anyway" if picked is not None else "right, anyway"
            return f"{plain(str(doubt))} To bank it beside that card, reply `{again}`. {_name(wish.about)}"
        work.count_verdict(ruling)
        return _ruled(ruling)
    note = (wrong["note"] or "").strip() if wrong is not None else ""
    database = await work.look(lambda: door.database_of(wish.about))
    if QUERY.match(note):
        correction = await work.run(database, lambda: door.correct(wish.about, note))
        work.count_verdict(correction)
        return _ruled(correction)
    rejection = await work.run(database, lambda: door.reject(wish.about, note=note))
    work.count_verdict(rejection)
    return _rejected(rejection)


def _vouch(door: Crystal, about: str, right: re.Match[str] | None, picked: re.Match[str] | None) -> Ruling:
    """Confirm an answer, or the reading of it that was picked."""
    if picked is not None:
        return door.pick(about, int(picked["reading"]), anyway=picked["anyway"] is not None)
    return door.confirm(about, anyway=right is not None and right["anyway"] is not None)


def _ruled(ruling: Ruling) -> str:
    about = f" of the question {plain(ruling.question)}" if ruling.question else ""
    gone = f" No longer served: {', '.join(f'`{card[:8]}`' for card in ruling.replaced)}." if ruling.replaced else ""
    return f"Banked as card `{ruling.card[:8]}`{about}.{gone} Answer `{ruling.id}`, {ruling.verdict}."


def _rejected(rejection: Rejection) -> str:
    proposal = rejection.proposal
    if proposal is None:
        trouble = f" ({plain(rejection.trouble)})" if rejection.trouble else ""
        words = f"Rejected; nothing else was found{trouble}. Reply `wrong: SELECT …` with the right SQL, or ask anew."
        return f"{words} Answer `{rejection.id}`, rejected."
    read = [f"Read as: {plain(proposal.question)}"] if proposal.question else []
    rows = rows_in_markdown(proposal.columns, proposal.rows, proposal.row_count)
    told = [plain(proposal.words)] if proposal.words else []
    parts = [*read, fenced(visible(proposal.sql)), *told, rows, f"Proposal `{proposal.id}`, not banked. {HOW}"]
    return "\n\n".join(parts)


def _name(about: str) -> str:
    return f"{'Proposal' if about.startswith('p-') else 'Answer'} `{about}`."
