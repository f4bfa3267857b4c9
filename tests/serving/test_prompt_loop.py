"""The prompt of `sqlcrystal` alone: asking, confirming and correcting in turn."""

import contextlib
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cardbox import HashingEmbedder
from conversing import DEAR, FIRST, ONLY_DEAR, READ_DEAR, THEN, conversing, readings
from serving_endpoint import model_at, scripted_endpoint
from shop import RIGHT, build, repairing
from sqlcrystal import Crystal
from sqlcrystal.interfaces.cli.loop import Loop
from sqlcrystal.models.scripted import ScriptedModel

ASKED = "How many hardware items are there?"
Say = Callable[[str], str]


@pytest.fixture
def crystal(tmp_path: Path) -> Iterator[Crystal]:
    place = build(tmp_path / "shop.sqlite")
    model = ScriptedModel(repairing)
    with Crystal.over(place, model=model, store=tmp_path / "team.db", embedder=HashingEmbedder()) as opened:
        yield opened


@pytest.fixture
def say(crystal: Crystal, capsys: pytest.CaptureFixture[str]) -> Say:
    loop = Loop(crystal)

    def take(line: str) -> str:
        loop.take(line)
        shown = capsys.readouterr()
        return shown.out + shown.err

    return take


def test_a_question_and_yes_make_a_card(say: Say, crystal: Crystal) -> None:
    assert RIGHT in say(ASKED)
    assert "confirmed" in say("/yes")
    assert [card.sql for card in crystal.cards()] == [RIGHT]


def test_the_users_sql_corrects_the_last_answer(say: Say, crystal: Crystal) -> None:
    say(ASKED)
    assert "corrected" in say("/sql SELECT count(*) FROM item")
    assert [card.sql for card in crystal.cards()] == ["SELECT count(*) FROM item"]


def test_after_a_note_that_asks_something_else_the_talk_goes_on_about_that(say: Say, crystal: Crystal) -> None:
    crystal.workspace.model._reply = conversing  # type: ignore[attr-defined]
    say(FIRST)
    assert f"read as: {READ_DEAR}" in say(f"/no {ONLY_DEAR}")
    assert f"banked as: {READ_DEAR}" in say(f"/sql {DEAR}")
    say(THEN)
    assert f"Question 1: {READ_DEAR}\nSQL 1: {DEAR}" in readings(crystal.workspace.model.prompts)[-1]  # type: ignore[attr-defined]
    assert {card.question.text: card.sql for card in crystal.cards()} == {READ_DEAR: DEAR}


@pytest.mark.parametrize("line", ["/yes", "/no", "/sql SELECT 1", "/trace", "/nonsense", "/db nowhere"])
def test_what_cannot_be_done_is_a_line_and_the_loop_goes_on(say: Say, line: str) -> None:
    assert say(line).count("\n") == 1
    assert RIGHT in say(ASKED)


def read_terminal(mother: int) -> bytes:
    """All that a program wrote, until it hung up."""
    shown = b""
    with contextlib.suppress(OSError):  # how Linux says that nobody holds the other end
        while block := os.read(mother, 4096):
            shown += block
    return shown


def test_sqlcrystal_alone_in_a_terminal_asks_and_remembers_its_lines(tmp_path: Path) -> None:
    build(tmp_path / "shop.sqlite")
    mother, child = pty.openpty()
    with scripted_endpoint(repairing) as server:
        settings = f'model = "{model_at(server)}"\n[databases.shop]\nurl = "shop.sqlite"\n'
        (tmp_path / "sqlcrystal.toml").write_text(settings)
        process = subprocess.Popen(
            [sys.executable, "-m", "sqlcrystal.interfaces.cli.app"],
            stdin=child,
            stdout=child,
            stderr=child,
            cwd=tmp_path,
            env={**os.environ, "SQLCRYSTAL_CACHE": str(tmp_path / "cache"), "TERM": "dumb"},
        )
        os.close(child)
        os.write(mother, f"{ASKED}\n/yes\n/quit\n".encode())
        shown = read_terminal(mother)
        assert process.wait(timeout=120) == 0, shown
    os.close(mother)
    assert RIGHT.encode() in shown
    assert b"confirmed: answer" in shown
    assert b"the model writes SQL" in shown
    assert ASKED in (tmp_path / "cache" / "history").read_text()


def test_it_names_its_own_words_and_no_command(say: Say) -> None:
    shown = say(ASKED) + say("/no it is about tools")
    assert "right: /yes   wrong: /no" in shown
    assert "sqlcrystal" not in shown


@pytest.mark.parametrize("word", ["help", "HELP", "?", "/help"])
def test_help_is_no_question(say: Say, crystal: Crystal, word: str) -> None:
    assert "/yes" in say(word)
    assert crystal.history() == []
