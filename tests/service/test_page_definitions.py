"""Definitions on the page: written, changed, and proposals confirmed under the name that a person gives them."""

from typing import Any

from running_service import ASKED, Service
from shop import RIGHT
from sqlcrystal.types import CardStatus
from watched_tab import IN_BROWSER, Watched

SAME = {"Sec-Fetch-Site": "same-origin"}
SHARING = ("List the hardware.", "What does hardware cost at most?", ASKED)


def bank_what_shares_a_filter(service: Service) -> None:
    for question, what in zip(SHARING, ("name", "MAX(price)", "COUNT(*)"), strict=True):
        answer = service.crystal.ask(question, "shop", by="ada")
        service.crystal.correct(answer, f"SELECT {what} FROM item WHERE kind = 'HW'", by="ada")


def test_http_keeps_moves_and_proposes_definitions(service: Service) -> None:
    body = {"database": "shop", "term": "hardware", "sql": "kind = 'HW'", "synonyms": ["ironware"]}
    made = service.post("/api/definitions", json=body)
    assert (made.status_code, made.json()["tables"]) == (201, ["item"])
    with service.client() as client:
        name = made.json()["id"]
        changed = client.patch(f"/api/definitions/{name}", json={"meaning": "of iron", "reason": "why not"}).json()
        assert (changed["meaning"], changed["sql"]) == ("of iron", "kind = 'HW'")
        whole = client.get(f"/api/definitions/{name}").json()
        assert [change["action"] for change in whole["history"]] == ["edited meaning"]
        table = client.get("/api/definitions/export?database=shop").text
        assert client.post("/api/definitions/import", json={"text": table, "database": "shop"}).json()["unchanged"] == 1
        assert client.patch(f"/api/cards/{name}", json={"status": "disabled"}).status_code == 200
        assert client.get("/api/definitions?database=shop&status=active").json() == []
        bank_what_shares_a_filter(service)
        (proposal,) = client.get("/api/definitions/proposals?database=shop").json()
        assert proposal["sql"] == "item.kind = 'HW'"
        place = f"/api/definitions/proposals/{proposal['id']}"
        assert client.post(f"{place}/confirm", json={"term": "hard ware"}).json()["term"] == "hard ware"
        assert client.post(f"{place}/reject").status_code == 422
    asked = service.ask("How much hard ware is there?")
    assert [used["term"] for used in asked["definitions"]] == ["hard ware"]


def test_another_tenant_sees_and_changes_no_definition(service: Service) -> None:
    card = service.crystal.define("hardware", "kind = 'HW'", "shop", by="ada")
    bank_what_shares_a_filter(service)
    with service.client("other") as client:
        assert client.get(f"/api/definitions/{card.id}").status_code == 404
        assert client.get("/api/definitions?database=shop").status_code == 404
        assert client.patch(f"/api/definitions/{card.id}", json={"sql": "1"}).status_code == 404
        assert client.get("/api/definitions/proposals?database=shop").status_code == 404
        assert "hardware" not in client.get("/bank/definitions?database=shop").text
    for kind in ("ask", "judge"):
        with service.client(kind) as client:
            refused = client.post("/api/definitions", json={"database": "shop", "term": "x", "sql": "1"})
            assert refused.status_code == 403


class TestInTheBrowser:
    pytestmark = IN_BROWSER

    def test_a_person_defines_changes_and_confirms_a_proposal(self, browser: Any, service: Service) -> None:
        bank_what_shares_a_filter(service)
        page = Watched(browser, service, 1280, "light")
        page.log_in()
        self.define(page, service)
        self.change(page, service)
        self.confirm(page, service)
        assert page.trouble == []

    def test_the_pages_fit_a_phone(self, browser: Any, service: Service) -> None:
        bank_what_shares_a_filter(service)
        service.crystal.define(
            "dear", "item.price > 100 AND item.name IS NOT NULL", "shop", meaning="a" * 200, by="ada"
        )
        page = Watched(browser, service, 390, "dark")
        page.log_in()
        for path in ("/bank/definitions", "/queue/definitions", "/queue", "/bank"):
            page.open(f"{path}?database=shop")
            page.well()
        assert page.trouble == []

    def define(self, page: Watched, service: Service) -> None:
        """One that does not run stays in its form with the reason."""
        page.open("/bank?database=shop")
        page.tab.get_by_role("link", name="0 definitions").click()
        page.well()
        page.tab.fill("#term-new", "dear")
        page.tab.fill("#sql-new", "no_such > 100")
        page.tab.get_by_role("button", name="Define").click()
        assert page.says("no such column")
        page.trouble.clear()  # the browser reports the refusal
        assert page.tab.input_value("#term-new") == "dear"
        page.tab.fill("#sql-new", "price > 100")
        page.tab.get_by_role("button", name="Define").click()
        page.tab.wait_for_selector("td >> text=price > 100")
        page.well()
        assert [card.question.text for card in service.crystal.definitions("shop")] == ["dear"]

    def change(self, page: Watched, service: Service) -> None:
        page.tab.get_by_role("link", name="Edit dear").click()
        page.tab.fill("#synonyms-change", "costly; expensive")
        page.well()
        page.tab.get_by_role("button", name="Save").click()
        assert page.says("costly, expensive")
        page.tab.get_by_role("button", name="Disable dear").click()
        page.tab.wait_for_selector("text=disabled")
        (card,) = service.crystal.definitions("shop")
        assert (card.status, card.definition and card.definition.synonyms) == (
            CardStatus.DISABLED,
            ("costly", "expensive"),
        )

    def confirm(self, page: Watched, service: Service) -> None:
        page.open("/queue?database=shop")
        page.tab.get_by_role("link", name="1 proposed definition").click()
        page.well()
        assert page.says(SHARING[0])
        page.tab.fill("input[name=term]", "ironware")
        page.tab.get_by_role("button", name="Confirm").click()
        assert page.says("“ironware” is")
        page.well()
        page.open("/?database=shop")
        page.ask("How much ironware is there?")
        assert page.says("As defined:")
        assert RIGHT.split("WHERE ")[1] in service.crystal.definitions("shop")[-1].sql
        page.well()
