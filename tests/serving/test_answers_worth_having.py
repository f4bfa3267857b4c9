"""Answers worth having: a misspelt value, two readings, nothing to answer, a greeting, and values that stay inside."""

import json
import os
import pty
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

import openai
import pytest

from browser import opened_browser
from cardbox import HashingEmbedder
from mcp_talk import talk
from model_endpoints import END, Handler, completion, piece
from model_endpoints import serving as endpoint
from running_service import Service, serving
from serving.test_privacy import kept_bytes
from serving_commands import run_command
from shop import RIGHT, build, fenced
from sqlcrystal.bank import Verdict
from sqlcrystal.config import DatabaseEntry, TeamFile
from sqlcrystal.errors import Contradicted, NotAQuestion, UserError
from sqlcrystal.interfaces.cli.loop import Loop
from sqlcrystal.interfaces.server.settings import ServerSettings
from sqlcrystal.models.openai import OpenAIModel, OpenAISettings
from sqlcrystal.models.scripted import ScriptedModel, prompt_text
from sqlcrystal.serving import ServedAnswer
from sqlcrystal.serving.callers import Caller
from sqlcrystal.serving.crystal import Crystal
from sqlcrystal.serving.value import figures
from sqlcrystal.solving.profile import HEADING
from sqlcrystal.types import Message, Sampling
from watched_tab import IN_BROWSER, Watched

ASKED = "How many hardware items are there?"
OTHER = "SELECT COUNT(*) FROM item"
MISSPELT = "SELECT price FROM item WHERE name = 'bollt'"
STORED = "SELECT price FROM item WHERE name = 'Bolt'"


def torn(messages: Sequence[Message], _: Sampling) -> str:
    """A model whose two views of the shop count different things, unless the question says which kind is meant."""
    asked = messages[-1].content.rpartition("[Question]")[2]
    if "bollt" in asked:
        return fenced(MISSPELT)
    if "hardware" not in asked:
        return fenced("SELECT name FROM item ORDER BY price DESC")
    return fenced(RIGHT if HEADING in prompt_text(messages) else OTHER)


def opened(folder: Path, model: ScriptedModel | None = None, **settings: Any) -> Crystal:
    entry = DatabaseEntry(url=str(build(folder / "shop.sqlite")), **settings)
    team = TeamFile(databases={"shop": entry}, store=str(folder / "team.db"))
    return Crystal(team, model=model or ScriptedModel(torn), embedder=HashingEmbedder())


@pytest.fixture
def crystal(tmp_path: Path) -> Iterator[Crystal]:
    with opened(tmp_path) as crystal:
        yield crystal


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    settings = ServerSettings(requests_per_minute=1_000_000, allow_write=True)
    with serving(tmp_path, settings=settings, script=torn) as running:
        yield running


# ── an ambiguous question: two readings, of which a person picks one ─────────────────────────────────────────────────


def test_views_that_fall_apart_are_two_readings_in_words_with_their_rows(crystal: Crystal) -> None:
    one, two = crystal.ask(ASKED).readings
    assert (one.number, one.sql, one.rows) == (1, RIGHT, ((2,),))
    assert (two.number, two.sql, two.rows) == (2, OTHER, ((3,),))
    assert one.words
    assert two.words
    assert one.words != two.words


def test_views_that_agree_are_one_reading(tmp_path: Path) -> None:
    with opened(tmp_path, ScriptedModel(lambda *_: fenced(RIGHT))) as crystal:
        assert crystal.ask(ASKED).readings == ()


@pytest.mark.parametrize(("reading", "sql"), [(1, RIGHT), (2, OTHER)])
def test_the_reading_that_is_picked_becomes_the_card_and_the_other_is_kept_as_not_chosen(
    crystal: Crystal, reading: int, sql: str
) -> None:
    answer = crystal.ask(ASKED)
    ruling = crystal.pick(answer, reading)
    assert [(card.id, card.question.text, card.sql) for card in crystal.cards()] == [(ruling.card, ASKED, sql)]
    assert ruling.verdict == (Verdict.CONFIRMED if reading == 1 else Verdict.CORRECTED)
    assert crystal.proposals() == []
    assert crystal.store.decisions.proposal(crystal.store.answers.get(answer.id).other).sql == OTHER
    assert crystal.answer(answer.id).readings == ()


