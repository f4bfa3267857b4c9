"""`sqlcrystal serve` and `sqlcrystal mcp`: the service, and the tools for an assistant on this machine."""

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sqlcrystal.config import TEAM_FILE
from sqlcrystal.errors import ConfigError
from sqlcrystal.interfaces.cli.store_access import current_user

if TYPE_CHECKING:
    from sqlcrystal.serving import Crystal

Settings = Annotated[Path, typer.Option("--config", help="The settings of the team.")]
Database = Annotated[str | None, typer.Option("--db", help="Without settings: a database by URL or path.")]
Model = Annotated[str | None, typer.Option("--model", help="Without settings: a model by name or URL.")]
StorePlace = Annotated[
    str | None, typer.Option("--store", envvar="SQLCRYSTAL_STORE", help="Without settings: a file, or postgresql://…")
]
AllowWrite = Annotated[bool, typer.Option("--allow-write", help="Let MCP clients confirm and reject answers.")]


def register(app: typer.Typer) -> None:
    """Attach the commands."""
    app.command()(serve)
    app.command()(mcp)


def serve(
    *,
    demo: Annotated[bool, typer.Option("--demo", help="Serve Quarry's databases with recorded replies.")] = False,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one.", min=0, max=65535)] = 8321,
    config: Settings = Path(TEAM_FILE),
    db: Database = None,
    model: Model = None,
    store: StorePlace = None,
    studies: Annotated[Path, typer.Option(help="The folder with study runs whose reports the page shows.")] = Path(
        "runs"
    ),
    at_once: Annotated[int, typer.Option(help="Questions worked on at a time, per database.", min=1)] = 4,
    waiting: Annotated[int, typer.Option(help="Questions that may wait, per database.", min=0)] = 50,
    answer_seconds: Annotated[float, typer.Option(help="An answer that takes longer is given up.", min=1)] = 120.0,
    requests_per_minute: Annotated[int, typer.Option(help="Of one token.", min=1)] = 600,
    body_bytes: Annotated[int, typer.Option(help="The largest request body.", min=1024)] = 256 * 1024,
    stop_seconds: Annotated[float, typer.Option(help="How long stopping waits for answers.", min=0)] = 20.0,
    behind_tls: Annotated[
        bool, typer.Option("--behind-tls", help="A proxy ends TLS: cookies for HTTPS only, its headers are believed.")
    ] = False,
    allow_write: AllowWrite = False,
    issue_for_others: Annotated[
        bool, typer.Option("--issue-for-others", help="Let managers issue tokens in the name of people already known.")
    ] = False,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
) -> None:
    """Serve the web page, HTTP, MCP and an OpenAI-compatible door.

    Until SIGTERM or Ctrl+C; MCP is at /mcp, the door at /v1.
    """
    _need("server", "fastapi", "uvicorn", "jinja2", "prometheus_client", "multipart")
    if log_level not in ("debug", "info", "warning", "error"):
        raise ConfigError.unknown("--log-level", log_level, ("debug", "info", "warning", "error"))
    from sqlcrystal.interfaces.server.running import run
    from sqlcrystal.interfaces.server.settings import ServerSettings

    settings = ServerSettings(
        at_once=at_once,
        waiting=waiting,
        answer_seconds=answer_seconds,
        requests_per_minute=requests_per_minute,
        body_bytes=body_bytes,
        stop_seconds=stop_seconds,
        secure_cookie=behind_tls,
        allow_write=allow_write,
        issue_for_others=issue_for_others,
        studies=str(studies),
        demo=demo,
    )
    if demo:
        from sqlcrystal.interfaces.server.demo import demo_crystal

        with demo_crystal(store) as crystal:
            run(crystal, settings, host=host, port=port, log_level=log_level)
        return
    with _crystal(config, db, model, store) as crystal:
        run(crystal, settings, host=host, port=port, log_level=log_level)


def mcp(
    *,
    config: Settings = Path(TEAM_FILE),
    db: Database = None,
    model: Model = None,
    store: StorePlace = None,
    allow_write: AllowWrite = False,
) -> None:
    """Serve MCP tools on standard input and output. For who is at the keyboard; `serve` has them at /mcp as well."""
    _need("mcp", "mcp")
    _need("server", "fastapi", "prometheus_client")
    from sqlcrystal.interfaces.mcp.over_stdio import serve_stdio

    with _crystal(config, db, model, store) as crystal:
        serve_stdio(crystal, person=current_user(), allow_write=allow_write)


def _crystal(config: Path, db: str | None, model: str | None, store: str | None) -> "Crystal":
    from sqlcrystal.serving import Crystal

    if config.is_file() or (config != Path(TEAM_FILE)):
        if db or model or store:
            raise ConfigError(f"--db, --model, --store: {config} says these; leave them out or move it away")
        return Crystal.open(config)
    if db is None:
        raise ConfigError(f"serve: no {TEAM_FILE} here; give --db FILE or URL, or run: sqlcrystal init")
    return Crystal.over(db, model=model, store=store or "sqlcrystal.db")


def _need(extra: str, *modules: str) -> None:
    missing = [module for module in modules if find_spec(module) is None]
    if missing:
        print(f"sqlcrystal: needs {', '.join(missing)}; pip install 'sqlcrystal[{extra}]'", file=sys.stderr)
        raise typer.Exit(2)
