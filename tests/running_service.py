"""A running service: two shops that look alike, a scripted model, real tokens, a real server on a free port."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from cardbox import HashingEmbedder
from shop import PROBE, PROFILE, RIGHT, WRONG, build, fenced
from sqlcrystal.bank import Scope
from sqlcrystal.config.team import DatabaseEntry, TeamFile
from sqlcrystal.interfaces.server.settings import ServerSettings
from sqlcrystal.models.scripted import ScriptedModel, prompt_text
from sqlcrystal.protocols import LanguageModel
from sqlcrystal.serving import Crystal
from sqlcrystal.solving.profile import HEADING
from sqlcrystal.types import Message, Sampling

ASKED = "How many hardware items are there?"
SIBLING = "How many hardware items cost more than 100?"
KINDS = {
    "ask": [("shop", Scope.ASK)],
    "judge": [("shop", Scope.ASK), ("shop", Scope.JUDGE)],
    "manage": [("shop", Scope.ASK), ("shop", Scope.JUDGE), ("shop", Scope.MANAGE)],
    "other": [("store", Scope.ASK), ("store", Scope.JUDGE), ("store", Scope.MANAGE)],
    "owner": [("*", Scope.ASK), ("*", Scope.JUDGE), ("*", Scope.MANAGE)],
}


def replying(messages: Sequence[Message], _: Sampling) -> str:
    """Wrong at first where no card shows the kind, whatever the profile says; a table or hostile rows on request."""
    system, asked = messages[0].content, PROFILE.sub("", messages[-1].content)
    if "debugging" in system or "Explore first" in system:
        return fenced(PROBE)
    if "price of every item" in asked:
        return fenced("SELECT name, price FROM item ORDER BY price DESC")
    if "hostile" in asked:
        return fenced(
            "SELECT '<img src=x onerror=alert(1)>' AS \"<script>alert(2)</script>\", 'a' || char(27) || '[31m' AS ansi"
        )
    if "two ways" in asked:
        return fenced(RIGHT if HEADING in prompt_text(messages) else "SELECT COUNT(*) FROM item")
    if "cost more than" in asked:
        return fenced("SELECT COUNT(*) FROM item WHERE kind = 'HW' AND price > 100")
    return fenced(RIGHT if "HW" in asked or "correcting" in system else WRONG)


class Service(NamedTuple):
    """A running service and what tests need of it."""

    url: str
    crystal: Crystal
    tokens: dict[str, str]
    model: ScriptedModel

    def client(self, kind: str = "owner", **settings: Any) -> httpx.Client:
        """A client with one kind of token."""
        headers = {"Authorization": f"Bearer {self.tokens[kind]}"} if kind else {}
        return httpx.Client(base_url=self.url, headers=headers, timeout=60, **settings)

    def post(self, path: str, *, kind: str = "owner", **body: Any) -> httpx.Response:
        """One request of its own."""
        with self.client(kind) as client:
            return client.post(path, **body)

    def ask(self, question: str = ASKED, *, database: str = "shop", kind: str = "owner") -> dict[str, Any]:
        """One answer."""
        with self.client(kind) as client:
            reply = client.post("/api/ask", json={"question": question, "database": database})
        assert reply.status_code == 200, reply.text
        return dict(reply.json())


def two_shops(folder: Path, model: LanguageModel, store: str | None = None, **entry: Any) -> Crystal:
    """Two databases of the same shape, one tenant each."""
    entries = {name: DatabaseEntry(url=str(_once(folder / f"{name}.sqlite")), **entry) for name in ("shop", "store")}
    team = TeamFile(databases=entries, store=store or str(folder / "team.db"))
    return Crystal(team, model=model, embedder=HashingEmbedder())


def _once(path: Path) -> Path:
    return path if path.exists() else build(path)


@contextmanager
def listening(app: Any) -> Iterator[str]:
    """An application on a free port of this machine, in a thread."""
    import socket

    import uvicorn

    from sqlcrystal.interfaces.server.running import PatientServer

    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=5)
    server = PatientServer(config, getattr(app.state, "settings", ServerSettings()))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            thread.join(0.01)
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)
        bound.close()


@contextmanager
def serving(
    folder: Path,
    *,
    settings: ServerSettings | None = None,
    script: Any = replying,
    asking: LanguageModel | None = None,
    **entry: Any,
) -> Iterator[Service]:
    """The whole service over the two shops; `asking` is a model to take instead of the scripted one."""
    from sqlcrystal.interfaces.server.app import make_app

    model = ScriptedModel(script)
    with two_shops(folder, asking or model, **entry) as crystal:
        tokens = {kind: crystal.store.tokens.issue(kind, pairs, by="test")[0] for kind, pairs in KINDS.items()}
        revoked, grant = crystal.store.tokens.issue("revoked", KINDS["owner"], by="test")
        crystal.store.tokens.revoke(grant.id, by="test")
        ended, _ = crystal.store.tokens.issue("ended", KINDS["owner"], by="test", ends_at="2026-01-01T00:00:00+00:00")
        tokens |= {"revoked": revoked, "ended": ended, "invented": "sqlc_" + "x" * 43}
        with listening(make_app(crystal, settings or ServerSettings(requests_per_minute=1_000_000))) as url:
            yield Service(url, crystal, tokens, model)
