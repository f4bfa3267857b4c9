"""Options that commands share, and the Crystal, files and model that they describe."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from sqlcrystal.errors import BankError, DataError, UserError

if TYPE_CHECKING:
    from sqlcrystal.serving import Crystal

LONGEST_INPUT = 2**21
"""Bytes of a question that are read from standard input; the longest that is answered is far shorter."""

Where = Annotated[
    str | None,
    typer.Option(
        "--store",
        envvar="SQLCRYSTAL_STORE",
        help="The store: a file, or postgresql://…; by default the one sqlcrystal.toml names, else sqlcrystal.db here.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Db = Annotated[
    str | None,
    typer.Option(
        "--db",
        help="The database: a SQLite file, a URL, or a name from sqlcrystal.toml; by default the only one known.",
    ),
]
OnlyDb = Annotated[str | None, typer.Option("--db", help="Only this database: its name, URL or file.")]
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
ApiKeyEnv = Annotated[
    str | None,
    typer.Option(
        "--api-key-env",
        metavar="NAME",
        help="The environment variable with the key of the model's endpoint.",
        show_default="SQLCRYSTAL_API_KEY",
    ),
]
By = Annotated[str, typer.Option("--by", help="Who asks or vouches.", show_default="the current user")]
Note = Annotated[str, typer.Option("--note", help="Why; kept with the verdict, and told to a repair.")]
AnswerId = Annotated[
    str, typer.Argument(metavar="ID", help="An answer's id or the start of one, a proposal's, or last.")
]


@contextmanager
def opened_crystal(
    store: str | None,
    *,
    db: str | None = None,
    name: str | None = None,
    model: str | None = None,
    api_key_env: str | None = None,
    replay: bool = False,
    existing: bool = False,
) -> "Iterator[tuple[Crystal, str | None]]":
    """Open the Crystal that the options describe, with the name of its database; a store's refusal is one line."""
    from sqlcrystal.serving.opening import open_crystal

    try:
        crystal, database = open_crystal(
            store=store, db=db, name=name, model=model, api_key_env=api_key_env, replay=replay, existing=existing
        )
        with crystal:
            yield crystal, database
    except BankError as error:
        raise UserError(str(error)) from error


MODULES_OF_SERVER = ("fastapi", "uvicorn", "jinja2", "prometheus_client", "multipart")


def need(extra: str, *modules: str) -> None:
    """End with the one line that says which extra brings the modules that are missing."""
    missing = [module for module in modules if find_spec(module) is None]
    if missing:
        print(f"sqlcrystal: needs {', '.join(missing)}; pip install 'sqlcrystal[{extra}]'", file=sys.stderr)
        raise typer.Exit(2)


def ready_model(spec: object) -> None:
    """Ask before pulling the weights of an embedded model that is not here yet; without a terminal, say how to."""
    from sqlcrystal.config import is_url

    if not isinstance(spec, str) or is_url(spec):
        return
    from sqlcrystal.models.catalogue import KNOWN_MODELS, weights_path

    model = KNOWN_MODELS.get(spec)
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
    """Give the question; `-` reads it from standard input."""
    if text != "-":
        return text
    return sys.stdin.buffer.read(LONGEST_INPUT).decode("utf-8", "replace")


@contextmanager
def writing(file: str) -> Iterator[BinaryIO]:
    """Open a file or standard output for bytes."""
    if file == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        with Path(file).open("wb") as out:
            yield out
    except OSError as error:
        raise DataError(f"{file}: cannot be written ({error.strerror})") from error


@contextmanager
def reading(file: str) -> Iterator[BinaryIO]:
    """Open a file or standard input for bytes."""
    if file == "-":
        yield sys.stdin.buffer
        return
    try:
        with Path(file).open("rb") as lines:
            yield lines
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error.strerror})") from error