def test_a_plain_confirmation_is_the_first_reading(crystal: Crystal) -> None:
    crystal.confirm(crystal.ask(ASKED))
    assert [card.sql for card in crystal.cards()] == [RIGHT]
    assert crystal.proposals() == []


def test_a_pick_can_be_changed_and_undone(crystal: Crystal) -> None:
    answer = crystal.ask(ASKED)
    crystal.pick(answer, 1)
    crystal.pick(answer, 2)
    assert [card.sql for card in crystal.cards(status="active")] == [OTHER]
    crystal.undo(answer)
    assert [reading.sql for reading in crystal.answer(answer.id).readings] == [RIGHT, OTHER]


def test_an_answer_of_one_reading_has_nothing_to_pick(crystal: Crystal) -> None:
    answer = crystal.ask("List the items by price")
    with pytest.raises(UserError, match="given as one reading"):
        crystal.pick(answer, 1)


@pytest.mark.parametrize(("share", "asked"), [(0.0, 0), (0.1, 2), (0.2, 4), (1.0, 6)])
def test_no_larger_share_of_answers_asks_than_the_settings_allow(tmp_path: Path, share: float, asked: int) -> None:
    with opened(tmp_path, readings=share) as crystal:
        given = [crystal.ask(f"How many hardware items are there in shelf {place}?") for place in "ABCDEF"]
    assert sum(bool(answer.readings) for answer in given) == asked


def test_the_worth_of_asking_is_counted(crystal: Crystal) -> None:
    given = [crystal.ask(f"How many hardware items are there in shelf {place}?") for place in "ABCDEF"]
    crystal.pick(given[0], 1)
    crystal.confirm(given[1], anyway=True)
    crystal.pick(given[2], 2, anyway=True)
    crystal.reject(given[3], repair=False)
    (value,) = crystal.value()
    assert value.readings is not None
    counts = value.readings
    assert (counts.asked, counts.first, counts.second, counts.neither) == (4, 2, 1, 1)
    assert counts.share == pytest.approx(100 * 4 / 6, abs=0.01)
    told = {figure.name: figure.words for figure in figures(value)}
    assert told["Two readings"] == "of all answers, 4: the first picked 2, the second 1, neither 1; 0 wait"


