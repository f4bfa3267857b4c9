"""`sqlcrystal init`: asks, writes sqlcrystal.toml, and tries every connection."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from sqlcrystal.errors import UserError
from sqlcrystal.escaping import visible
from sqlcrystal.interfaces.cli.options import Json
from sqlcrystal.interfaces.cli.output import print_json


def register(app: typer.Typer) -> None:
    """Attach the command."""
    app.command()(init)


def init(
    *,
    db: Annotated[
        list[str] | None, typer.Option("--db", help="A database as NAME=URL, URL or file; may repeat.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model", envvar="SQLCRYSTAL_MODEL", help="A name from `model list`, FILE.gguf or http://HOST/v1#NAME."
        ),
    ] = None,
    store: Annotated[str | None, typer.Option("--store", help="A file, or postgresql://…")] = None,
    person: Annotated[
        list[str] | None, typer.Option("--person", help="Who may vouch for an answer; may repeat; anybody without.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the file, and write it although something cannot be reached.")
    ] = False,
    json: Json = False,
) -> None:
    """Write sqlcrystal.toml and try every connection. Asks for what is not given."""
    from sqlcrystal.config import TEAM_FILE
    from sqlcrystal.databases import accepts_privileged
    from sqlcrystal.serving.opening import Choices, named_databases, settings_text, trouble, write_settings

    here = Path.cwd()
    if (here / TEAM_FILE).exists() and not force:
        raise UserError(f"{TEAM_FILE}: is there already; --force replaces it")
    asks = sys.stdin.isatty() and not json
    choices = Choices(
        databases=named_databases(db or _prompt_for_databases(asks)),
        model=model or _prompt_for("model (a name, FILE.gguf or http://HOST/v1#NAME)", "qwen2.5-coder-1.5b", asks),
        store=store or _prompt_for("store (a file or postgresql://…)", "sqlcrystal.db", asks),
        people=tuple(
            person or _prompt_for("people who may vouch (names, or nothing for anybody)", "", asks and not db).split()
        ),
        allow_privileged=accepts_privileged(),
    )
    text = settings_text(choices)
    problems = list(trouble(choices, folder=here))
    for problem in problems:
        print(f"sqlcrystal: {visible(problem)}", file=sys.stderr)
    if problems and not force and not (asks and typer.confirm("Write it all the same?", err=True)):
        raise typer.Exit(1)
    written = write_settings(text, folder=here, replace=force)
    if json:
        print_json({"file": str(written), "databases": list(choices.databases), "problems": problems})
    else:
        print(f'{written.name}: {", ".join(choices.databases)}; next: sqlcrystal ask "…"')
        _tell_secrets(text)


def _tell_secrets(text: str) -> None:
    import re

    for variable in dict.fromkeys(re.findall(r"\$\{(\w+)\}", text)):
        print(f"set {variable} in the environment before you ask; the file does not hold it")


def _prompt_for_databases(asks: bool) -> list[str]:
    if not asks:
        raise UserError("--db: name at least one database as NAME=URL, URL or file")
    databases: list[str] = []
    while answer := _prompt_for("another database" if databases else "database (NAME=URL, URL or file)", "", True):
        databases.append(answer)
    if not databases:
        raise UserError("--db: name at least one database as NAME=URL, URL or file")
    return databases


def _prompt_for(question: str, default: str, asks: bool) -> str:
    if not asks:
        return default
    return str(typer.prompt(question, default=default, show_default=bool(default), err=True)).strip()
