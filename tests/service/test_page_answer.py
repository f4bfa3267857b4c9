"""An answer in each of its states, as the server renders it: no browser is needed to read the words."""

import re
from collections.abc import Sequence
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from running_service import ASKED, Service, serving
from shop import PROBE, RIGHT, WRONG, fenced
from sqlcrystal.errors import ModelUnavailable
from sqlcrystal.types import Message, Sampling
from watched_tab import IN_BROWSER, Watched

PRICES = "SELECT name, price FROM item WHERE price > {0} ORDER BY price"
MANY = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 250) SELECT i, 'row ' || i AS name FROM n"
)
LONG = "a text that goes on and on, far beyond what a cell of a table should show at once"
SQL = {
    "the hardware by name": "SELECT name FROM item WHERE kind = 'hardware'",
    "sales by year": "SELECT 2010 AS year, 30.5 AS sales UNION ALL SELECT 2011, 41 UNION ALL SELECT 2012, 35.25",
    "price of the Bolts": "SELECT price FROM item WHERE name = 'bolts'",
    "price of the Boltings": "SELECT price FROM item WHERE name = 'Boltings'",
    "one figure": "SELECT COUNT(*) AS items FROM item",
    "nothing": "SELECT name FROM item WHERE kind = 'hardware' AND price > 7 LIMIT 3",
    "a mistake": "SELECT colour FROM item",
    "many rows": MANY,
    "long text": f"SELECT 1 AS id, '{LONG}' AS text, NULL AS none, '' AS empty",
    "every price": "SELECT name, price FROM item",
}


def states(messages: Sequence[Message], _: Sampling) -> str:
    """Whatever state a question asks for; the hardware question is wrong at first and repaired."""
    system, asked = messages[0].content, messages[-1].content
    question = asked.rsplit("[Question]", 1)[-1]
    if "no SQL" in messages[1].content.rsplit("[Question]", 1)[-1]:
        return "I would rather not <b>say</b>."
    if "debugging" in system or "Explore first" in system:
        return fenced(PROBE)
    for words, sql in SQL.items():
        if words in question or words in messages[1].content:
            return fenced(sql)
    if "dearer than" in question:
        return fenced(PRICES.format(question.split("dearer than ")[1].split("?")[0].strip()))
    return fenced(RIGHT if "correcting" in system else WRONG + " GROUP BY name")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with serving(tmp_path_factory.mktemp("states"), script=states, replay=True) as running:
        yield running


def shown(service: Service, question: str, **query: Any) -> str:
    """The page of a fresh answer."""
    return page_of(service, service.ask(question)["id"], **query)


def page_of(service: Service, answer: str, **query: Any) -> str:
    with service.client() as client:
        return unescape(client.get(f"/a/{answer}", params=query).text)


def test_one_row_of_measures_is_shown_as_tiles(service: Service) -> None:
    page = shown(service, "Show one figure")
    assert '<dd class="tile">3</dd>' in page
    assert "<table" not in page.partition('id="verdict"')[0]


def test_zero_rows_name_what_was_filtered_on_and_whether_a_repair_was_tried(service: Service) -> None:
    page = shown(service, "Show nothing")
    assert page.count("0 rows") == 1
    assert all(f'<code class="literal">{literal}</code>' in page for literal in ("'hardware'", "7"))
    assert '<code class="literal">3</code>' not in page  # a limit is no filter
    assert "1 repair was tried." in page  # it proposed the same again, which ends it
    assert "Confirm <kbd" in page  # none may be right


def test_sql_that_did_not_run_has_the_word_marked_and_nothing_to_confirm(service: Service) -> None:
    page = shown(service, "Make a mistake")
    assert "<mark>colour</mark>" in page
    assert "no such column: colour" in page
    assert "Nothing to confirm" in page
    assert "Confirm <kbd" not in page
    assert "Copy details" in page
    assert "(did not run)" in page.partition("</title>")[0]


def test_a_reply_without_sql_is_quoted_once(service: Service) -> None:
    page = shown(service, "Say no SQL")
    assert page.count("The reply held no SQL") == 1
    assert "I would rather not" in page


def test_a_repaired_answer_says_at_which_attempt_and_what_the_repair_changed(service: Service) -> None:
    page = shown(service, ASKED)
    assert "repaired, attempt 2" in page
    changed = page.partition("What the repair changed")[2].partition("</details>")[0]
    assert "kind = 'hardware'" in changed
    assert "kind = 'HW'" in changed


def test_a_replayed_answer_marks_the_literal_that_was_exchanged(service: Service) -> None:
    for price in (100, 120):
        service.crystal.confirm(service.ask(f"What is dearer than {price}?")["id"], by="ada")
    page = shown(service, "What is dearer than 90?")
    assert "120 → 90" in page or "100 → 90" in page
    assert "<mark>90</mark>" in page
    assert "no model call" in page
    assert "Ask afresh" in page


def test_more_rows_than_a_page_are_paged_counted_and_not_drawn(service: Service) -> None:
    answer = service.ask("Show many rows")["id"]
    first, last = page_of(service, answer), page_of(service, answer, page=3)
    assert "Rows 1 to 100 of 250" in first
    assert 'aria-rowcount="251"' in first
    assert "Rows 201 to 250 of 250" in last
    assert 'aria-rowindex="202"' in last
    assert 'class="chart"' not in first


