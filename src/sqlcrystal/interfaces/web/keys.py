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
    "studies page": Key("g t", "Studies", "everywhere"),
    "settings page": Key("g s", "Settings", "everywhere"),
    "undo": Key("z", "undo the verdict", "everywhere"),
    "keys": Key("?", "this sheet", "everywhere"),
    "confirm": Key("c", "confirm", "answers"),
    "reject": Key("r", "reject", "answers"),
    "correct": Key("e", "correct the SQL", "answers"),
    "next": Key("n", "next question that waits", "answers"),
    "copy sql": Key("y", "copy the SQL", "answers"),
    "copy rows": Key("Y", "copy the rows", "answers"),
    "chart": Key("t", "table or chart", "answers"),
    "history": Key("h", "history", "answers"),
    "down": Key("j", "next in the list", "lists"),
    "up": Key("k", "previous in the list", "lists"),
    "skip": Key("s", "skip", "lists"),
}
"""Beside these: Enter asks, Shift+Enter breaks the line, Ctrl+Enter banks the SQL, Esc stops or leaves a field,
1 to 9 open a card."""


def press(name: str) -> str:
    """The key of a deed."""
    return KEYS[name].press
