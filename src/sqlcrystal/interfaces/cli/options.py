"""Options that several commands share."""

from typing import Annotated

import typer

ApiKeyEnv = Annotated[
    str | None,
    typer.Option(
        "--api-key-env",
        metavar="NAME",
        help="The environment variable with the key of the model's endpoint.",
        show_default="SQLCRYSTAL_API_KEY",
    ),
]
