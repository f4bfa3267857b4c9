"""The tree of commands, of which only the called command's module is loaded."""

import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

from sqlcrystal.interfaces.cli.app import ALLOW_PRIVILEGED

MODULES = {
    "init": "serve",
    "ask": "ask",
    "confirm": "ask",
    "pick": "ask",
    "reject": "ask",
    "queue": "ask",
    "learn": "learn",
    "cards": "cards",
    "definitions": "definitions",
    "value": "value",
    "test": "value",
    "forget": "value",
    "model": "model",
    "serve": "serve",
    "token": "serve",
    "mcp": "serve",
    "study": "study",
    "score": "score",
    "compare": "compare",
    "power": "compare",
    "benchmark": "score",
    "recording": "model",
}
"""Commands and groups in the order that help lists them, each with the module that holds it."""
RESEARCH = ("study", "score", "compare", "power", "benchmark", "recording")
"""Those that a data team can do without."""


class LazyCommands(Mapping[str, Any]):
    """The commands by name; a command's module is imported when the command is looked up."""

    def __getitem__(self, name: str) -> Any:
        """Load a command."""
        holder = typer.Typer(rich_markup_mode=None)
        import_module(f"sqlcrystal.interfaces.cli.{MODULES[name]}").register(holder)
        return get_group(holder).commands[name]

    def __iter__(self) -> Iterator[str]:
        """Name every command without loading it."""
        return iter(MODULES)

    def __len__(self) -> int:
        """Count the commands."""
        return len(MODULES)


class LazyGroup(TyperGroup):
    """A group over `LazyCommands`."""

    def __init__(self, **settings: Any) -> None:
        """Take the settings of any group."""
        super().__init__(**{**settings, "commands": LazyCommands()})

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        """List what a data team uses first, and what is for researchers under that name."""
        longest = max(map(len, self.commands))
        helps = {
            name: command.get_short_help_str(formatter.width - longest - 6) for name, command in self.commands.items()
        }
        for title, researchers in (("Commands", False), ("For researchers", True)):
            with formatter.section(title):
                rows = [
                    (name.ljust(longest), said) for name, said in helps.items() if (name in RESEARCH) is researchers
                ]
                formatter.write_dl(rows)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        """Name the address of the documentation, where the project's metadata has one."""
        address = _documentation()
        if address:
            formatter.write(f"\nDocumentation: {address}\n")


def _documentation() -> str:
    """Read the address that `[project.urls]` gave the installed package; empty before there is one."""
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        named: list[str] = metadata("sqlcrystal").get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    addresses = dict(each.split(", ", 1) for each in named)
    return addresses.get("Documentation", "")


app = typer.Typer(
    name="sqlcrystal",
    cls=LazyGroup,
    help="Text-to-SQL that keeps what its repairs teach it, and measures what that is worth.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _show_version(asked: bool) -> None:
    if asked:
        from sqlcrystal.version import __version__

        print(f"sqlcrystal {__version__}")
        sys.exit(0)


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    allow_privileged: Annotated[
        bool,
        typer.Option(ALLOW_PRIVILEGED, help="Open servers with accounts that may do more than read, in any command."),
    ] = False,
) -> None:
    """Text-to-SQL that keeps what its repairs teach it, and measures what that is worth."""
