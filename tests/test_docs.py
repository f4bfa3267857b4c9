"""The documentation tells the truth: commands exist, links lead somewhere, the reference is current."""

import re
import shlex
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import pytest

from cli_reference import REFERENCE, command_tree, render, walk
from sqlcrystal.interfaces.cli.tree import RESEARCH

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
COMMANDS = dict(walk(command_tree()))


def shown_commands(page: Path) -> Iterator[str]:
    """Every `sqlcrystal …` line inside a shell block of a page, continuation lines joined."""
    for block in re.findall(r"```(?:sh|bash|console)\n(.*?)```", page.read_text(encoding="utf-8"), re.S):
        for line in block.replace("\\\n", " ").splitlines():
            command = re.match(r"(?:\$ )?(?:\.venv/bin/)?sqlcrystal (.*)", line.strip())
            if command:
                yield command[1]


def test_the_command_reference_is_current() -> None:
    assert REFERENCE.read_text(encoding="utf-8") == render(), "run: python -m tests.cli_reference"


@pytest.mark.parametrize("group", [name for name, command in COMMANDS.items() if hasattr(command, "commands")])
def test_every_summary_of_a_command_is_whole_on_a_terminal_of_80_columns(group: str) -> None:
    command = COMMANDS[group]
    text = command.get_help(command.context_class(command, info_name=group, terminal_width=78))
    assert not [line for line in text.split("Commands:")[1].splitlines() if line.endswith("...")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_to_a_file(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    broken = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert not broken


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_shown_in_a_page_exists_with_its_options(page: Path) -> None:
    for shown in shown_commands(page):
        words = list(takewhile(lambda word: word not in ("|", ">"), shlex.split(shown, comments=True)))
        command = COMMANDS["sqlcrystal"]
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]
        assert not hasattr(command, "commands") or words in (["--help"], []), f"no such command: {shown}"
        options = {option for parameter in command.params for option in parameter.opts} | {"--help"}
        unknown = [word for word in words if re.match(r"--[a-z]", word) and word.split("=")[0] not in options]
        assert not unknown, f"{shown}: unknown {unknown}"


def test_every_command_has_a_sentence_of_help() -> None:
    assert not [name for name, command in COMMANDS.items() if not (command.help or "").strip()]


def test_help_keeps_what_is_for_researchers_apart() -> None:
    command = COMMANDS["sqlcrystal"]
    text = command.get_help(command.context_class(command, info_name="sqlcrystal", terminal_width=78))
    for_teams, _, for_researchers = text.partition("For researchers:")
    assert [line.split()[0] for line in for_researchers.strip().splitlines()] == list(RESEARCH)
    assert not [line for line in for_teams.splitlines() if line.split()[:1] and line.split()[0] in RESEARCH]
