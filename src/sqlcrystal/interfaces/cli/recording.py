"""`sqlcrystal recording`: look into, join, shrink, ship and check recordings."""

import random
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from sqlcrystal.errors import ConfigError, DataError
from sqlcrystal.interfaces.cli.options import ApiKeyEnv, Json
from sqlcrystal.interfaces.cli.output import print_json, print_lines, print_table

recording_app = typer.Typer(help="Recorded model calls: stats, merge, prune, export, verify.")

Source = Annotated[Path, typer.Argument(help="A recording: a working .sqlite or a shipped .jsonl.xz.")]


def register(app: typer.Typer) -> None:
    """Attach the group."""
    app.add_typer(recording_app, name="recording", no_args_is_help=True)


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
