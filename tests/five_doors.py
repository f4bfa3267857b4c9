"""The five doors to every action, each driven as its own users do: Python, commands, HTTP, the page and MCP."""

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import httpx
import pytest

from cardbox import HashingEmbedder
from mcp_talk import talk
from running_service import Service, listening, replying
from shop import build
from sqlcrystal.bank import Scope
from sqlcrystal.config.team import DatabaseEntry, TeamFile
from sqlcrystal.errors import Forbidden, NotFound, UserError
from sqlcrystal.interfaces.server.settings import ServerSettings
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.serving import Caller, Crystal

EVERY = (Scope.ASK, Scope.JUDGE, Scope.MANAGE)
CALLERS: dict[str, tuple[str, list[tuple[str, Scope]]]] = {
    "known": ("ada", [("*", scope) for scope in EVERY]),
    "asks only": ("ada", [("shop", Scope.ASK)]),
    "of another database": ("ada", [("vault", scope) for scope in EVERY]),
    "not of the team": ("eve", [("*", scope) for scope in EVERY]),
}
WORDS = {403: "forbidden", 404: "missing", 422: "refused"}


class Given(NamedTuple):
    """Names and texts that an action is given."""

    database: str
    answer: str = ""
    card: str = ""
    sql: str = ""
    text: str = ""
    note: str = ""
    definition: str = ""


class Door(Protocol):
    """One way in: gives `done`, `forbidden`, `missing` or `refused`, and the words beside it."""

    actions: frozenset[str]

    def __init__(self, service: Service, caller: str, patch: pytest.MonkeyPatch, /) -> None:
        """Come in as one of the callers."""

    def act(self, action: str, given: Given) -> tuple[str, str]:
        """Do it as this door's users would."""
        ...


class PythonDoor:
    """A program of the team's."""

    actions = frozenset(
        {"confirm", "correct", "reject", "undo", "edit", "disable", "delete", "revoke", "run", "look"}
        | {"define", "redefine", "import", "remove", "propose", "terms"}
    )

    def __init__(self, service: Service, caller: str, _: pytest.MonkeyPatch) -> None:
        person, scopes = CALLERS[caller]
        self.crystal = service.crystal.acting_for(Caller(person=person, scopes=frozenset(scopes)))

    def act(self, action: str, given: Given) -> tuple[str, str]:
        """Call the method of the action's name."""
        door = self.crystal
        calls: dict[str, Callable[[], object]] = {
            "confirm": lambda: door.confirm(given.answer, note=given.note),
            "correct": lambda: door.correct(given.answer, given.sql, note=given.note),
            "reject": lambda: door.reject(given.answer, note=given.note, repair=False),
            "undo": lambda: door.undo(given.answer),
            "edit": lambda: door.edit(given.card, sql=given.sql, text=given.text or None, reason=given.note),
            "disable": lambda: door.disable([given.card], reason=given.note),
            "delete": lambda: door.delete(given.card, reason=given.note),
            "revoke": lambda: door.revoke(by="no such person", database=given.database),
            "run": lambda: door.run(given.sql, given.database),
            "look": lambda: door.answer(given.answer),
            "define": lambda: door.define(given.text, given.sql, given.database, meaning=given.note),
            "redefine": lambda: door.redefine(given.definition, sql=given.sql, meaning=given.note, reason=given.note),
            "import": lambda: door.import_definitions(table_of(given), given.database),
            "remove": lambda: door.delete(given.definition, reason=given.note),
            "propose": lambda: door.propose_definitions(given.database),
            "terms": lambda: door.definitions(given.database),
        }
        try:
            return "done", str(calls[action]())
        except (NotFound, Forbidden, UserError) as error:
            words = {NotFound: "missing", Forbidden: "forbidden"}
            return words.get(type(error), "refused"), str(error)


