"""The notebook magic: a cell is a question, and the next may go on from it.

IPython hands itself to an extension; where it is not installed a shell that keeps its magics by name takes its place.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conversing import FIRST, ONLY_DEAR, READ, READ_DEAR, THEN, conversing
from serving_endpoint import model_at, scripted_endpoint
from shop import RIGHT, build
from sqlcrystal.errors import UserError
from sqlcrystal.interfaces.notebook import load_ipython_extension, unload_ipython_extension

KINDS = {"ask": "line_cell", "pick": "line", "right": "line", "wrong": "line"}


class Shell:
    """The three calls of IPython's shell that an extension makes."""

    def __init__(self) -> None:
        self.magics: dict[str, Callable[..., Any]] = {}
        self.kinds: dict[str, str] = {}
        self.names: dict[str, Any] = {}

    def register_magic_function(self, function: Callable[..., Any], magic_kind: str, magic_name: str) -> None:
        """Keep a magic."""
        self.magics[magic_name], self.kinds[magic_name] = function, magic_kind

    def push(self, variables: dict[str, Any]) -> None:
        """Set variables of the notebook."""
        self.names |= variables


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    build(tmp_path / "shop.sqlite")
    monkeypatch.chdir(tmp_path)
    with scripted_endpoint(conversing) as server:
        settings = f'model = "{model_at(server)}"\nbudget = 0\n[databases.shop]\nurl = "shop.sqlite"\n'
        (tmp_path / "sqlcrystal.toml").write_text(settings)
        opened = Shell()
        load_ipython_extension(opened)
        yield opened
        unload_ipython_extension(opened)


def test_a_cell_is_a_question_and_the_next_goes_on_from_it(shell: Shell) -> None:
    assert shell.kinds == KINDS
    first = shell.magics["ask"]("", FIRST + "\n")
    then = shell.magics["ask"]("--follow last --into answer", THEN)
    assert (first.sql, then.question) == (RIGHT, READ)
    assert shell.names == {"answer": then}
    assert READ in then._repr_html_()
    assert THEN in then._repr_html_()
    assert shell.magics["ask"](FIRST).question == FIRST


def test_right_and_wrong_judge_the_last_answer(shell: Shell) -> None:
    answer = shell.magics["ask"]("", FIRST)
    assert shell.magics["right"]("").id == answer.id
    rejection = shell.magics["wrong"](ONLY_DEAR)
    assert rejection.proposal.question == READ_DEAR
    assert shell.magics["right"](rejection.proposal.id).question == READ_DEAR


@pytest.mark.parametrize("line", ["--follow", "--colour red", "'open"])
def test_a_mistake_in_the_line_is_told_with_its_options(shell: Shell, line: str) -> None:
    with pytest.raises(UserError, match="%%ask \\[--db"):
        shell.magics["ask"](line, FIRST)
