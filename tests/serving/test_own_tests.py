"""A team's own tests, and cards and questions that move between service and study."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from cardbox import HashingEmbedder
from shop import OWN_TESTS, QUESTION, RIGHT, build, helped
from sqlcrystal import Crystal
from sqlcrystal.benchmarks.catalogue import load
from sqlcrystal.errors import ConfigError, DataError
from sqlcrystal.ledger.folder import banked_entries
from sqlcrystal.ledger.records import Ledger, read_ledger, write_ledger
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.serving.own_tests import junit, read_tests
from synthetic_ledger import synthetic_ledger

ASKED = QUESTION.text


@pytest.fixture
def crystal(tmp_path: Path) -> Crystal:
    place = build(tmp_path / "shop.sqlite")
    return Crystal.over(place, model=ScriptedModel(helped), store=tmp_path / "team.db", embedder=HashingEmbedder())


@pytest.fixture(scope="module")
def ledger() -> Ledger:
    return synthetic_ledger()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tests.yaml"
    path.write_text(OWN_TESTS)
    return path


def test_tests_run_with_memory_and_without_and_say_what_memory_did(crystal: Crystal, file: Path) -> None:
    with crystal:
        before = crystal.test(read_tests(file))
        crystal.correct(crystal.ask(ASKED, memory=False), RIGHT, by="ada")
        after = crystal.test(read_tests(file))
    assert [outcome.says for outcome in before] == ["wrong", "right"]
    assert [outcome.says for outcome in after] == ["fixed", "right"]


def test_tests_leave_no_answer_behind(crystal: Crystal, file: Path) -> None:
    with crystal:
        crystal.test(read_tests(file))
        assert crystal.history() == []


def test_a_wrong_answer_is_a_failure_in_junit(crystal: Crystal, file: Path) -> None:
    with crystal:
        document = ElementTree.fromstring(junit(crystal.test(read_tests(file)), suite="shop"))
    assert (document.get("tests"), document.get("failures")) == ("2", "1")
    assert document.find("testcase[@name='hardware']/failure") is not None
    assert document.find("testcase[@name='all items']/failure") is None


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("- name: a", "question"),
        ("- {name: a, question: b}", "either sql or rows"),
        ("- {name: a, question: b, sql: c, rows: [[1]]}", "either sql or rows"),
        ("- {name: a, question: b, sql: c}\n- {name: a, question: b, sql: c}", "twice"),
        ("[", "not YAML"),
        ("[]", "holds no tests"),
    ],
)
def test_a_broken_file_is_one_line(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(text)
    with pytest.raises(DataError, match=complaint) as raised:
        read_tests(path)
    assert "\n" not in str(raised.value)


def test_a_studys_cards_keep_their_signal_and_name_the_study(tmp_path: Path, ledger: Ledger) -> None:
    write_ledger(ledger, tmp_path)
    card = ledger.cards[0]
    entries = banked_entries(tmp_path, arm=card.arm, seed=card.seed)
    assert len(entries) == sum(
        (banked.arm, banked.seed) == (card.arm, card.seed) for banked in read_ledger(tmp_path).cards
    )
    assert entries[0].card.admission.signal == card.signal
    assert entries[0].card.admission.by.startswith("study ")


def test_an_arm_or_seed_that_banked_nothing_is_answered_with_those_that_did(tmp_path: Path, ledger: Ledger) -> None:
    write_ledger(ledger, tmp_path)
    with pytest.raises(ConfigError, match="choose from"):
        banked_entries(tmp_path, arm="W9", seed=42)
    with pytest.raises(ConfigError, match="--seed"):
        banked_entries(tmp_path, arm=ledger.cards[0].arm, seed=-1)


def test_confirmed_answers_make_a_benchmark_that_loads(crystal: Crystal, tmp_path: Path) -> None:
    with crystal:
        crystal.confirm(crystal.ask("How many items are there?"), by="ada")
        crystal.correct(crystal.ask(ASKED), RIGHT, by="ada")
        rejected = crystal.ask("How many teas are there?")
        crystal.reject(rejected, by="ada", repair=False)
        assert crystal.make_benchmark(tmp_path / "own") == 2
    build(tmp_path / "own" / "shop.sqlite")
    benchmark = load(tmp_path / "own")
    assert {(case.question.text, case.sql) for case in benchmark.cases} == {
        ("How many items are there?", "SELECT COUNT(*) FROM item"),
        (ASKED, RIGHT),
    }
