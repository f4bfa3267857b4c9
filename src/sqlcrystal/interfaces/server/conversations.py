"""A chat as its messages tell it: the answer that the last message goes on from, or the verdict that it gives.

Chats keep no state here: each request brings all messages, and every reply of ours names its answer or proposal.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from sqlcrystal.bank import Scope
from sqlcrystal.errors import Contradicted, Forbidden, NotFound, UserError
from sqlcrystal.escaping import fenced, visible
from sqlcrystal.interfaces.server.markdown import HOW, plain, rows_in_markdown
from sqlcrystal.interfaces.server.work import Work
from sqlcrystal.serving.crystal import Crystal
from sqlcrystal.serving.documents import Rejection, Ruling
from sqlcrystal.solving.solver import QUERY

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