def test_a_long_cell_is_cut_and_holds_the_whole_and_nothing_is_a_word(service: Service) -> None:
    page = shown(service, "Show long text")
    assert f"<summary><span>{LONG[:40]}…</span></summary><p>{LONG}</p>" in page
    assert '<td dir="auto" class="null">NULL</td>' in page
    assert '<td dir="auto" class="empty">empty</td>' in page


@pytest.mark.parametrize(
    ("kind", "begins"),
    [("tsv", "name\tprice\n"), ("csv", "name,price\n"), ("md", "| name | price |\n"), ("json", '{"columns":["name"')],
)
def test_rows_are_copied_and_exported_in_four_formats(service: Service, kind: str, begins: str) -> None:
    answer = service.ask("Show every price")["id"]
    page = page_of(service, answer)
    assert f'data-fetch="/a/{answer}/rows.{kind}"' in page
    assert f'href="/a/{answer}/rows.{kind}" download' in page
    with service.client() as client:
        assert client.get(f"/a/{answer}/rows.{kind}").text.startswith(begins)


def test_after_a_rejection_a_note_may_say_what_is_wrong_and_the_repair_hears_it(service: Service) -> None:
    answer = service.ask("Show every price")["id"]
    service.post(f"/a/{answer}/reject", headers={"Sec-Fetch-Site": "same-origin"})
    assert "What is wrong with it?" in page_of(service, answer)
    service.post(f"/a/{answer}/reject", data={"note": "only teas"}, headers={"Sec-Fetch-Site": "same-origin"})
    assert any("only teas" in message.content for prompt in service.model.prompts for message in prompt)


def test_that_an_answer_was_held_out_is_told_after_the_verdict_with_the_share(tmp_path: Path) -> None:
    with serving(tmp_path, script=states, hold_out=0.999) as service:
        answer = service.ask("Show every price")["id"]
        assert "without cards" not in page_of(service, answer)
        service.crystal.confirm(answer, by="ada")
        assert "to measure what they are worth (99.9 % of questions)" in page_of(service, answer)


def test_the_editor_opens_without_a_script(service: Service) -> None:
    answer = service.ask("Show every price")["id"]
    assert f'href="/a/{answer}?edit=1"' in page_of(service, answer)
    editor = page_of(service, answer, edit=1).partition('<form id="editor"')[2].partition(">")[0]
    assert "hidden" not in editor


def test_no_page_has_an_id_twice(service: Service) -> None:
    import re

    answer = service.ask("Show every price")["id"]
    card = service.crystal.confirm(answer, by="ada").card
    service.ask("Show one figure")
    paths = ["/", f"/a/{answer}", "/queue", "/bank", f"/bank/{card}", "/bank/revoke", "/value", "/settings"]
    with service.client() as client:
        for path in paths:
            reply = client.get(
                path, params={"database": "shop", "by": "ada"} if "revoke" in path else {"database": "shop"}
            )
            assert reply.status_code == 200
            text = reply.text
            ids = re.findall(r'\sid="([^"]+)"', text.partition("<template")[0])
            assert len(ids) == len(set(ids)), (path, [each for each in ids if ids.count(each) > 1])


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
class TestInTheBrowser:
    pytestmark = IN_BROWSER

    def test_every_state_is_accessible(self, browser: Any, service: Service, width: int, scheme: str) -> None:
        page = Watched(browser, service, width, scheme)
        page.log_in()
        for question in ("Show nothing", "Make a mistake", "Say no SQL", ASKED, "Show long text", "Show many rows"):
            page.open(f"/a/{service.ask(question)['id']}")
            page.well()
        page.open(f"/a/{service.ask(ASKED)['id']}?edit=1")
        page.tab.wait_for_selector("#edited-rows[data-ran]")
        page.well()
        service.crystal.confirm(service.ask("Show every price")["id"], by="ada")
        for path in ("/queue?database=shop&place=1", "/bank/revoke?database=shop&by=ada", "/bank?database=shop"):
            page.open(path)
            page.well()
        assert page.trouble == []
        page.context.close()


