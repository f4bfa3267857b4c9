"""Own tests, a study's bank and a benchmark of one's own, by commands alone, on either engine."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from servers import new_postgres_database, running_postgres
from serving_endpoint import model_at, scripted_endpoint
from shop import OWN_TESTS, QUESTION, RIGHT, ROWS, SCHEMA, build, helped
from sqlcrystal.ledger.records import write_ledger
from synthetic_ledger import synthetic_ledger

ASKED = QUESTION.text
Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.xdist_group("stores"))])
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """A shop and the place of a store, both on one engine."""
    if request.param == "sqlite":
        yield str(build(tmp_path / "shop.sqlite")), "team.db"
        return
    import psycopg

    with running_postgres() as server:
        shop, store = new_postgres_database(server, "shop"), new_postgres_database(server, "team")
        with psycopg.connect(shop, autocommit=True) as connection:
            connection.execute(SCHEMA)
            connection.cursor().executemany("INSERT INTO item VALUES (%s, %s, %s, %s)", ROWS)
        yield shop, store


@pytest.fixture
def command(places: tuple[str, str], tmp_path: Path) -> Iterator[Command]:
    """`sqlcrystal …` in a process of its own, with settings that name the shop, the store and the model."""
    shop, store = places
    with scripted_endpoint(helped) as server:
        settings = [f'model = "{model_at(server)}"', f'store = "{store}"', "[databases.shop]", f'url = "{shop}"']
        (tmp_path / "sqlcrystal.toml").write_text("\n".join([*settings, "allow_privileged = true"]))
        (tmp_path / "tests.yaml").write_text(OWN_TESTS)

        def run(*arguments: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [sys.executable, "-m", "sqlcrystal.interfaces.cli.app", *arguments],
                cwd=tmp_path,
                env={**os.environ, "SQLCRYSTAL_CACHE": str(tmp_path / "cache")},
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )

        yield run


def answered(command: Command, *arguments: str, code: int = 0) -> object:
    """The JSON document that a command prints."""
    done = command(*arguments, "--json")
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


@pytest.mark.timeout(600)
def test_own_tests_and_benchmarks_follow_the_bank(command: Command, tmp_path: Path) -> None:
    before = answered(command, "test", "tests.yaml", code=1)
    assert isinstance(before, dict)
    assert (before["right"], before["right_without"]) == (1, 1)
    answer = answered(command, "ask", ASKED)
    assert isinstance(answer, dict)
    assert not answer["cards"]
    ruling = answered(command, "reject", answer["id"], "--sql", RIGHT, "--by", "ada")
    assert isinstance(ruling, dict)

    done = command("test", "tests.yaml", "--junit", "junit.xml")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "2 of 2 right with memory, 1 without")
    suite = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert [case.get("name") for case in suite.iter("testcase")] == ["hardware", "all items"]
    assert not list(suite.iter("failure"))

    benchmark = answered(command, "benchmark", "make", "--from-store", "--out", "own")
    assert benchmark == {"questions": 1, "file": "own/questions.jsonl"}
    (line,) = (tmp_path / "own" / "questions.jsonl").read_text().splitlines()
    assert (json.loads(line)["question"], json.loads(line)["sql"]) == (ASKED, RIGHT)

    command("cards", "disable", ruling["card"])
    assert command("test", "tests.yaml").returncode == 1
    listed = answered(command, "queue")
    assert listed == []  # tests leave no answer behind


@pytest.mark.timeout(600)
def test_a_studys_bank_is_taken_into_service_once(command: Command, tmp_path: Path) -> None:
    study = synthetic_ledger()
    (tmp_path / "run").mkdir()
    write_ledger(study, tmp_path / "run")
    first = study.cards[0]
    wanted = [card for card in study.cards if (card.arm, card.seed) == (first.arm, first.seed)]
    taken = ("cards", "import", "--from-run", "run", "--arm", first.arm, "--seed", str(first.seed))
    done = command(*taken)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"imported {len(wanted)}, ")
    again = command(*taken)
    assert again.stdout.startswith("imported 0, ")
    cards = answered(command, "cards", "list")
    assert isinstance(cards, list)
    assert len(cards) == len(wanted)
    assert {card["signal"] for card in cards} == {card.signal for card in wanted}
    refused = command("cards", "import", "--from-run", "run", "--arm", "W9", "--seed", "1")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "choose from" in refused.stderr