class HttpDoor:
    """A program elsewhere."""

    actions = PythonDoor.actions

    def __init__(self, service: Service, caller: str, _: pytest.MonkeyPatch) -> None:
        self._send = _sender(service, caller)

    def act(self, action: str, given: Given) -> tuple[str, str]:
        """Send the request of the action."""
        answer, card = f"/api/answers/{given.answer}", f"/api/cards/{given.card}"
        defined = f"/api/definitions/{given.definition}"
        note = {"note": given.note}
        edit = {"sql": given.sql, "reason": given.note} | ({"text": given.text} if given.text else {})
        requests: dict[str, tuple[str, str, Any]] = {
            "confirm": ("POST", f"{answer}/confirm", note),
            "correct": ("POST", f"{answer}/correct", {"sql": given.sql, **note}),
            "reject": ("POST", f"{answer}/reject", {"repair": False, **note}),
            "undo": ("POST", f"{answer}/undo", None),
            "edit": ("PATCH", card, edit),
            "disable": ("PATCH", card, {"status": "disabled", "reason": given.note}),
            "delete": ("DELETE", card, None),
            "revoke": ("POST", "/api/cards/revoke", {"by": "no such person", "database": given.database}),
            "run": ("POST", "/api/run", {"sql": given.sql, "database": given.database}),
            "look": ("GET", answer, None),
            "define": (
                "POST",
                "/api/definitions",
                {"term": given.text, "sql": given.sql, "database": given.database, "meaning": given.note},
            ),
            "redefine": ("PATCH", defined, {"sql": given.sql, "meaning": given.note, "reason": given.note}),
            "import": ("POST", "/api/definitions/import", {"text": table_of(given), "database": given.database}),
            "remove": ("DELETE", f"/api/cards/{given.definition}", None),
            "propose": ("POST", "/api/definitions/propose", {"database": given.database}),
            "terms": ("GET", f"/api/definitions?database={given.database}", None),
        }
        method, path, body = requests[action]
        return _outcome(self._send(method, path, json=body))


class PageDoor:
    """A person with a browser, whose forms are sent by the page's script."""

    actions = PythonDoor.actions - {"import", "terms"}  # an upload, and a list that says whose it is

    def __init__(self, service: Service, caller: str, _: pytest.MonkeyPatch) -> None:
        self._send = _sender(service, caller, {"X-Fragment": "1"})

    def act(self, action: str, given: Given) -> tuple[str, str]:
        """Send the form of the action."""
        answer, card = f"/a/{given.answer}", f"/bank/{given.card}"
        fields = {"term": given.text, "sql": given.sql, "meaning": given.note}
        forms: dict[str, tuple[str, str, dict[str, str]]] = {
            "confirm": ("POST", f"{answer}/confirm", {}),
            "correct": ("POST", f"{answer}/correct", {"sql": given.sql}),
            "reject": ("POST", f"{answer}/reject", {"note": given.note}),
            "undo": ("POST", f"{answer}/undo", {}),
            "edit": ("POST", f"{card}/edit", {"sql": given.sql}),
            "disable": ("POST", f"{card}/disable", {}),
            "delete": ("POST", f"{card}/delete", {}),
            "revoke": ("POST", "/bank/revoke", {"by": "no such person", "database": given.database}),
            "run": ("POST", "/run", {"sql": given.sql, "database": given.database}),
            "look": ("GET", answer, {}),
            "define": ("POST", "/bank/definitions", {"database": given.database, **fields}),
            "redefine": ("POST", f"/bank/definitions/{given.definition}/edit", fields),
            "remove": ("POST", f"/bank/definitions/{given.definition}/delete", {}),
            "propose": ("POST", "/queue/definitions", {"database": given.database}),
        }
        method, path, sent = forms[action]
        return _outcome(self._send(method, path, data=sent))


class McpDoor:
    """An assistant, whose replies a model reads."""

    actions = frozenset({"confirm", "correct", "reject", "run", "define", "terms"})

    def __init__(self, service: Service, caller: str, _: pytest.MonkeyPatch) -> None:
        self._service, self._caller = service, caller

    def act(self, action: str, given: Given) -> tuple[str, str]:
        """Call the tool of the action."""
        tools: dict[str, tuple[str, dict[str, Any]]] = {
            "confirm": ("confirm", {"answer_id": given.answer, "note": given.note}),
            "correct": ("reject", {"answer_id": given.answer, "sql": given.sql, "note": given.note}),
            "reject": ("reject", {"answer_id": given.answer, "note": given.note}),
            "run": ("run_sql", {"sql": given.sql, "database": given.database}),
            "define": (
                "define",
                {"term": given.text, "sql": given.sql, "database": given.database, "meaning": given.note},
            ),
            "terms": ("list_definitions", {"database": given.database}),
        }
        _, (reply,) = talk(self._service, self._caller, tools[action])
        words = reply.content[0].text
        if not reply.is_error:
            return "done", str(reply.structured_content)
        lacks, absent = "lacks the scope" in words, "or not for you" in words
        return "forbidden" if lacks else "missing" if absent else "refused", words


