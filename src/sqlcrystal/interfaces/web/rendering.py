"""Templates into pages: everything is escaped, and every page knows who is looking, at which database."""

from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from fastapi import Request
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse

from sqlcrystal.bank import Scope
from sqlcrystal.errors import NotFound
from sqlcrystal.escaping import visible
from sqlcrystal.interfaces.server.access import Door
from sqlcrystal.interfaces.server.work import Work
from sqlcrystal.interfaces.web.text import coloured, heading, lines_on_phone, show_cell, with_marks
from sqlcrystal.serving import Caller
from sqlcrystal.serving.documents import WaitingAnswer
from sqlcrystal.version import __version__


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


FOLDER = Path(__file__).parent
PAGES = (
    ("Ask", "/", "ask page"),
    ("Queue", "/queue", "queue page"),
    ("Bank", "/bank", "bank page"),
    ("Value", "/value", "value page"),
    ("Settings", "/settings", "settings page"),
    ("For researchers", "/studies", "studies page"),
)
DATABASE_COOKIE = "database"
STATES = {"waiting": "not checked"}
"""The word that a person reads for a state, where it is not its own name."""
SIGNALS = {
    "user": "person",
    "oracle": "answer key",
    "benchmark": "answer key",
    "assertion": "assertion",
    "external": "outside check",
    "ungated": "unchecked",
    "noisy": "key that errs",
    "engine": "engine's signs",
    "round-trip": "round trip",
}
"""How a card or verdict was vouched for, in words."""
MOST_WAITING = 200


@cache
def environment() -> Environment:
    """The templates of this package; a name that is missing is an error, text is escaped."""
    made = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(
        key=press,
        keys=KEYS,
        visible=lambda text: visible(str(text)),
        coloured=coloured,
        with_marks=with_marks,
        lines_on_phone=lines_on_phone,
        show_cell=show_cell,
        heading=heading,
        state_words=lambda state: STATES.get(str(state), str(state)),
        signal_words=signal_words,
        day=day,
        fresh=False,
        editing=False,
        in_queue=False,
        queue_next="",
        undone="",
        view=None,
        formats=(("tsv", "TSV"), ("csv", "CSV"), ("md", "Markdown"), ("json", "JSON")),
    )
    return made


def signal_words(signal: str) -> str:
    """Say how a card or verdict was vouched for."""
    return SIGNALS.get(str(signal), str(signal))


def day(moment: str) -> str:
    """3 Mar 2026; what cannot be read stays as it is."""
    try:
        parsed = datetime.fromisoformat(moment.replace("Z", "+00:00"))
    except ValueError:
        return moment
    return f"{parsed.day} {parsed:%b %Y}"


def page(request: Request, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """A whole page."""
    work: Work = request.app.state.work
    caller: Caller | None = getattr(request.state, "caller", None)
    theme = request.cookies.get("theme", "")
    common: dict[str, Any] = {
        "version": __version__,
        "theme": theme if theme in {"light", "dark"} else "",
        "person": caller.person if caller else "",
        "demo": work.settings.demo and caller is not None,
        "navigation": _navigation(request, caller, values.get("waiting_count", 0)),
        "databases": [],
        "database": "",
        "database_action": request.url.path,
    }
    text = environment().get_template(template).render({**common, **values})
    return HTMLResponse(text, status_code=status)


def fragment(template: str, **values: Any) -> HTMLResponse:
    """A part of a page, for the script to put in place."""
    return HTMLResponse(environment().get_template(template).render(values))


def _navigation(request: Request, caller: Caller | None, waiting: int) -> list[dict[str, Any]]:
    if caller is None:
        return []
    hidden = set() if caller.may_anywhere(Scope.JUDGE) else {"Queue"}
    hidden |= set() if caller.owns_all else {"For researchers"}
    path = request.url.path
    return [
        {
            "name": name,
            "href": href,
            "key": key,
            "here": path == href or (href != "/" and path.startswith(href)) or (href == "/" and path.startswith("/a/")),
            "count": waiting if name == "Queue" else 0,
        }
        for name, href, key in PAGES
        if name not in hidden
    ]


def databases_of(door: Door, scope: Scope | None = None) -> list[str]:
    """Name the databases that a caller sees, or on which they have a scope, in order."""
    return sorted(door.database_names(scope))


def waiting_in(door: Door, database: str) -> list[WaitingAnswer]:
    """List what waits for a caller's verdict in a database; the bar at the top counts it on every page."""
    return door.queue(database, limit=MOST_WAITING, told=False) if door.caller.allows(database, Scope.JUDGE) else []


def proposed_terms(door: Door, database: str) -> int:
    """Count the proposed definitions that wait for a caller's verdict in a database."""
    return len(door.definition_proposals(database)) if door.caller.allows(database, Scope.JUDGE) else 0


def waiting_count(request: Request, door: Door) -> int:
    """Count what waits in the last database looked at, for a page that is about none; 0 where there is none."""
    return len(waiting_in(door, chosen_database(request, door, None))) if databases_of(door) else 0


def chosen_database(request: Request, door: Door, wanted: str | None, scope: Scope | None = None) -> str:
    """Name the database that a page is about: the one asked for, the last one looked at, or the first."""
    seen = databases_of(door, scope)
    for name in (wanted, unquote(request.cookies.get(DATABASE_COOKIE, ""))):
        if name in seen:
            return str(name)
    if not seen:
        if scope is not None:
            door.caller.require_anywhere(scope)
        raise NotFound("no database here, or none for you")
    return seen[0]
