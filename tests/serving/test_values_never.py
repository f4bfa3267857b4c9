"""`values = "never"`: a value planted in any place of a query is in nothing that is kept, and in no later prompt."""

import contextlib
import io
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cardbox import HashingEmbedder
from running_service import serving
from serving.test_privacy import kept_bytes, logged
from serving_endpoint import scripted_endpoint
from shop import ROWS, SCHEMA, fenced
from sqlcrystal import Crystal
from sqlcrystal.config import AssertionEntry, DatabaseEntry, TeamFile
from sqlcrystal.databases.masks import UNREADABLE, mask
from sqlcrystal.errors import UserError
from sqlcrystal.models.openai import OpenAIModel, OpenAISettings
from sqlcrystal.models.scripted import ScriptedModel, prompt_text
from sqlcrystal.types import Message, Sampling

NAMES = ("item", "id", "name", "kind", "price")
TEXT, NUMBER = "Zyxowitz", "918273"
# Every place of a query that can hold a text; {v} is the value, and all of them run on SQLite.
PLACES = (
    "SELECT price FROM item WHERE name = '{v}'",
    "SELECT price FROM item WHERE name LIKE '%{v}%' ESCAPE '!'",
    'SELECT price FROM item WHERE name = "{v}"',
    "SELECT price FROM item WHERE name IN ('Bolt', '{v}')",
    "SELECT price AS {v} FROM item",
    'SELECT price AS "{v}" FROM item ORDER BY "{v}"',
    "SELECT price AS '{v}' FROM item",
    "SELECT price {v} FROM item",
    "SELECT {v}.price FROM item AS {v}",
    "WITH {v} AS (SELECT price FROM item) SELECT * FROM {v}",
    "WITH c({v}) AS (SELECT price FROM item) SELECT {v} FROM c",
    "SELECT price FROM item -- {v}",
    "SELECT /* {v} */ price FROM item",
    "SELECT price FROM item /* {v} */ WHERE id > 0",
    "SELECT sum(price) OVER {v} FROM item WINDOW {v} AS (ORDER BY id)",
    "SELECT CAST(price AS {v}) FROM item",
    "SELECT CAST('{v}' AS TEXT) FROM item",
    "SELECT coalesce(name, '{v}') FROM item",
    "SELECT CASE name WHEN '{v}' THEN '{v}' ELSE '{v}' END FROM item",
    "SELECT strftime('%Y {v}', '2020-01-01') FROM item",
    "SELECT group_concat(name, '{v}') FROM item",
    "SELECT name || '{v}' FROM item",
    "SELECT json_extract('{{\"{v}\": 1}}', '$.{v}') FROM item",
    "SELECT '{{}}' ->> '{v}' FROM item",
    "SELECT price FROM item WHERE name = '«1» {v}'",
    "SELECT price FROM item WHERE EXISTS (SELECT 1 FROM (SELECT '{v}' AS x))",
    "SELECT price FROM item WHERE name = x'{hex}'",
    "SELECT price FROM item WHERE name = CAST(x'{hex}' AS TEXT)",
    "SELECT price FROM item WHERE name = char({codes})",
    "VALUES ('{v}')",
    "SELECT price FROM item UNION SELECT '{v}'",
    "SELECT price FROM item ORDER BY name = '{v}', 1 LIMIT 5",
    "SELECT printf('%s {v}', name) FROM item",
    "SELECT {v}(price) FROM item",
    "SELECT {v} FROM item",
    "SELECT price FROM {v}",
    "SELECT price FROM item WHERE name = :{v}",
    "SELECT price FROM item WHERE name = '{v}",
    "SELECT price FROM item; SELECT '{v}'",
    "PRAGMA table_info({v})",
)
NUMBER_PLACES = (
    "SELECT price FROM item WHERE price > {v}",
    "SELECT price FROM item WHERE price = -{v}",
    "SELECT CAST({v} AS INTEGER) FROM item",
    "SELECT coalesce(price, {v}) FROM item",
    "SELECT abs({v}) FROM item",
    "SELECT round(price, {v}) FROM item",
    "SELECT max(price, {v}) FROM item",
    "SELECT price + {v}.5 FROM item",
    "SELECT price FROM item WHERE price IN (1, {v})",
    "SELECT price FROM item WHERE price BETWEEN {v} AND {v}",
    "SELECT CASE WHEN price = {v} THEN {v} END FROM item",
    "SELECT {v} AS one FROM item GROUP BY 1 HAVING count(*) > {v}",
    "SELECT price FROM item ORDER BY price * {v} LIMIT 5",
    "SELECT price FROM item LIMIT (SELECT {v})",
    "SELECT sum(price) OVER (ORDER BY id ROWS BETWEEN {v} PRECEDING AND CURRENT ROW) FROM item",
    "SELECT date('2020-01-01', '+{v} days') FROM item",
    "SELECT price AS a{v} FROM item",
    "SELECT price FROM item WHERE price = 0x{hexnumber}",
    "SELECT price FROM item WHERE price = {v}e0",
)


def planted(place: str, value: str) -> str:
    codes = ", ".join(str(ord(character)) for character in value)
    number = f"{int(value):X}" if value.isdecimal() else ""
    return place.format(v=value, hex=value.encode().hex(), codes=codes, hexnumber=number)