class CommandDoor:
    """The person at the keyboard, to whom every database is open; the team must still know them."""

    actions = PythonDoor.actions - {"undo", "run", "look", "terms"}

    def __init__(self, service: Service, caller: str, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch
        patch.chdir(Path(service.crystal.workspace.team.store).parent)
        patch.setattr("getpass.getuser", lambda: CALLERS[caller][0])

    def act(self, action: str, given: Given) -> tuple[str, str]:
        """Run the command of the action."""
        note, reason = ("--note", given.note), ("--reason", given.note)
        text = ("--text", given.text) if given.text else ()
        commands: dict[str, tuple[str, ...]] = {
            "confirm": ("confirm", given.answer, *note),
            "correct": ("reject", given.answer, "--sql", given.sql, *note),
            "reject": ("reject", given.answer, "--no-repair", *note),
            "edit": ("cards", "edit", given.card, "--sql", given.sql, *text, *reason),
            "disable": ("cards", "disable", given.card, *reason),
            "delete": ("cards", "delete", given.card, *reason),
            "revoke": ("cards", "revoke", "--by", "no such person", "--db", given.database),
            "define": ("definitions", "add", given.text, given.sql, "--db", given.database, "--meaning", given.note),
            "redefine": ("definitions", "edit", given.definition, "--sql", given.sql, "--meaning", given.note, *reason),
            "import": ("definitions", "import", "definitions.csv", "--db", given.database),
            "remove": ("definitions", "delete", given.definition, *reason),
            "propose": ("definitions", "propose", "--db", given.database),
        }
        if action == "import":
            Path("definitions.csv").write_text(table_of(given), encoding="utf-8")
        code, words = self._run(*commands[action])
        return ("done", "refused")[code > 0], words

    def _run(self, *arguments: str) -> tuple[int, str]:
        from sqlcrystal.interfaces.cli.app import main

        self._patch.setattr(sys, "argv", ["sqlcrystal", *arguments])
        heard = StringIO()
        with contextlib.redirect_stdout(heard), contextlib.redirect_stderr(heard):
            try:
                main()
            except SystemExit as end:
                return int(end.code or 0), heard.getvalue()
        return 0, heard.getvalue()


DOORS: dict[str, type[Door]] = {
    "Python": PythonDoor,
    "command": CommandDoor,
    "HTTP": HttpDoor,
    "page": PageDoor,
    "MCP": McpDoor,
}


def table_of(given: Given) -> str:
    """A CSV with one definition."""
    quoted = [cell.replace('"', '""') for cell in (given.text, given.sql, given.note)]
    return "term,sql,meaning\n" + ",".join(f'"{cell}"' for cell in quoted) + "\n"


def _sender(service: Service, caller: str, headers: dict[str, str] | None = None) -> Callable[..., httpx.Response]:
    known = {"Authorization": f"Bearer {service.tokens[caller]}", **(headers or {})}

    def send(method: str, path: str, **body: Any) -> httpx.Response:
        return httpx.request(method, service.url + path, headers=known, timeout=60, **body)

    return send


def _outcome(reply: httpx.Response) -> tuple[str, str]:
    return WORDS.get(reply.status_code, "done" if reply.status_code < 400 else str(reply.status_code)), reply.text


@contextlib.contextmanager
def team_of_ada(folder: Path) -> Iterator[Service]:
    """Serve two databases, of which one keeps no values, for a team that knows Ada alone; settings lie beside it."""
    from sqlcrystal.interfaces.server.app import make_app

    entries = {
        "shop": DatabaseEntry(url=str(build(folder / "shop.sqlite"))),
        "vault": DatabaseEntry(url=str(build(folder / "vault.sqlite")), values="never"),
    }
    team = TeamFile(databases=entries, store=str(folder / "team.db"), people=("ada",), budget=0)
    lines = [f"store = {json.dumps(team.store)}", 'people = ["ada"]', "budget = 0"]
    for name, entry in entries.items():
        lines += [f"[databases.{name}]", f"url = {json.dumps(entry.url)}", f'values = "{entry.values}"']
    (folder / "sqlcrystal.toml").write_text("\n".join(lines) + "\n")
    model = ScriptedModel(replying)
    with Crystal(team, model=model, embedder=HashingEmbedder()) as crystal:
        tokens = {
            name: crystal.store.tokens.issue(person, scopes, by="test")[0] for name, (person, scopes) in CALLERS.items()
        }
        settings = ServerSettings(requests_per_minute=1_000_000, allow_write=True)
        with listening(make_app(crystal, settings)) as url:
            yield Service(url, crystal, tokens, model)
