"""Options that the commands of the serving loop share."""

from typing import Annotated

import typer

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
Note = Annotated[str, typer.Option("--note", help="Why; kept with the verdict, and told to a repair.")]
AnswerId = Annotated[
    str, typer.Argument(metavar="ID", help="An answer's id or the start of one, a proposal's, or last.")
]