def spellings(value: str) -> list[str]:
    codes = ", ".join(str(ord(character)) for character in value)
    number = [f"{int(value):x}"] if value.isdecimal() else []
    return [value.casefold(), value.encode().hex(), codes, codes.replace(" ", ""), *number]


CASES = [(place, TEXT) for place in PLACES] + [(place, NUMBER) for place in NUMBER_PLACES]


@pytest.mark.parametrize(("place", "value"), CASES)
def test_no_place_of_a_query_keeps_a_value(place: str, value: str) -> None:
    for runs in (True, False):
        masked = mask("What is it?", planted(place, value), dialect="sqlite", names=NAMES, runs=runs).sql or ""
        if runs and place == "SELECT {v}(price) FROM item":
            continue  # what runs calls a function that is there
        assert not [spelling for spelling in spellings(value) if spelling in masked.casefold()], masked


def test_what_is_masked_comes_out_the_same_when_it_is_masked_again() -> None:
    for place, value in CASES:
        masked = mask("?", planted(place, value), dialect="sqlite", names=NAMES).sql or ""
        if masked != UNREADABLE:
            assert mask("?", masked, dialect="sqlite", names=NAMES).sql == masked


def service(folder: Path, reply: list[str]) -> Crystal:
    place = folder / "shop.sqlite"
    with contextlib.closing(sqlite3.connect(place)) as connection, connection:
        connection.execute(SCHEMA)
        connection.executemany("INSERT INTO item VALUES (?, ?, ?, ?)", ROWS)
    rule = AssertionEntry(sql="SELECT 1 FROM {answer}")
    entry = DatabaseEntry(url=str(place), values="never", assertion=(rule,))
    team = TeamFile(databases={"shop": entry}, store=str(folder / "team.db"), budget=1)
    return Crystal(team, model=ScriptedModel(lambda *_: fenced(reply[-1])), embedder=HashingEmbedder())


words = st.text(alphabet="bcdfghjklmnpqrstvwxz", min_size=7, max_size=9).map(str.capitalize)
numbers = st.integers(min_value=100_000_000, max_value=999_999_999).map(str)
queries = st.one_of(
    st.tuples(st.sampled_from(PLACES), words),
    st.tuples(st.sampled_from(NUMBER_PLACES), numbers),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(asked=st.lists(queries, min_size=1, max_size=4))
def test_a_planted_value_is_in_no_store_no_log_and_no_later_prompt(
    tmp_path_factory: pytest.TempPathFactory, asked: list[tuple[str, str]]
) -> None:
    folder, heard, reply = tmp_path_factory.mktemp("never"), io.StringIO(), [""]
    with service(folder, reply) as crystal, logged(heard):
        for number, (place, value) in enumerate(asked):
            reply.append(planted(place, value))
            answer = crystal.ask(f"What is item number {number} called?", by="ada")
            with contextlib.suppress(UserError):  # there is nothing to confirm in a query that does not run
                crystal.confirm(answer, by="ada", note=value)
                crystal.disable([card.id for card in crystal.cards()], by="ada", reason=value)
                crystal.enable([card.id for card in crystal.cards()], by="ada", reason=value)
            crystal.reject(answer, by="ada", note=value, repair=False)
        reply.append("SELECT price FROM item")
        crystal.ask("And what is the last one called?", by="bob")
        model = crystal.workspace.model
        assert isinstance(model, ScriptedModel)
        told = prompt_text(model.prompts[-1])
        shown = repr(crystal.history()) + repr(crystal.cards()) + repr(crystal.queue())
    everything = (kept_bytes(folder) + heard.getvalue() + told + shown).casefold()
    for place, value in asked:
        assert not [spelling for spelling in spellings(value) if spelling in everything], place


# ── through the service ──────────────────────────────────────────────────────────────────────────────────────────────


def test_no_prompt_at_an_endpoint_no_metric_log_list_or_error_of_the_service_tells_a_planted_value(
    tmp_path: Path,
) -> None:
    heard, reply, prompts = io.StringIO(), [""], list[str]()

    def writes(messages: Sequence[Message], _: Sampling) -> str:
        prompts.append(prompt_text(messages))
        return fenced(reply[-1])

    with scripted_endpoint(writes) as endpoint, logged(heard):
        model = OpenAIModel(OpenAISettings(name="writer", base_url=endpoint.base_url))
        with serving(tmp_path, asking=model, values="never") as running, running.client() as client:
            told = ""
            for number, (place, value) in enumerate(CASES):
                reply.append(planted(place, value))
                answer = running.ask(f"What is item number {number} called?")
                judged = f"/api/answers/{answer['id']}"
                confirmed = client.post(f"{judged}/confirm", json={"note": value})
                rejected = client.post(f"{judged}/reject", json={"note": value, "repair": False})
                assert {confirmed.status_code, rejected.status_code} <= {200, 409, 422}
                told += confirmed.text + rejected.text
            reply.append("SELECT price FROM item")
            before = len(prompts)
            running.ask("And what is the last one called?", kind="judge")
            lists = ("/metrics", "/api/answers", "/api/cards", "/api/queue", "/api/value")
            told += "".join(client.get(path).text for path in lists)
    everything = (told + "".join(prompts[before:]) + heard.getvalue() + kept_bytes(tmp_path)).casefold()
    assert len(prompts) > len(CASES)
    assert "sqlcrystal_requests_total" in everything
    for place, value in CASES:
        assert not [spelling for spelling in spellings(value) if spelling in everything], place
