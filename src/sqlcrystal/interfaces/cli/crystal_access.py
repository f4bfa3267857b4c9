"""What the commands of the serving loop share: the Crystal that their options describe, and a model that is ready."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlcrystal.errors import BankError, UserError

if TYPE_CHECKING:
    from sqlcrystal.serving.crystal import Crystal


@contextmanager
def opened_crystal(
    store: str | None,
    *,
    db: str | None = None,
    name: str | None = None,
    model: str | None = None,
    api_key_env: str | None = None,
    replay: bool = False,
) -> "Iterator[tuple[Crystal, str | None]]":
    """The Crystal over sqlcrystal.toml, or without one over what the options and the store say; and the database."""
    from sqlcrystal.serving.opening import open_crystal

    try:
        crystal, database = open_crystal(store=store, db=db, name=name, model=model, replay=replay)
        if api_key_env:
            from sqlcrystal.config import with_key

            crystal.workspace.ask_with(with_key(crystal.workspace.team.model, api_key_env))
        with crystal:
            yield crystal, database
    except BankError as error:
        raise UserError(str(error)) from error


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
    import typer

    typer.confirm(f"{model.name}: its weights are not here yet. Pull {size} ({model.licence})?", abort=True, err=True)
    from sqlcrystal.interfaces.cli.model import pull

    pull(model.name)


def read_question(text: str) -> str:
    """The question; `-` reads it from standard input."""
    if text != "-":
        return text
    return sys.stdin.buffer.read(2**21).decode("utf-8", "replace")