def test_both_readings_are_printed_and_picked_by_command(
    tmp_path: Path, crystal: Crystal, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = crystal.ask(ASKED)
    from sqlcrystal.interfaces.cli.ask import answer_lines

    printed = "\n".join(answer_lines(answer))
    assert all(reading.words in printed and reading.sql in printed for reading in answer.readings)
    assert f"sqlcrystal pick {answer.id} 1|2" in printed
    place = ("--store", tmp_path / "team.db", "--json")
    monkeypatch.chdir(tmp_path)
    settings = f'store = "team.db"\n[databases.shop]\nurl = "{tmp_path / "shop.sqlite"}"\n'
    (tmp_path / "sqlcrystal.toml").write_text(settings)
    done = run_command(capsys, monkeypatch, "pick", answer.id, 2, *place)
    assert done.code == 0, done.err
    assert [card.sql for card in crystal.cards()] == [OTHER]


def test_both_readings_are_picked_at_the_prompt(crystal: Crystal, capsys: pytest.CaptureFixture[str]) -> None:
    loop = Loop(crystal)
    loop.take(ASKED)
    assert "two ways" in capsys.readouterr().out
    loop.take("2")
    assert [card.sql for card in crystal.cards()] == [OTHER]


def test_both_readings_are_told_and_picked_over_http(service: Service) -> None:
    answer = service.ask(ASKED)
    assert [reading["sql"] for reading in answer["readings"]] == [RIGHT, OTHER]
    assert service.post(f"/api/answers/{answer['id']}/pick", json={"reading": 3}).status_code == 422
    assert service.post(f"/api/answers/{answer['id']}/pick", kind="ask", json={"reading": 2}).status_code == 403
    assert service.post(f"/api/answers/{answer['id']}/pick", json={"reading": 2}).status_code == 200
    assert [card.sql for card in service.crystal.cards()] == [OTHER]


def test_both_readings_are_told_and_picked_by_an_assistant(service: Service) -> None:
    _, (given,) = talk(service, "judge", ("ask", {"question": ASKED, "database": "shop"}))
    answer = given.structured_content
    assert [reading["sql"] for reading in answer["readings"]] == [RIGHT, OTHER]
    _, (ruling,) = talk(service, "judge", ("pick", {"answer_id": answer["id"], "reading": 2}))
    assert not ruling.is_error
    assert [card.sql for card in service.crystal.cards()] == [OTHER]


@pytest.mark.parametrize("reply", ["2", "2."])
def test_both_readings_are_told_and_picked_in_a_chat(service: Service, reply: str) -> None:
    messages: list[Any] = [{"role": "user", "content": ASKED}]
    with openai.OpenAI(base_url=f"{service.url}/v1", api_key=service.tokens["judge"], max_retries=0) as client:
        first = client.chat.completions.create(model="shop", messages=messages).choices[0].message.content
        assert first is not None
        assert "Reply `1` or `2`" in first
        assert OTHER in first
        messages += [{"role": "assistant", "content": first}, {"role": "user", "content": reply}]
        said = client.chat.completions.create(model="shop", messages=messages).choices[0].message.content
    assert str(said).startswith("Banked as card")
    assert [card.sql for card in service.crystal.cards()] == [OTHER]


@IN_BROWSER[0]
@pytest.mark.xdist_group("browser")
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_both_readings_are_shown_on_the_page_and_one_click_picks(service: Service, width: int, scheme: str) -> None:
    with opened_browser() as browser:
        page = Watched(browser, service, width, scheme)
        page.log_in()
        page.ask(ASKED)
        both = page.tab.locator(".readings")
        assert all(reading.words in both.inner_text() for reading in kept(service).readings)
        assert "gives 2" in both.inner_text()
        assert "gives 3" in both.inner_text()
        assert page.tab.locator("#verdict .primary").count() == 0  # neither reading is the default
        page.well()
        both.get_by_role("button", name="I mean reading 2").click()
        assert page.says("corrected")
    assert [card.sql for card in service.crystal.cards()] == [OTHER]


def kept(service: Service) -> ServedAnswer:
    """Give the latest answer as the store has it."""
    return service.crystal.answer(service.crystal.history("shop")[0].id)


# ── a misspelt value ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("values", ["allowed", "never"])
def test_a_misspelt_value_is_mended_without_the_model(tmp_path: Path, values: str) -> None:
    model = ScriptedModel(torn)
    with opened(tmp_path, model, values=values) as crystal:
        answer = crystal.ask("What does a bollt cost?")
    assert (answer.sql, answer.rows, answer.repaired) == (STORED, ((120,),), True)
    assert len(model.prompts) == (2 if values == "allowed" else 1)  # the views, and no repair


def test_a_mended_value_that_may_not_leave_is_in_nothing_that_is_kept_sent_or_told_to_a_model(tmp_path: Path) -> None:
    model = ScriptedModel(torn)
    with opened(tmp_path, model, values="never") as crystal:
        told = crystal.acting_for(Caller(person="ada", is_model=True)).ask("What does a bollt cost?")
        assert "Bolt" not in str(told.document())
        assert "Bolt" not in "".join(map(prompt_text, model.prompts))
        crystal.confirm(told.id)
    assert "Bolt" not in kept_bytes(tmp_path)


# ── nothing to answer ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("text", ["hello", "thanks!", "delete all items", "drop table item"])
def test_a_greeting_or_an_order_gets_a_sentence_and_no_sql(crystal: Crystal, text: str) -> None:
    with pytest.raises(NotAQuestion, match="This "):
        crystal.ask(text)
    assert crystal.history() == []


@pytest.mark.parametrize("values", ["allowed", "never"])
def test_a_question_that_the_schema_cannot_answer_gets_a_sentence_and_no_sql(tmp_path: Path, values: Any) -> None:
    place = tmp_path / "orders.sqlite"
    with closing(sqlite3.connect(place)) as made:
        made.execute("CREATE TABLE orders (id INT, item TEXT, kind TEXT, price INT, quantity INT, order_date TEXT)")
    entry = DatabaseEntry(url=str(place), values=values)
    team = TeamFile(databases={"orders": entry}, store=str(tmp_path / "team.db"))
    model = ScriptedModel(torn)
    with Crystal(team, model=model, embedder=HashingEmbedder()) as crystal:
        with pytest.raises(NotAQuestion, match="names anything in the database orders"):
            crystal.ask("What was our profit margin last year?")
        assert crystal.history() == []
    assert model.prompts == []


# ── values that may not leave ────────────────────────────────────────────────────────────────────────────────────────


def by_cards(messages: Sequence[Message], _: Sampling) -> str:
    """A model that counts another thing where it is shown a card."""
    return fenced("SELECT COUNT(*) FROM item WHERE price > 100" if "[Relevant" in prompt_text(messages) else OTHER)


def test_two_readings_keep_no_value_of_a_database_whose_values_may_not_leave(tmp_path: Path) -> None:
    with opened(tmp_path, ScriptedModel(by_cards), values="never") as crystal:
        crystal.confirm(crystal.ask("How many things are there?"))
        answer = crystal.acting_for(Caller(person="ada", is_model=True)).ask("How many dear things are there?")
        assert [(reading.rows, reading.columns) for reading in answer.readings] == [((), ()), ((), ())]
        other = crystal.store.decisions.proposal(crystal.store.answers.get(answer.id).other)
        assert other.sql == OTHER
        crystal.pick(answer, 2)
    assert "> 100" not in kept_bytes(tmp_path)


# ── a confirmation that a near card speaks against ───────────────────────────────────────────────────────────────────


def numbered(messages: Sequence[Message], _: Sampling) -> str:
    """A model that is right about items above 100, and wrong about those above 200."""
    asked = messages[-1].content.rpartition("[Question]")[2]
    sign = "<" if "200" in asked and "wrongly" in asked else ">"
    return fenced(f"SELECT COUNT(*) FROM item WHERE price {sign} {200 if '200' in asked else 100}")


@pytest.mark.parametrize(("aside", "speaks"), [("", False), (" wrongly", True)])
def test_a_near_card_about_another_number_speaks_as_it_would_about_this_one(
    tmp_path: Path, aside: str, speaks: bool
) -> None:
    class Alike(HashingEmbedder):
        """Every question is near every other."""

        def embed(self, texts: Sequence[str]) -> Any:
            return super().embed(["the same"] * len(texts))

    entry = DatabaseEntry(url=str(build(tmp_path / "shop.sqlite")))
    team = TeamFile(databases={"shop": entry}, store=str(tmp_path / "team.db"))
    with Crystal(team, model=ScriptedModel(numbered), embedder=Alike()) as crystal:
        crystal.confirm(crystal.ask(f"How many items{aside} cost more than 100?"))
        second = crystal.ask(f"How many items{aside} cost more than 200?")
        if not speaks:
            assert crystal.confirm(second).card
            return
        with pytest.raises(Contradicted, match="with the values of this question"):
            crystal.confirm(second)
        assert crystal.confirm(second, anyway=True).card


@pytest.mark.parametrize(("number", "speaks"), [("100", True), ("200", False)])
def test_a_near_card_in_other_words_speaks_only_where_the_question_names_the_same_numbers(
    tmp_path: Path, number: str, speaks: bool
) -> None:
    class Alike(HashingEmbedder):
        """Every question is near every other."""

        def embed(self, texts: Sequence[str]) -> Any:
            return super().embed(["the same"] * len(texts))

    def other(messages: Sequence[Message], _: Sampling) -> str:
        """A model that counts what is cheap where the question does not say dear."""
        sign = ">" if "dear" in messages[-1].content.rpartition("[Question]")[2] else "<"
        return fenced(f"SELECT COUNT(*) FROM item WHERE price {sign} 100")

    entry = DatabaseEntry(url=str(build(tmp_path / "shop.sqlite")))
    team = TeamFile(databases={"shop": entry}, store=str(tmp_path / "team.db"))
    with Crystal(team, model=ScriptedModel(other), embedder=Alike()) as crystal:
        crystal.confirm(crystal.ask("How many dear items, above a price of 100, are there?"))
        second = crystal.ask(f"Of all that is sold, what number is beyond {number}?")
        if not speaks:
            assert crystal.confirm(second).card
            return
        with pytest.raises(Contradicted, match="gives other rows for"):
            crystal.confirm(second)


# ── SQL as it is written ─────────────────────────────────────────────────────────────────────────────────────────────

WRITTEN = ("```sql\nSELECT COUNT(*) ", "FROM item ", "WHERE kind = 'HW'", "\n```")


class Written(NamedTuple):
    """A service whose model streams from a real endpoint, and what lets the rest of a reply be written."""

    service: Service
    go_on: threading.Event
    model_url: str


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Written]:
    go_on = threading.Event()

    def answer(handler: Handler, body: dict[str, Any], attempt: int) -> None:
        if "stream" not in body:
            handler.reply(200, completion("".join(WRITTEN)))
            return
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.send_header("connection", "close")
        handler.end_headers()
        handler.wfile.write(piece(WRITTEN[0]))
        handler.wfile.flush()
        assert go_on.wait(60)
        handler.wfile.write(b"".join(map(piece, WRITTEN[1:])) + END)
        handler.close_connection = True

    with endpoint(answer) as server:
        model = OpenAIModel(OpenAISettings(name="m", base_url=server.base_url))
        with serving(tmp_path, asking=model) as service:
            yield Written(service, go_on, server.base_url)
        model.close()


