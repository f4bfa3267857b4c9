"""What a prompt shows of a database: all of it where it fits, with comments and hints, else the tables that matter."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardbox import HashingEmbedder
from shop import build
from sqlcrystal.databases import open_database
from sqlcrystal.protocols import Database
from sqlcrystal.solving.narrowing import Narrowing
from sqlcrystal.solving.presentation import Presenter, described_schema, tables_of
from sqlcrystal.solving.prompt import build_prompt
from sqlcrystal.types import Column, Question, Rows, Table

ROOT = Path(__file__).resolve().parent.parent.parent


def table(name: str, *columns: str, references: tuple[str, ...] = (), comment: str = "") -> Table:
    return Table(
        name=name,
        columns=tuple(Column(name=column) for column in columns),
        definition=f"CREATE TABLE {name} ({', '.join(columns)});",
        references=references,
        comment=comment,
    )


MANY = [table(f"ledger_{number}", "debit", "credit") for number in range(30)]
SCHEMA = [
    Table(name="mood", kind="type", definition="CREATE TYPE mood AS ENUM ('calm');"),
    *MANY[:15],
    table("singer", "singer_id", "stage_name", "mood"),
    table("performs", "singer_id", "concert_id", references=("singer", "concert")),
    table("concert", "concert_id", "venue"),
    *MANY[15:],
]


def asked(text: str) -> Question:
    return Question(id="q", database="d", text=text)


def test_a_table_between_two_named_ones_is_kept_though_nobody_names_it() -> None:
    chosen = Narrowing(SCHEMA, HashingEmbedder()).choose(asked("Which singers are in a concert at the venue?"), width=4)
    assert {"singer", "performs", "concert"} <= {kept.name for kept in chosen}


def test_a_type_comes_with_the_tables_that_use_it() -> None:
    narrowing = Narrowing(SCHEMA, HashingEmbedder())
    assert "mood" in {kept.name for kept in narrowing.choose(asked("stage name of the singers"), width=3)}
    assert "mood" not in {kept.name for kept in narrowing.choose(asked("ledger 7 debit credit"), width=1)}


@given(text=st.text(max_size=40), width=st.integers(1, 40))
def test_never_more_than_the_width_and_always_in_the_order_of_the_schema(text: str, width: int) -> None:
    chosen = NARROWING.choose(asked(text), width=width)
    places = [SCHEMA.index(kept) for kept in chosen]
    assert sum(kept.kind == "table" for kept in chosen) == min(width, len(SCHEMA) - 1)
    assert places == sorted(places)


NARROWING = Narrowing(SCHEMA, HashingEmbedder())


def no_embedder() -> HashingEmbedder:
    raise AssertionError("a schema that fits needs no embedder")


def test_a_schema_that_fits_is_shown_as_it_is(shop: Database) -> None:
    shown = Presenter(shop, embedder=no_embedder).present(asked("How many items?"))
    assert shown.schema() == shop.schema()
    question = asked("How many items?")
    prompts = [build_prompt(schema=d.schema(), dialect=d.dialect, question=question) for d in (shop, shown)]
    assert prompts[0] == prompts[1]


def test_comments_and_hints_reach_the_prompt_as_sql_comments() -> None:
    commented = Table(
        name="item",
        columns=(Column(name="kind", comment="HW or\nSW"),),
        definition="CREATE TABLE item (kind TEXT);",
        comment="what we sell",
    )
    assert described_schema([commented], hints="Prices are net.\n\nHW is hardware.") == (
        "CREATE TABLE item (kind TEXT);\n-- item: what we sell\n-- item.kind: HW or SW\n\n"
        "-- Hints from the owner of this database:\n-- Prices are net.\n-- HW is hardware."
    )


def test_a_comment_that_the_definition_shows_is_not_told_twice() -> None:
    inline = Table(name="item", definition="CREATE TABLE item (kind TEXT COMMENT 'HW or SW');", comment="HW or SW")
    assert described_schema([inline]) == inline.definition


def test_what_does_not_fit_is_narrowed_and_still_executed_on_the_whole(tmp_path: Path) -> None:
    database = open_database(str(build(tmp_path / "shop.sqlite")), name="shop")
    whole = [kept.name for kept in tables_of(database)]
    presenter = Presenter(database, embedder=HashingEmbedder, room=10, width=1)
    shown = presenter.present(asked("price of an item"))
    assert shown.schema().count("CREATE TABLE") == 1
    assert shown.fingerprint() == database.fingerprint()
    assert all(isinstance(shown.execute(f"SELECT count(*) FROM {name}"), Rows) for name in whole)
    database.close()


@pytest.mark.shared_data
def test_spider_dev_as_one_database_keeps_the_tables_that_matter(shared_data: Path) -> None:
    script = ROOT / "benchmarks" / "schema_narrowing.py"
    done = subprocess.run(
        [sys.executable, str(script), "--data", str(shared_data / "spider"), "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    figures = json.loads(done.stdout)
    assert (figures["databases"], figures["questions"]) == (20, 1034)
    assert figures["tables"] > 80
    assert figures["kept_percent"] >= 99
    assert figures["mean_tables"] <= 12
