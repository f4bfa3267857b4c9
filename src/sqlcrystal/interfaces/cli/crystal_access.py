"""What the commands of the serving loop share: their options, and the Crystal that these describe."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from sqlcrystal.errors import BankError, UserError

if TYPE_CHECKING:
    from sqlcrystal.serving.crystal import Crystal

Db = Annotated[
    str | None,
    typer.Option(
        "--db",
        help="The database: a SQLite file, a URL, or a name from sqlcrystal.toml; by default the only one known.",
    ),
]
Name = Annotated[str | None, typer.Option("--name", help="What to call the database in the store, if not as it is.")]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        envvar="SQLCRYSTAL_MODEL",
        help="A name from `model list`, FILE.gguf or http://HOST/v1#NAME.",
        show_default="sqlcrystal.toml's, else the one asked last, else qwen2.5-coder-1.5b",
    ),
]
By = Annotated[str, typer.Option("--by", help="Who asks or vouches.", show_default="the current user")]
Privileged = Annotated[
    bool, typer.Option("--allow-privileged", help="Accept a server account that may do more than read.")
]
Note = Annotated[str, typer.Option("--note", help="Why; kept with the verdict, and told to a repair.")]
AnswerId = Annotated[str, typer.Argument(metavar="ID", help="An answer's id or the start of one, or a proposal's.")]


@contextmanager
def opened_crystal(
    store: str | None,
    *,
    db: str | None = None,
    name: str | None = None,
    model: str | None = None,
    api_key_env: str | None = None,
    allow_privileged: bool = False,
    replay: bool = False,
) -> "Iterator[tuple[Crystal, str | None]]":
    """The Crystal over sqlcrystal.toml, or without one over what the options and the store say; and the database."""
    from sqlcrystal.config import with_key
    from sqlcrystal.serving.opening import open_crystal

    try:
        crystal, database = open_crystal(
            store=store, db=db, name=name, model=model, allow_privileged=allow_privileged, replay=replay
        )
        if api_key_env:
            crystal.desk.ask_with(with_key(crystal.desk.team.model, api_key_env))
        with crystal:
            yield crystal, database
    except BankError as error:
        raise UserError(str(error)) from error


def ready_model(spec: object) -> None:
    """Ask before pulling the weights of an embedded model that is not here yet; without a terminal, say how to."""
    from sqlcrystal.models.catalogue import KNOWN_MODELS, weights_path

    model = KNOWN_MODELS.get(spec) if isinstance(spec, str) else None
    if model is None or weights_path(model.name).is_file():
        return
    size = f"{model.size / 1e9:.1f} GB"
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UserError(
            f"model {model.name}: its weights ({size}) are not here yet; run: sqlcrystal model pull {model.name}, "
            f"or give --model http://HOST/v1#NAME"
        )
    typer.confirm(f"{model.name}: its weights are not here yet. Pull {size} ({model.licence})?", abort=True, err=True)
    from sqlcrystal.interfaces.cli.model import pull

    pull(model.name)


def read_question(text: str) -> str:
    """The question; `-` reads it from standard input."""
    if text != "-":
        return text
    return sys.stdin.buffer.read(2**21).decode("utf-8", "replace")