def test_sql_is_told_over_http_while_it_is_written(written: Written) -> None:
    kinds, sql = [], []
    with (
        written.service.client() as client,
        client.stream(
            "POST",
            "/api/ask",
            json={"question": ASKED, "database": "shop"},
            headers={"Accept": "text/event-stream"},
        ) as reply,
    ):
        lines = reply.iter_lines()
        for line in lines:
            if line.startswith("event: "):
                kinds.append(line.removeprefix("event: "))
                if kinds[-1] == "writing":
                    sql.append(json.loads(next(lines).removeprefix("data: "))["sql"])
                    written.go_on.set()
    assert sql[0] == "SELECT COUNT(*)"
    assert RIGHT.startswith(sql[-1])
    assert kinds.index("writing") < kinds.index("sql") < kinds.index("done")


def test_a_chat_gets_the_sql_while_it_is_written_and_then_the_rest_of_the_answer(written: Written) -> None:
    with openai.OpenAI(
        base_url=f"{written.service.url}/v1", api_key=written.service.tokens["judge"], max_retries=0
    ) as client:
        said = []
        asked: Any = [{"role": "user", "content": ASKED}]
        for chunk in client.chat.completions.create(model="shop", messages=asked, stream=True):
            said += [choice.delta.content for choice in chunk.choices if choice.delta.content]
            if said:
                written.go_on.set()
        whole = "".join(said)
    assert said[0] == "```sql\nSELECT COUNT(*)"
    assert whole.startswith(f"```sql\n{RIGHT}\n```\n\n")
    assert "Looked at again" not in whole
    assert whole.count(RIGHT) == 1