@pytest.fixture(scope="module")
def private_service(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with serving(tmp_path_factory.mktemp("private"), script=states, values="never") as running:
        yield running


def test_sql_that_was_kept_without_its_values_is_not_run_again(private_service: Service) -> None:
    answer = private_service.ask("Which items are dearer than 1?")
    assert answer["row_count"]
    page = page_of(private_service, answer["id"])
    assert "Rows are not kept" in page
    assert "It ran and returned" not in page
    with private_service.client() as client:
        reply = client.get(f"/a/{answer['id']}/rows.csv")
    assert (reply.status_code, "kept without its values" in reply.text) == (422, True)


def test_sql_without_values_shows_its_rows_where_values_are_never_kept(private_service: Service) -> None:
    assert re.search(r'<dd class="tile">\d+</dd>', shown(private_service, "I want one figure."))


def test_a_rejection_stands_and_says_why_no_repair_was_looked_for_where_the_model_fails(tmp_path: Path) -> None:
    def failing(messages: Sequence[Message], sampling: Sampling) -> str:
        if "debugging" in messages[0].content or "correcting" in messages[0].content:
            raise ModelUnavailable("the model is out to lunch")
        return fenced(SQL["every price"])

    with serving(tmp_path, script=failing) as service:
        answer = service.ask("every price")["id"]
        headers = {"X-Fragment": "1", "Sec-Fetch-Site": "same-origin"}
        page = unescape(service.post(f"/a/{answer}/reject", headers=headers).text)
    assert "Rejected by you" in page
    assert "No repair could be looked for: the model is out to lunch" in page


def test_the_answer_stands_first_in_words_and_the_sql_after_its_rows(service: Service) -> None:
    page = shown(service, "Show one figure")
    assert "The answer is 3." in page
    assert page.index("The answer is 3.") < page.index('class="tile"') < page.index('aria-label="SQL"')
    assert ">not checked</span>" in page


def test_confirm_is_the_default_only_where_nothing_speaks_against_it(service: Service) -> None:
    assert '<button class="primary" data-key="c">Confirm' in shown(service, "Show one figure")
    nothing = shown(service, "Show nothing")
    assert '<button data-key="c">Confirm' in nothing
    assert "Look twice: is this right?" in nothing


def test_a_corrected_answer_shows_and_exports_the_correction(service: Service) -> None:
    answer = service.ask("Show nothing")["id"]
    service.crystal.correct(answer, "SELECT 41 + 1 AS sense", by="ada")
    page = page_of(service, answer)
    assert "The answer is 42." in page
    assert "What the correction changed" in page
    with service.client() as client:
        assert client.get(f"/a/{answer}/rows.csv").text == "sense\n42\n"


def test_a_verdict_says_how_many_answers_still_wait(service: Service) -> None:
    answer = service.ask("Show one figure")["id"]
    with service.client() as client:
        before = client.get(f"/a/{answer}", headers={"X-Fragment": "1"}).headers["X-Waiting"]
        headers = {"X-Fragment": "1", "Sec-Fetch-Site": "same-origin"}
        after = client.post(f"/a/{answer}/reject", headers=headers).headers["X-Waiting"]
    assert int(after) == int(before) - 1


def test_an_error_page_says_what_to_do_next(service: Service) -> None:
    with service.client() as client:
        page = client.get("/a/0000000000", headers={"Accept": "text/html"}).text
    assert "may be misspelt" in page
    assert "Ask a question" in page


def test_a_value_that_is_almost_there_is_spelled_as_it_is_stored(service: Service) -> None:
    page = shown(service, "What is the price of the Bolts?")
    assert "<code>item.name</code> never holds" not in page
    assert "Bolt" in page


def test_a_value_that_is_not_clearly_meant_is_offered_with_the_question_asked_again(service: Service) -> None:
    page = shown(service, "What is the price of the Boltings?")
    assert '<code>item.name</code> never holds <code class="literal">Boltings</code>' in page
    assert re.search(r'Did you mean <a [^>]*data-fill="What is the price of the Bolt\?"[^>]*>Bolt</a>\?', page)
    assert "'Bolt'" not in page  # offered, and not exchanged


@IN_BROWSER[0]
@pytest.mark.xdist_group("browser")
def test_a_value_that_is_offered_is_asked_about_by_one_click(browser: Any, service: Service) -> None:
    page = Watched(browser, service, 390, "dark")
    page.log_in()
    page.ask("What is the price of the Boltings?")
    page.well()
    page.tab.locator(".meant a", has_text="Bolt").click()
    page.tab.wait_for_selector("#answer[data-title='What is the price of the Bolt?'] #verdict.open")
    assert page.trouble == []
    page.context.close()


def test_a_value_that_stands_for_a_code_is_put_into_the_sql_by_one_click(service: Service) -> None:
    page = shown(service, "List the hardware by name")
    (link,) = re.findall(r'href="(/a/\w+\?edit=1&[^"]*new=HW)"', page)
    with service.client() as client:
        edited = unescape(client.get(link).text)
    assert "kind = 'HW'" in edited.split('<textarea id="edited"')[1].split("</textarea>")[0]


@IN_BROWSER[0]
@pytest.mark.xdist_group("browser")
def test_rows_are_looked_at_in_each_way_and_a_point_tells_its_value(browser: Any, service: Service) -> None:
    page = Watched(browser, service, 1280, "light")
    page.log_in()
    page.ask("Show sales by year")
    shown = []
    for _ in range(3):
        page.tab.keyboard.press("t")
        shown.append([each for each in ("line", "bars") if page.tab.locator(f"#chart-{each}").is_visible()])
        if shown[-1] == ["line"]:
            point = page.tab.locator("#chart-line svg.at-desk .spot").nth(1)
            point.locator(".hit").hover()
            assert point.locator(".tip text").is_visible()
            assert point.locator(".tip text").text_content() == "2011: 41"
    assert shown == [["line"], ["bars"], []]
    assert page.tab.locator("#rows").is_visible()
    page.context.close()
