"""The bank, a card, the value page and the settings, as the server renders them and as keys move through them."""

from html import unescape
from typing import Any

from running_service import ASKED, SIBLING, Service
from sqlcrystal.interfaces.web.pages_bank import SORTS
from sqlcrystal.measurement.live import VerdictSelection
from sqlcrystal.serving.value import ArmValue, Value, figures, verdict_rates
from sqlcrystal.types import CardStatus
from watched_tab import IN_BROWSER, Watched

SAME = {"Sec-Fetch-Site": "same-origin"}


def page(service: Service, path: str, **query: Any) -> str:
    with service.client() as client:
        return unescape(client.get(path, params=query).text)


def card_and_answer(service: Service, by: str = "bo") -> tuple[str, str]:
    """A card that bo vouched for, and an answer that leaned on it."""
    card = service.crystal.confirm(service.ask(ASKED)["id"], by=by).card
    return card, service.ask(SIBLING)["id"]


def test_revoking_says_first_which_cards_would_go_and_which_answers_leaned_on_them(service: Service) -> None:
    card, leaning = card_and_answer(service)
    asked = page(service, "/bank/revoke", database="shop", by="bo")
    assert "Revoke 1 card of shop?" in asked
    assert f'href="/a/{leaning}"' in asked
    assert service.crystal.card(card).card.status is CardStatus.ACTIVE
    done = service.post("/bank/revoke", data={"database": "shop", "by": "bo"}, headers=SAME).text
    assert "1 card out of service" in done
    assert f'href="/a/{leaning}"' in done
    assert service.crystal.card(card).card.status is CardStatus.DISABLED


def test_changing_many_cards_comes_back_to_the_same_list(service: Service) -> None:
    card, _ = card_and_answer(service)
    form = {"action": "disable", "database": "shop", "card": card, "back": "status=active&sort=harm&page=1&evil=x"}
    reply = service.post("/bank", data=form, headers=SAME)
    assert reply.headers["location"] == "/bank?status=active&sort=harm&page=1&database=shop"


def test_the_sorted_column_says_so(service: Service) -> None:
    card_and_answer(service)
    by_harm = page(service, "/bank", database="shop", sort="harm")
    assert by_harm.count('aria-sort="descending"') == 1
    assert "Wrong <span" in by_harm.partition('aria-sort="descending">')[2][:20]


def test_every_column_of_the_bank_sorts_and_says_so(service: Service) -> None:
    for question in ("Which items cost more than 100?", "How many hardware items are there?"):
        service.crystal.confirm(service.ask(question)["id"], by="bo")
    for by in SORTS:
        assert page(service, "/bank", database="shop", sort=by).count('aria-sort="') == 1
    shown = page(service, "/bank", database="shop", sort="question")
    assert shown.index("How many hardware items are there?</a>") < shown.index("Which items cost more than 100?</a>")
    newest = page(service, "/bank", database="shop")
    assert newest.count("&sort=") == len(SORTS) - 1


def test_a_card_shows_its_first_attempt_and_its_final_sql_side_by_side_with_signs(service: Service) -> None:
    card, leaning = card_and_answer(service)
    shown = page(service, f"/bank/{card}")
    pairs = shown.partition('class="pairs-of-lines"')[2].partition('<div class="unified">')[0]
    assert 'class="del" data-sign="-"' in pairs
    assert 'class="add" data-sign="+"' in pairs
    assert "Used in 1 answer; 0 judged" in shown
    assert f'href="/a/{leaning}"' in shown


def test_a_card_out_of_use_says_why(service: Service) -> None:
    card, _ = card_and_answer(service)
    service.crystal.disable([card], by="cy", reason="twice the same")
    assert "Disabled by cy: twice the same. It is not used." in page(service, f"/bank/{card}")
    said = "no such column: stock"
    service.crystal.store.bank.set_statuses([card], CardStatus.QUARANTINED, by="check", reason=said)
    assert f"Card {card[:8]} no longer runs: {said}. It is not used." in page(service, f"/bank/{card}")