@IN_BROWSER[0]
@pytest.mark.xdist_group("browser")
def test_the_page_shows_the_sql_while_it_is_written(written: Written) -> None:
    with opened_browser() as browser:
        page = Watched(browser, written.service, 1280, "light")
        page.log_in()
        page.tab.fill("#question", ASKED)
        page.tab.press("#question", "Enter")
        shown = "words => document.querySelector('#answer .sql pre')?.textContent === words"
        page.tab.wait_for_function(shown, arg="SELECT COUNT(*)")
        written.go_on.set()
        page.tab.wait_for_function("words => document.querySelector('#answer[data-title]')", arg=None)


def typed(written: Written, folder: Path, *more: str) -> str:
    """Run `ask` with a terminal for its progress, and tell what that showed, the reply going on once it was shown."""
    ours, theirs = pty.openpty()
    place = build(folder / "own.sqlite")
    options = ("--db", str(place), "--model", f"{written.model_url}#m", "--store", str(folder / "own.db"))
    command = [sys.executable, "-m", "sqlcrystal", "ask", ASKED, *options, *more]
    shown = b""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs) as process:
        os.close(theirs)
        with suppress(OSError):  # the terminal's other end was closed
            while piece_shown := os.read(ours, 65_536):
                shown += piece_shown
                if b"SELECT COUNT(*)" in shown:
                    written.go_on.set()
    os.close(ours)
    assert process.returncode == 0, shown
    return shown.decode()


def test_a_command_shows_a_person_the_sql_while_it_is_written(written: Written, tmp_path: Path) -> None:
    assert "SELECT COUNT(*)…" in typed(written, tmp_path)


def test_a_command_that_prints_json_shows_no_progress(written: Written, tmp_path: Path) -> None:
    written.go_on.set()
    assert typed(written, tmp_path, "--json") == ""
