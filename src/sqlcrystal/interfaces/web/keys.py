"""Every key of the page in one table: badges, the help sheet and the handler are made from it."""

from typing import NamedTuple


class Key(NamedTuple):
    """A key, what it does, and where."""

    press: str
    does: str
    where: str


KEYS: dict[str, Key] = {
    "question": Key("/", "go to the question or search", "everywhere"),
    "ask page": Key("g a", "Ask", "everywhere"),
    "queue page": Key("g q", "Queue", "everywhere"),
    "bank page": Key("g b", "Bank", "everywhere"),
    "value page": Key("g v", "Value", "everywhere"),
    "studies page": Key("g t", "For researchers", "everywhere"),
    "settings page": Key("g s", "Settings", "everywhere"),
    "undo": Key("z", "undo the last verdict", "everywhere"),
    "keys": Key("?", "this sheet", "everywhere"),
    "stop": Key("Esc", "stop, else close, else leave the field", "everywhere"),
    "ask": Key("Enter", "ask; with Shift a new line", "question"),
    "confirm": Key("c", "confirm", "answers"),
    "reject": Key("r", "reject", "answers"),
    "correct": Key("e", "correct the SQL", "answers"),
    "next": Key("n", "next question that waits", "answers"),
    "copy sql": Key("y", "copy the SQL", "answers"),
    "copy rows": Key("Y", "copy the rows", "answers"),
    "chart": Key("t", "table, line or bars: the next one", "answers"),
    "card": Key("1 to 9", "open a card that was used", "answers"),
    "history": Key("h", "history", "answers"),
    "bank": Key("Ctrl+Enter", "bank my SQL", "editor"),
    "down": Key("j", "next in the list", "queue, query log, bank"),
    "up": Key("k", "previous in the list", "queue, query log, bank"),
    "skip": Key("s", "skip", "queue"),
    "choose": Key("x", "choose or leave out", "query log, bank"),
    "open": Key("Enter", "open", "bank"),
}
"""The whole table: what is no button's, link's or field's own key is the script's."""


def press(name: str) -> str:
    """The key of a deed."""
    return KEYS[name].press
