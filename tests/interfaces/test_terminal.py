"""Lists fit an 80-column terminal one line per row, and are whole when piped."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from cardbox import card
from sqlcrystal.bank import CardStore
from sqlcrystal.models.recorded import Recorded
from sqlcrystal.models.recording import Recording
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.types import Message, Sampling

ROOT = Path(__file__).resolve().parent.parent.parent
LONG = "Which of the many suppliers that deliver to the northern warehouses were late more than twice in any quarter?"
ENVIRONMENT = os.environ | {"COLUMNS": "80", "TERM": "dumb", "SQLCRYSTAL_NO_HUB": "1"}


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "sqlcrystal.interfaces.cli.app", *map(str, arguments)]


def in_terminal(*arguments: object) -> list[str]:
    """The lines a person sees on stdout in a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(command(*arguments), stdout=theirs, stderr=subprocess.PIPE, env=ENVIRONMENT) as process:
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 65_536):
                shown += piece
        except OSError:  # the terminal's other end was closed
            pass
        process.communicate()
    os.close(ours)
    assert process.returncode == 0
    return shown.decode().replace("\r", "").splitlines()


def piped(*arguments: object) -> list[str]:
    """The lines a script reads."""
    done = subprocess.run(command(*arguments), capture_output=True, text=True, check=True, env=ENVIRONMENT)
    return done.stdout.splitlines()


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    with CardStore(tmp_path / "store.db") as store:
        store.add(card("3f9a" + "0" * 60, text=LONG))
        store.add(card("3f9b" + "0" * 60, text=LONG + "\nAnd why?", database="warehouse-of-the-north"))
    return tmp_path / "store.db"


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "calls.sqlite"
    with Recording(path) as opened:
        model = Recorded(ScriptedModel(["SELECT 1"]), opened, mode="fill")
        model.chat([Message("user", "?")], sampling=Sampling())
    return path


def test_cards_are_one_line_each_in_a_terminal_and_whole_in_a_pipe(bank: Path) -> None:
    shown = in_terminal("cards", "list", "--store", bank)
    assert len(shown) == 3
    assert max(map(len, shown)) <= 80
    assert "shop-3f9a0" not in shown[1]
    rows = [line.split("\t") for line in piped("cards", "list", "--store", bank)]
    assert rows[1][0] == "shop-3f9a" + "0" * 60
    assert rows[2][-1] == LONG + " And why?"


def test_a_short_id_finds_its_card(bank: Path) -> None:
    name = in_terminal("cards", "list", "--store", bank)[1].split()[0]
    assert piped("cards", "show", name, "--store", bank)[0].startswith("shop-3f9a")


def test_a_recordings_stats_fit_a_terminal(recording: Path) -> None:
    shown = in_terminal("recording", "stats", recording)
    assert len(shown) == 2
    assert max(map(len, shown)) <= 80
    assert shown[1].split()[0] == "1"


def test_the_models_fit_a_terminal() -> None:
    shown = in_terminal("model", "list")
    assert len(shown) == 3
    assert max(map(len, shown)) <= 80
    assert piped("model", "list")[1].split("\t")[0] == "qwen2.5-coder-1.5b"


def test_a_plan_fits_a_terminal_with_the_arms_whole() -> None:
    shown = in_terminal("study", "plan", ROOT / "studies" / "quarry.toml")
    lines = [line for line in shown if line.endswith(("/transfer", "/collection"))]
    assert "none/transfer" in {line.split("  ")[-1].strip() for line in lines}
    assert max(map(len, lines)) <= 80
