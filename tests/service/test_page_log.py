"""From an empty store and a folder of 200 queries to a bank: one command, and one sitting in the queue by keyboard."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import logged_quarry
from cardbox import HashingEmbedder
from running_service import Service, listening
from shop import RIGHT, fenced
from sqlcrystal.bank import Scope
from sqlcrystal.config import DatabaseEntry, TeamFile
from sqlcrystal.interfaces.server.app import make_app
from sqlcrystal.interfaces.server.settings import ServerSettings
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.serving import Crystal
from sqlcrystal.types import Message
from watched_tab import IN_BROWSER, Watched

SAME = {"Sec-Fetch-Site": "same-origin"}
MOST_KEYS = 50


def test_an_upload_is_learned_from_and_its_refusals_are_told(service: Service) -> None:
    log = ("log.sql", f"{RIGHT};\nDELETE FROM item;\nSELECT name FROM item WHERE price > 100;")
    reply = service.post("/queue/learn", data={"database": "shop"}, files={"file": log}, headers=SAME)
    assert reply.status_code == 200, reply.text
    assert "3 statements, 2 that differ" in reply.text
    assert "1: no query: it writes, defines or sets something" in reply.text
    assert (
        service.post(
            "/queue/learn", kind="judge", data={"database": "shop"}, files={"file": log}, headers=SAME
        ).status_code
        == 403
    )


def test_http_learns_some_queries_at_a_time_and_confirms_many_or_none(service: Service) -> None:
    service.model._reply = lambda messages, _: (
        "How many items are there?"
        if messages[0].content.startswith("You read")
        else "```sql\nSELECT COUNT(*) FROM item\n```"
    )
    body = {"name": "log.sql", "text": "SELECT COUNT(*) FROM item;\nSELECT name FROM item;", "database": "shop"}
    first = service.post("/api/learn", json={**body, "limit": 1}).json()
    again = service.post("/api/learn", json=body).json()
    assert (first["proposed"] + again["proposed"], first["left"], again["known"]) == (1, 1, 1)
    with service.client() as client:
        (waiting,) = client.get("/api/queue?database=shop").json()
    assert (waiting["question"], waiting["uses"]) == ("How many items are there?", 1)
    assert service.post("/api/confirm", json={"answers": [waiting["id"], "beef"]}).status_code == 404
    assert service.crystal.cards() == []
    (ruling,) = service.post("/api/confirm", json={"answers": [waiting["id"]]}).json()
    assert (ruling["signal"], ruling["card"]) == ("user", service.crystal.cards()[0].id)


def test_a_sentence_that_a_near_card_contradicts_waits_and_holds_up_no_other(service: Service) -> None:
    near, crystal = "How many hardware items are there in all", service.crystal
    crystal.correct(crystal.ask(near, "shop"), RIGHT)
    service.model._reply = lambda messages, _: _of_two(messages, f"{near} now?")
    body = {"name": "log.sql", "text": "SELECT COUNT(*) FROM item;\nSELECT name FROM item;", "database": "shop"}
    assert service.post("/api/learn", json=body).json()["proposed"] == 2
    names, count = sorted(
        (item for item in crystal.queue("shop") if item.uses), key=lambda item: "COUNT" in (item.sql or "")
    )
    form = {"database": "shop", "answer": [names.id, count.id], "listed": "2"}
    shown = service.post("/queue/log", kind="judge", data=form, headers=SAME, follow_redirects=True).text
    assert "Confirmed 1 question" in shown
    assert "1 question not confirmed: a near card gives other rows" in shown
    assert [item.id for item in crystal.queue("shop") if item.uses] == [count.id]
    assert service.post("/api/confirm", json={"answers": [count.id]}).status_code == 409


def _of_two(messages: Sequence[Message], asked: str) -> str:
    """Word two queries, and read both questions as they were meant."""
    user = messages[1].content
    if messages[0].content.startswith("You read"):
        return asked if "COUNT(*)" in user.partition("[Query]")[2] else "Which names do the items have?"
    return fenced("SELECT name FROM item" if "Which names" in user else "SELECT COUNT(*) FROM item")


class TestInTheBrowser:
    pytestmark = IN_BROWSER

    def test_fifty_keys_make_a_bank_of_a_folder_of_200_queries(self, browser: Any, tmp_path: Path) -> None:
        reader = logged_quarry.Reader()
        entries = {"webshop": DatabaseEntry(url=reader.location)}
        team = TeamFile(databases=entries, store=str(tmp_path / "team.db"), budget=1)
        with Crystal(team, model=ScriptedModel(reader), embedder=HashingEmbedder()) as crystal:
            report = crystal.learn(logged_quarry.write(tmp_path / "log"))
            assert (report.read, sum(refused.count for refused in report.refused) >= 5) == (200, True)
            assert report.proposed >= 45
            token, _ = crystal.store.tokens.issue("ada", [("*", scope) for scope in Scope], by="test")
            with listening(make_app(crystal, ServerSettings(requests_per_minute=1_000_000))) as url:
                service = Service(url, crystal, {"owner": token}, ScriptedModel([]))
                self.one_sitting(Watched(browser, service, 1280, "light"))
            kept = crystal.cards("webshop")
            assert len(kept) == report.proposed - 2
            assert {(card.source, card.admission.signal, card.admission.by) for card in kept} == {
                ("log", "user", "ada")
            }
            assert len(crystal.queue()) == 2

    def one_sitting(self, page: Watched) -> None:
        """Leave out the second sentence of the first two pages, and confirm all others."""
        page.log_in()
        page.open("/queue?database=webshop")
        page.tab.get_by_role("link", name="from the query log, many at a time").click()
        page.tab.wait_for_selector("html.js #chosen")
        page.well()
        pressed, number = 0, 0
        while page.tab.locator("#chosen").count():
            keys = ["j", "x", "c"] if number < 2 else ["c"]
            before = page.tab.url
            for key in keys:
                page.tab.keyboard.press(key)
            pressed, number = pressed + len(keys), number + 1
            page.tab.wait_for_url(lambda there, before=before: there != before)
            page.tab.wait_for_selector("html.js .banner.done")
        assert pressed <= MOST_KEYS
        assert page.says("2 of them still wait")
        assert page.trouble == []
        page.context.close()
