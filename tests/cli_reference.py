"""Writes docs/reference/cli.md from the commands' own --help; tests/test_docs.py checks that it is current."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "cli.md"

HEAD = """# Command line

Written from the commands' own `--help` by `python -m tests.cli_reference`; the tests fail when it is out of date.
Every command: `--json` prints one JSON document and nothing else on stdout; progress goes to stderr; a mistake is
one line naming the key and the choices with exit code 2.
"""


def command_tree() -> Any:
    """The whole command line as a tree of commands."""
    from sqlcrystal.interfaces.cli.tree import app

    return typer.main.get_command(app)


def walk(command: Any, path: tuple[str, ...] = ("sqlcrystal",)) -> Iterator[tuple[str, Any]]:
    """Every command with its full name, parents before children."""
    yield " ".join(path), command
    for name, child in getattr(command, "commands", {}).items():
        yield from walk(child, (*path, name))


def render() -> str:
    """The reference page."""
    sections = []
    for name, command in walk(command_tree()):
        context = command.context_class(command, info_name=name, terminal_width=100, max_content_width=100)
        text = "\n".join(line.rstrip() for line in command.get_help(context).strip().splitlines())
        sections.append(f"## {name}\n\n```text\n{text}\n```\n")
    return HEAD + "\n" + "\n".join(sections)


if __name__ == "__main__":
    REFERENCE.write_text(render(), encoding="utf-8")
