"""A command loads what it needs; `score` reads plain arguments without the command-line library, as it would."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import scoring_data
from cli_reference import command_tree
from shop import build
from sqlcrystal.interfaces.cli import score
from sqlcrystal.interfaces.cli.scoring import FLAGS, LISTS, VALUES, quick_score, score_files

DEFAULTS = dict(score_files.__kwdefaults__ or {})
WORDS = ["a.json", "b.jsonl", "--benchmark", "own", "--data", "folder", "--rule", "bag", "--databases", "x=y", "--jobs"]
WORDS += ["2", "0", "--timeout", "1.5", "soon", "--json", "--skip-missing", "--out", "o.csv", "--database", "zoo"]
WORDS += ["--help", "--jsn", "--rule=bag", "--"]


def as_the_library_reads(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any] | None:
    """What the command would call `score_files` with, or None when it would not."""
    calls: list[dict[str, Any]] = []
    monkeypatch.setattr(
        score, "score_files", lambda predictions, **rest: calls.append({"predictions": predictions, **rest})
    )
    app = typer.Typer()
    app.command()(lambda: None)
    score.register(app)
    CliRunner().invoke(app, ["score", *arguments])
    return calls[0] if calls else None


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=st.lists(st.sampled_from(WORDS), max_size=8), required=st.booleans())
def test_what_is_read_quickly_is_what_the_library_reads(
    words: list[str], required: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = [*words, "p.json", "--benchmark", "own"] if required else words
    quick = quick_score(arguments)
    if quick is not None:
        assert {**DEFAULTS, **quick} == as_the_library_reads(arguments, monkeypatch)


def test_every_option_of_score_can_be_read_quickly() -> None:
    options = {option for parameter in command_tree().commands["score"].params for option in parameter.opts}
    assert {option for option in options if option.startswith("-")} - {"--help"} == {*VALUES, *LISTS, *FLAGS}


def modules_after(arguments: list[str], tmp_path: Path) -> set[str]:
    """The modules that a command has loaded when it ends."""
    program = (
        "import json, sys\nfrom sqlcrystal.interfaces.cli.app import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\nprint(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd=tmp_path,
    )
    return set(json.loads(done.stderr.splitlines()[-1]))


def test_score_loads_no_numpy_parser_or_command_line_library(tmp_path: Path) -> None:
    scoring_data.make_own(tmp_path / "own")
    (tmp_path / "p.jsonl").write_text("".join(json.dumps({"sql": sql}) + "\n" for sql in scoring_data.GOLDS))
    arguments = ["score", "p.jsonl", "--benchmark", "own", "--data", "own", "--jobs", "1", "--json"]
    assert (
        modules_after(arguments, tmp_path) & {"numpy", "scipy", "sqlglot", "typer", "rich", "pydantic", "httpx"}
        == set()
    )


def test_a_command_loads_only_its_own_module(tmp_path: Path) -> None:
    commands = {name for name in modules_after(["confirm", "--help"], tmp_path) if "interfaces.cli." in name}
    assert {name.rpartition(".")[2] for name in commands} == {"app", "tree", "ask", "options", "output"}


def test_a_first_question_waits_for_nothing_that_only_its_answer_needs(tmp_path: Path) -> None:
    """Until the language model is asked, neither the store's library, vectors nor the stages of repair are loaded."""
    build(tmp_path / "shop.sqlite")
    slow = ("sqlalchemy", "numpy", "sqlcrystal.assembly", "rich", "wordllama", "sqlglot")
    script = (
        "import sys\n"
        "from sqlcrystal.models.openai import Endpoint\n"
        f"Endpoint.post = lambda *_: sys.exit(','.join(name for name in {slow} if name in sys.modules))\n"
        "sys.argv = ['sqlcrystal', 'ask', 'How many?', '--db', 'shop.sqlite', '--model', 'http://127.0.0.1:9/v1#m']\n"
        "from sqlcrystal.interfaces.cli.app import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    # The profile of the columns stands in the prompt, and its looks go through the guard, which needs the parser.
    assert done.stderr.strip() == "sqlglot"


def test_help_loads_no_numpy(tmp_path: Path) -> None:
    assert "numpy" not in modules_after(["--help"], tmp_path)
