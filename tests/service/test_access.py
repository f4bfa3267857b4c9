"""Every route × every kind of token, from one table; and two tenants who see nothing of each other."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import httpx
import pytest
from fastapi.routing import iter_route_contexts

from running_service import ASKED, Service, serving
from sqlcrystal.interfaces.server.app import make_app
from sqlcrystal.interfaces.server.gate import OPEN, OPEN_FOLDER
from sqlcrystal.serving.definitions import proposal_of
from sqlcrystal.types import Definition

ASK, JUDGE, MANAGE, OWNER, ANYBODY, EVERYONE = "ask", "judge", "manage", "owner", "anybody", "everyone"
MAY = {
    ASK: {"ask", "judge", "manage", "owner"},
    JUDGE: {"judge", "manage", "owner"},
    MANAGE: {"manage", "owner"},
    OWNER: {"owner"},
    ANYBODY: {"ask", "judge", "manage", "other", "owner"},
    EVERYONE: {"", "ask", "judge", "manage", "other", "owner", "revoked", "ended", "invented"},
}
KINDS = ("", "invented", "revoked", "ended", "ask", "judge", "manage", "other", "owner")


class Door(NamedTuple):
    """A route, who may pass, and what they send; `of` is what the address is about."""

    method: str
    path: str
    who: str
    json: dict[str, Any] | None = None
    form: dict[str, str] | None = None
    upload: str = ""


CHAT = {"model": "shop", "messages": [{"role": "user", "content": ASKED}]}
LOG = "SELECT COUNT(*) FROM item;"
TERMS = "term,sql,tables\nhardware good,kind = 'HW',item\n"
TERM = {"database": "shop", "term": "hardware thing", "sql": "kind = 'HW'"}
TOOL = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
DOORS = (
    Door("GET", "/health", EVERYONE),
    Door("GET", "/ready", EVERYONE),
    Door("GET", "/login", EVERYONE),
    Door("GET", "/static/{path}", EVERYONE),
    Door("POST", "/login", ANYBODY, form={"token": "{own}"}),
    Door("POST", "/logout", ANYBODY),
    Door("GET", "/metrics", OWNER),
    Door("GET", "/openapi.json", ANYBODY),
    Door("POST", "/mcp", ANYBODY, json=TOOL),
    Door("POST", "/api/ask", ASK, json={"question": ASKED, "database": "shop"}),
    Door("POST", "/api/asks/{ticket}/stop", "nobody"),
    Door("GET", "/api/answers?database=shop", ASK),
    Door("GET", "/api/answers/{answer}", ASK),
    Door("POST", "/api/answers/{answer}/confirm", JUDGE, json={}),
    Door("POST", "/api/answers/{answer}/correct", JUDGE, json={"sql": "SELECT 2"}),
    Door("POST", "/api/answers/{torn}/pick", JUDGE, json={"reading": 2, "anyway": True}),
    Door("POST", "/api/answers/{answer}/reject", JUDGE, json={"repair": False}),
    Door("POST", "/api/answers/{judged}/undo", JUDGE),
    Door("POST", "/api/confirm", JUDGE, json={"answers": ["{answer}"]}),
    Door("POST", "/api/learn", MANAGE, json={"database": "shop", "name": "log.sql", "text": LOG}),
    Door("POST", "/api/run", ASK, json={"sql": "SELECT 1", "database": "shop"}),
    Door("GET", "/api/queue?database=shop", JUDGE),
    Door("GET", "/api/cards?database=shop", ASK),
    Door("GET", "/api/cards/{card}", ASK),
    Door("PATCH", "/api/cards/{card}", MANAGE, json={"status": "active"}),
    Door("DELETE", "/api/cards/{card}", MANAGE),
    Door("POST", "/api/cards/revoke", MANAGE, json={"database": "shop", "by": "nobody"}),
    Door("GET", "/api/definitions?database=shop", ASK),
    Door("POST", "/api/definitions", MANAGE, json=TERM),
    Door("POST", "/api/definitions/import", MANAGE, json={"database": "shop", "text": TERMS}),
    Door("GET", "/api/definitions/export?database=shop", MANAGE),
    Door("GET", "/api/definitions/proposals?database=shop", JUDGE),
    Door("POST", "/api/definitions/propose", MANAGE, json={"database": "shop"}),
    Door("POST", "/api/definitions/proposals/{proposed}/confirm", JUDGE, json={}),
    Door("POST", "/api/definitions/proposals/{proposed}/reject", JUDGE),
    Door("GET", "/api/definitions/{defined}", ASK),
    Door("PATCH", "/api/definitions/{defined}", MANAGE, json={"meaning": "goods"}),
    Door("GET", "/api/databases", ANYBODY),
    Door("GET", "/api/databases/shop/schema", ASK),
    Door("GET", "/api/tokens", "manage anywhere"),
    Door("POST", "/api/tokens", MANAGE, json={"person": "x", "databases": ["shop"], "scopes": ["ask"]}),
    Door("DELETE", "/api/tokens/{spare}", MANAGE),
    Door("GET", "/v1/models", ANYBODY),
    Door("GET", "/v1/models/shop", ASK),
    Door("POST", "/v1/chat/completions", ASK, json=CHAT),
    Door("GET", "/", ANYBODY),
    Door("POST", "/ask", ASK, form={"question": ASKED, "database": "shop"}),
    Door("GET", "/a/{answer}", ASK),
    Door("GET", "/a/{answer}/rows.csv", ASK),
    Door("POST", "/a/{answer}/confirm", JUDGE),
    Door("POST", "/a/{answer}/correct", JUDGE, form={"sql": "SELECT 2"}),
    Door("POST", "/a/{answer}/reject", JUDGE),
    Door("POST", "/a/{judged}/undo", JUDGE),
    Door("POST", "/run", ASK, form={"sql": "SELECT 1", "database": "shop"}),
    Door("GET", "/queue", ANYBODY),
    Door("GET", "/queue/log", ANYBODY),
    Door("POST", "/queue/log", JUDGE, form={"database": "shop", "answer": "{answer}"}),
    Door("POST", "/queue/learn", MANAGE, form={"database": "shop"}, upload=LOG),
    Door("GET", "/queue/definitions", "judge anywhere"),
    Door("POST", "/queue/definitions", MANAGE, form={"database": "shop"}),
    Door("POST", "/queue/definitions/{proposed}/reject", JUDGE),
    Door("GET", "/bank/definitions", ANYBODY),
    Door("POST", "/bank/definitions", MANAGE, form={**TERM, "term": "hardware piece"}),
    Door("GET", "/bank/definitions/export?database=shop", MANAGE),
    Door("POST", "/bank/definitions/import", MANAGE, form={"database": "shop"}, upload=TERMS),
    Door("POST", "/bank/definitions/{defined}/disable", MANAGE),
    Door("GET", "/bank", ANYBODY),
    Door("POST", "/bank", MANAGE, form={"action": "disable", "database": "shop", "card": "{card}"}),
    Door("POST", "/bank/revoke", MANAGE, form={"database": "shop", "by": "nobody"}),
    Door("GET", "/bank/revoke?database=shop&by=nobody", MANAGE),
    Door("GET", "/bank/export?database=shop", MANAGE),
    Door("GET", "/bank/{card}", ASK),
    Door("POST", "/bank/{card}/disable", MANAGE),
    Door("GET", "/value", ANYBODY),
    Door("POST", "/value/measure", MANAGE, form={"database": "shop", "kind": "off"}),
    Door("GET", "/value/cards.csv?database=shop", ASK),
    Door("GET", "/api/value?database=shop", ASK),
    Door("GET", "/studies", OWNER),
    Door("GET", "/studies/{study}/index.html", "nobody"),
    Door("GET", "/settings", ANYBODY),
    Door("POST", "/settings/tokens", MANAGE, form={"person": "x", "on": "shop", "scope": "ask"}),
    Door("POST", "/settings/tokens/{spare}/revoke", MANAGE),
    Door("GET", "/studies/{study}", "nobody"),
    Door("GET", "/demo", "nobody"),
    Door("GET", "/demo/questions", "nobody"),
    Door("GET", "/demo/near?question=x", "nobody"),
    Door("POST", "/demo/reset", "nobody"),
)
MAY |= {
    "nobody": set(),
    "judge anywhere": {"judge", "manage", "other", "owner"},
    "manage anywhere": {"manage", "other", "owner"},
}


NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("service"), readings=1.0) as running:
        yield running


def new_name() -> str:
    """Somebody whom no token and no verdict names yet."""
    return f"person {next(NUMBERS)}"


class Things(dict[str, str]):
    """What an address may be about, each made when it is first named."""

    def __init__(self, service: Service) -> None:
        super().__init__(path="style.css", ticket="none", study="none")
        self._service = service

    def __missing__(self, name: str) -> str:
        self[name] = getattr(self, f"_{name}")()
        return self[name]

    def _answer(self) -> str:
        return str(self._service.ask()["id"])

    def _judged(self) -> str:
        """Confirm an answer, which makes its card."""
        judged = self._answer()
        self["card"] = self._made(f"/api/answers/{judged}/confirm", {}, "card")
        return judged

    def _card(self) -> str:
        self["judged"] = self._judged()
        return self["card"]

    def _torn(self) -> str:
        """Ask what gives two readings."""
        asked = f"Which of two ways does {new_name()} mean?"
        return self._made("/api/ask", {"question": asked, "database": "shop", "memory": False})

    def _spare(self) -> str:
        return self._made("/api/tokens", {"person": new_name(), "databases": ["shop"], "scopes": ["ask"]})

    def _defined(self) -> str:
        return self._made("/api/definitions", {**TERM, "term": new_name()})

    def _proposed(self) -> str:
        meant = Definition(term=new_name(), sql="kind = 'HW'", tables=("item",))
        kept = self._service.crystal.store.proposed_definitions
        (proposed,) = kept.propose([proposal_of("shop", meant, origin="comment")])
        return proposed.id

    def _made(self, path: str, body: dict[str, Any], field: str = "id") -> str:
        return str(self._service.post(path, json=body).json()[field])


def knock(service: Service, door: Door, kind: str) -> httpx.Response:
    names = Things(service)
    names["own"] = service.tokens.get(kind, "")
    path = door.path.format_map(names)
    form = {key: value.format_map(names) for key, value in (door.form or {}).items()}
    # Two representations for MCP, as its specification asks; none of HTML, so that a refusal is told as JSON.
    headers = {"Accept": "application/json, text/event-stream" if door.path == "/mcp" else "application/json"}
    headers |= {"Sec-Fetch-Site": "same-origin"}
    body = {**door.json, "person": new_name()} if door.json and "person" in door.json else door.json
    if body and "answers" in body:
        body = {"answers": [answer.format_map(names) for answer in body["answers"]]}
    form |= {"person": new_name()} if "person" in form else {}
    files = {"file": ("log.sql", door.upload)} if door.upload else None
    with service.client(kind) as client:
        return client.request(door.method, path, json=body, data=form or None, files=files, headers=headers)


@pytest.mark.parametrize("door", DOORS, ids=lambda door: f"{door.method} {door.path}")
def test_a_door_opens_for_whoever_its_table_names_and_nobody_else(
    service: Service, door: Door, record_property: Callable[[str, object], None]
) -> None:
    record_property("tries", len(KINDS))
    for kind in KINDS:
        reply = knock(service, door, kind)
        opened = reply.status_code in {200, 201, 204, 303}
        assert opened is (kind in MAY[door.who]), f"{kind or 'no token'}: {reply.status_code} {reply.text[:300]}"
        if kind in {"", "invented", "revoked", "ended"} and not opened:
            assert reply.status_code == 401


def test_the_table_names_every_route_of_the_service(service: Service) -> None:
    tabled = {(door.method, door.path.partition("?")[0]) for door in DOORS}
    same = {"/studies/{study}/index.html": "/studies/{name}/{file:path}", "/studies/{study}": "/studies/{name}"}
    same |= {
        "/bank/definitions/{defined}/disable": "/bank/definitions/{definition_id}/{action}",
        "/queue/definitions/{proposed}/reject": "/queue/definitions/{proposal}/{action}",
    }
    known = {(method, same.get(path, path)) for method, path in tabled}
    there = set(routes(make_app(service.crystal)))
    shapes = {(method, shape(path)) for method, path in known}
    missing = sorted((method, path) for method, path in there if (method, shape(path)) not in shapes)
    assert not missing


def routes(app: Any) -> Iterator[tuple[str, str]]:
    for context in iter_route_contexts(app.routes):
        path = str(getattr(context, "path", None) or getattr(context.route, "path", ""))
        methods = getattr(context, "methods", None) or getattr(context.route, "methods", None) or {"GET"}
        if path != "/static":
            yield from ((method, path) for method in methods - {"HEAD"})


def shape(path: str) -> str:
    """A path with its parameters made alike."""
    names = {
        "card_id": "card",
        "definition_id": "defined",
        "proposal": "proposed",
        "answer_id": "answer",
        "judged": "answer",
        "torn": "answer",
        "token_id": "spare",
        "file:path": "file",
    }
    for name, other in names.items():
        path = path.replace("{" + name + "}", "{" + other + "}")
    fixed = {"/a/{answer}/rows.{kind}": "/a/{answer}/rows.csv", "/bank/{card}/{action}": "/bank/{card}/disable"}
    fixed |= {"/api/databases/{name}/schema": "/api/databases/shop/schema", "/v1/models/{name}": "/v1/models/shop"}
    return fixed.get(path, path)


def test_only_health_the_login_page_and_its_looks_are_open() -> None:
    open_doors = {door.path for door in DOORS if door.who is EVERYONE}
    assert {*OPEN, f"{OPEN_FOLDER}{{path}}"} == open_doors


def test_a_cookie_alone_does_nothing_for_a_page_of_another_origin(service: Service) -> None:
    answer = service.ask()
    for origin in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}, {}):
        cookies = {"sqlcrystal_session": service.tokens["owner"]}
        with httpx.Client(base_url=service.url, cookies=cookies, headers=origin) as client:
            assert client.post(f"/a/{answer['id']}/confirm").status_code == 401
            assert client.post("/api/ask", json={"question": ASKED, "database": "shop"}).status_code == 401


def test_a_path_or_url_given_as_a_database_is_not_opened(service: Service) -> None:
    place = service.crystal.workspace.team.databases["shop"].url
    for name in (place, f"sqlite:///{place}", "postgresql://127.0.0.1/x"):
        with service.client() as client:
            assert client.post("/api/run", json={"sql": "SELECT 1", "database": name}).status_code == 404
            assert client.get("/api/cards", params={"database": name}).status_code == 404