def test_settings_tell_managers_where_a_database_is(service: Service) -> None:
    place = service.crystal.workspace.team.databases["shop"].url
    assert place in page(service, "/settings")
    with service.client("judge") as client:
        assert place not in client.get("/settings").text


def test_nobody_is_shown_the_way_to_a_page_that_refuses_them(service: Service) -> None:
    for kind, links in (("ask", set()), ("judge", {"/queue"}), ("owner", {"/queue", "/studies"})):
        with service.client(kind) as client:
            page = client.get("/").text
        assert {link for link in ("/queue", "/studies") if f'href="{link}"' in page} == links


def value(**given: Any) -> Value:
    nothing: dict[str, Any] = dict.fromkeys(Value.__struct_fields__, 0)
    lift = {"lift_pp": 4.0, "lift_ci_pp": (-3.0, 11.0), "tokens_per_right_answer": 900.0, "enough": False}
    apart = VerdictSelection(by_arm_pp=None, by_trouble_pp=None)
    found = {
        "selection": apart,
        "audit": None,
        "worst_case_pp": None,
        "readings": None,
        "confidence": None,
        "warnings": (),
    }
    return Value(**{**nothing, "says": "", "database": "shop", "cards": (), "arms": {}, **found, **lift, **given})


def test_a_lift_whose_interval_holds_zero_has_no_break_even() -> None:
    unclear, clear = figures(value()), figures(value(lift_ci_pp=(1.0, 7.0), enough=True))
    assert "not clear yet" in unclear[0].words
    assert unclear[3].figure == "not known yet"
    assert "not clear yet" not in clear[0].words
    assert clear[3].figure == "900 tokens"


def arms(with_memory: tuple[int, int], without: tuple[int, int]) -> dict[str, ArmValue]:
    (answers, verdicts), (others, judged) = with_memory, without
    return {
        "with_memory": ArmValue(answers=answers, verdicts=verdicts),
        "without_memory": ArmValue(answers=others, verdicts=judged),
    }


def test_verdict_rates_come_with_counts_and_equal_ones_reassure_nobody() -> None:
    rates = arms((4120, 1690), (458, 181))
    counts = "Verdicts: with cards 41 % (1,690 of 4,120), held out 40 % (181 of 458)."
    assert verdict_rates(value(arms=rates, unjudged=59)) == (
        f"{counts} Even equal rates prove nothing: wrong answers may be judged less often on one side."
    )
    assert verdict_rates(value(arms=rates)) == counts  # all that would tell is judged


def test_the_bounds_over_all_answers_stand_beside_a_lift_among_the_judged() -> None:
    lift, bounds, *_ = figures(value(worst_case_pp=(-20.0, 31.0), unjudged=25.0))
    assert lift.words.startswith("among judged answers, ")
    assert (bounds.name, bounds.figure) == ("Lift over all answers", "-20 to +31 points")
    assert "25 % that nobody judged" in bounds.words


class TestInTheBrowser:
    pytestmark = IN_BROWSER

    def test_keys_move_choose_and_open(self, browser: Any, service: Service) -> None:
        card_and_answer(service)
        service.crystal.confirm(service.ask("What is the price of every item?")["id"], by="bo")
        tab = (watched := Watched(browser, service, 1280, "light")).tab
        watched.log_in()
        watched.open("/bank?database=shop")
        tab.wait_for_selector("html.js .bulk button[disabled]")
        tab.keyboard.press("j")
        tab.keyboard.press("j")
        tab.keyboard.press("x")
        assert tab.locator(".chosen-count").inner_text() == "1 chosen:"
        assert tab.locator("[data-item] input").nth(1).is_checked()
        tab.get_by_role("button", name="Disable").click()
        tab.wait_for_selector("html.js .state.disabled")
        tab.keyboard.press("j")
        tab.keyboard.press("Enter")
        tab.wait_for_selector("#card h1")
        assert watched.trouble == []
        watched.context.close()
