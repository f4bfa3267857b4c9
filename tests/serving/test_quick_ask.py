"""`ask` reads plain arguments without the command-line library; both readers must understand the same."""

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from shop import build
from sqlcrystal.interfaces.cli import ask
from sqlcrystal.interfaces.cli.answering import answer_question
from sqlcrystal.interfaces.cli.quick import ASK_FLAGS, ASK_VALUES, quick_ask

DEFAULTS = dict(answer_question.__kwdefaults__ or {})
WORDS = [*ASK_VALUES, *ASK_FLAGS, "How many?", "shop.sqlite", "-", "--rows", "5", "--help", "--db=x", "--bank", "--"]


def as_the_library_reads(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any] | None:
    """What the command would call `answer_question` with, or None when it would not."""
    calls: list[dict[str, Any]] = []
    monkeypatch.setattr(ask, "answer_question", lambda question, **rest: calls.append({"question": question, **rest}))
    app = typer.Typer()
    ask.register(app)
    CliRunner().invoke(app, ["ask", *arguments])
    return calls[0] if calls else None


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(arguments=st.lists(st.sampled_from(WORDS), min_size=1, max_size=6))
def test_what_is_read_without_the_library_is_what_the_library_reads(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = quick_ask(arguments)
    if quick is not None:
        assert {**DEFAULTS, **quick} == as_the_library_reads(arguments, monkeypatch)


def test_every_quick_argument_is_one_of_the_command() -> None:
    known = set(inspect.signature(answer_question).parameters)
    assert {*ASK_VALUES.values(), *(name for name, _ in ASK_FLAGS.values())} <= known


def test_a_first_question_waits_for_nothing_that_only_its_answer_needs(tmp_path: Path) -> None:
    """Until the language model is asked, neither the store's library nor vectors, nor the SQL parser, is loaded."""
    build(tmp_path / "shop.sqlite")
    slow = ("sqlalchemy", "numpy", "sqlglot", "typer", "wordllama")
    script = (
        "import sys\n"
        "from sqlcrystal.models.endpoint import Endpoint\n"
        f"Endpoint.post = lambda *_: sys.exit(','.join(name for name in {slow} if name in sys.modules))\n"
        "sys.argv = ['sqlcrystal', 'ask', 'How many?', '--db', 'shop.sqlite', '--model', 'http://127.0.0.1:9/v1#m']\n"
        "from sqlcrystal.interfaces.cli.app import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""
