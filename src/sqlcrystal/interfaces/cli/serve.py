"""`sqlcrystal init|serve|mcp|token`: a team's settings, the service, tools for an assistant, and access tokens."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from sqlcrystal.config import TEAM_FILE
from sqlcrystal.errors import ConfigError, UserError
from sqlcrystal.escaping import visible
from sqlcrystal.interfaces.cli.options import MODULES_OF_SERVER, Json, Model, Where, need, opened_crystal
from sqlcrystal.interfaces.cli.output import print_json, print_lines

token_app = typer.Typer(help="Access tokens of the service: make, list and revoke them.")

Settings = Annotated[Path, typer.Option("--config", help="The settings of the team.")]
Database = Annotated[
    str | None,
    typer.Option("--db", help="Without settings: a database by URL or path; by default those asked before."),
]
StorePlace = Annotated[
    str | None, typer.Option("--store", envvar="SQLCRYSTAL_STORE", help="Without settings: a file, or postgresql://…")
]
AllowWrite = Annotated[bool, typer.Option("--allow-write", help="Let MCP clients confirm and reject answers.")]


def register(app: typer.Typer) -> None:
    """Attach the commands and the group."""
    app.command()(init)
    app.command()(serve)
    app.command()(mcp)
    app.add_typer(token_app, name="token", no_args_is_help=True)


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
    concurrency: Annotated[int, typer.Option(help="Questions worked on at a time, per database.", min=1)] = 4,
    at_once: Annotated[int | None, typer.Option(hidden=True, help="The old name of --concurrency.", min=1)] = None,
    queue_size: Annotated[int, typer.Option(help="Questions that may wait, per database.", min=0)] = 50,
    waiting: Annotated[int | None, typer.Option(hidden=True, help="The old name of --queue-size.", min=0)] = None,
    answer_seconds: Annotated[float, typer.Option(help="An answer that takes longer is given up.", min=1)] = 120.0,
    requests_per_minute: Annotated[int, typer.Option(help="Of one token.", min=1)] = 600,
    body_bytes: Annotated[int, typer.Option(help="The largest request body.", min=1024)] = 256 * 1024,
    request_seconds: Annotated[
        float, typer.Option(help="How long a connection may take to send a whole request.", min=1)
    ] = 20.0,
    idle_connections: Annotated[
        int, typer.Option(help="Connections without a whole request that may be open at a time.", min=1)
    ] = 500,
    stop_seconds: Annotated[float, typer.Option(help="How long stopping waits for answers.", min=0)] = 20.0,
    store_seconds: Annotated[
        float, typer.Option(help="How long starting waits for a store whose server is away.", min=0)
    ] = 60.0,
    behind_tls: Annotated[
        bool, typer.Option("--behind-tls", help="A proxy ends TLS: cookies for HTTPS only, its headers are believed.")
    ] = False,
    allow_write: AllowWrite = False,
    issue_for_others: Annotated[
        bool, typer.Option("--issue-for-others", help="Let managers issue tokens in the name of people already known.")
    ] = False,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
) -> None:
    """Serve the web page, HTTP, MCP and an OpenAI-compatible API.

    Until SIGTERM or Ctrl+C; MCP is at /mcp, the OpenAI-compatible API at /v1.
    """
    need("server", *MODULES_OF_SERVER)
    if log_level not in ("debug", "info", "warning", "error"):
        raise ConfigError.unknown("--log-level", log_level, ("debug", "info", "warning", "error"))
    from sqlcrystal.interfaces.server.running import run
    from sqlcrystal.interfaces.server.settings import ServerSettings

    settings = ServerSettings(
        concurrency=concurrency if at_once is None else at_once,
        queue_size=queue_size if waiting is None else waiting,
        answer_seconds=answer_seconds,
        requests_per_minute=requests_per_minute,
        body_bytes=body_bytes,
        request_seconds=request_seconds,
        idle_connections=idle_connections,
        stop_seconds=stop_seconds,
        secure_cookie=behind_tls,
        allow_write=allow_write,
        issue_for_others=issue_for_others,
        studies=str(studies),
        demo=demo,
    )
    if demo:
        from sqlcrystal.serving.demo import demo_crystal

        with demo_crystal(store) as crystal:
            run(crystal, settings, host=host, port=port, log_level=log_level)
        return
    from sqlcrystal.serving.opening import StorePatience, open_service

    patience = StorePatience(store_seconds, lambda line: typer.echo(f"sqlcrystal: {line}", err=True))
    with open_service(config, db=db, model=model, store=store, patience=patience) as crystal:
        run(crystal, settings, host=host, port=port, log_level=log_level)


def mcp(
    *,
    config: Settings = Path(TEAM_FILE),
    db: Database = None,
    model: Model = None,
    store: StorePlace = None,
    allow_write: AllowWrite = False,
) -> None:
    """Serve MCP tools on standard input and output. For the person at the keyboard; `serve` has them at /mcp."""
    need("mcp", "mcp")
    from sqlcrystal.interfaces.mcp.tools import serve_stdio
    from sqlcrystal.serving.opening import open_service

    with open_service(config, db=db, model=model, store=store) as crystal:
        serve_stdio(crystal, allow_write=allow_write)


# ── access tokens ────────────────────────────────────────────────────────────────────────────────────────────────────


@token_app.command()
def create(
    person: Annotated[str, typer.Argument(help="Who will hold it; their verdicts are kept under this name.")],
    *,
    scope: Annotated[
        list[str] | None, typer.Option("--scope", help="ask, judge or manage; may be given again. Default: ask, judge.")
    ] = None,
    db: Annotated[
        list[str] | None, typer.Option("--db", help="A database by its name; may be given again. Default: every one.")
    ] = None,
    days: Annotated[float | None, typer.Option("--days", help="How many days it stands. Default: without end.")] = None,
    store: Where = None,
    json: Json = False,
) -> None:
    """Make a token and print it, this once. The store keeps its digest only."""
    from sqlcrystal.bank import Scope

    for name in scope or []:
        if name not in list(Scope):
            raise ConfigError.unknown("--scope", name, Scope)
    scopes = [Scope(name) for name in scope or ("ask", "judge")]
    with opened_crystal(store) as (crystal, _):
        issued = crystal.issue_token(person, db, scopes, days=days)
    if json:
        print_json(issued)
    else:
        print(issued.token)


@token_app.command("list")
def list_tokens(store: Where = None, json: Json = False) -> None:
    """List every token ever made, without the token."""
    with opened_crystal(store, existing=True) as (crystal, _):
        grants = crystal.tokens()
    if json:
        from sqlcrystal.serving.documents import TokenDocument

        print_json([TokenDocument.of(grant) for grant in grants])
        return
    rows = [
        (
            grant.id,
            grant.state,
            grant.person,
            grant.made_at,
            grant.ends_at or "never",
            " ".join(f"{database}:{scope}" for database, scope in sorted(grant.scopes)),
        )
        for grant in grants
    ]
    print_lines(["id", "state", "person", "made", "ends", "may"], rows)


@token_app.command()
def revoke(
    token_id: Annotated[str, typer.Argument(help="The id that `token list` shows.")],
    store: Where = None,
    json: Json = False,
) -> None:
    """End a token at once, in every process."""
    with opened_crystal(store, existing=True) as (crystal, _):
        crystal.end_token(token_id)
    if json:
        print_json({"revoked": token_id})
    else:
        print(f"revoked {token_id}")


def init(
    *,
    db: Annotated[
        list[str] | None, typer.Option("--db", help="A database as NAME=URL, URL or file; may repeat.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model", envvar="SQLCRYSTAL_MODEL", help="A name from `model list`, FILE.gguf or http://HOST/v1#NAME."
        ),
    ] = None,
    store: Annotated[str | None, typer.Option("--store", help="A file, or postgresql://…")] = None,
    person: Annotated[
        list[str] | None, typer.Option("--person", help="Who may vouch for an answer; may repeat; anybody without.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the file, and write it although something cannot be reached.")
    ] = False,
    json: Json = False,
) -> None:
    """Write sqlcrystal.toml and try every connection. Asks for what is not given."""
    from sqlcrystal.config import TEAM_FILE
    from sqlcrystal.databases import accepts_privileged
    from sqlcrystal.serving.opening import Choices, named_databases, settings_text, trouble, write_settings

    here = Path.cwd()
    if (here / TEAM_FILE).exists() and not force:
        raise UserError(f"{TEAM_FILE}: is there already; --force replaces it")
    asks = sys.stdin.isatty() and not json
    choices = Choices(
        databases=named_databases(db or _prompt_for_databases(asks)),
        model=model or _prompt_for("model (a name, FILE.gguf or http://HOST/v1#NAME)", "qwen2.5-coder-1.5b", asks),
        store=store or _prompt_for("store (a file or postgresql://…)", "sqlcrystal.db", asks),
        people=tuple(
            person or _prompt_for("people who may vouch (names, or nothing for anybody)", "", asks and not db).split()
        ),
        allow_privileged=accepts_privileged(),
    )
    text = settings_text(choices)
    problems = list(trouble(choices, folder=here))
    for problem in problems:
        print(f"sqlcrystal: {visible(problem)}", file=sys.stderr)
    if problems and not force and not (asks and typer.confirm("Write it all the same?", err=True)):
        raise typer.Exit(1)
    written = write_settings(text, folder=here, replace=force)
    if json:
        print_json({"file": str(written), "databases": list(choices.databases), "problems": problems})
    else:
        print(f'{written.name}: {", ".join(choices.databases)}; next: sqlcrystal ask "…"')
        _tell_secrets(text)


def _tell_secrets(text: str) -> None:
    import re

    for variable in dict.fromkeys(re.findall(r"\$\{(\w+)\}", text)):
        print(f"set {variable} in the environment before you ask; the file does not hold it")


def _prompt_for_databases(asks: bool) -> list[str]:
    if not asks:
        raise UserError("--db: name at least one database as NAME=URL, URL or file")
    databases: list[str] = []
    while answer := _prompt_for("another database" if databases else "database (NAME=URL, URL or file)", "", True):
        databases.append(answer)
    if not databases:
        raise UserError("--db: name at least one database as NAME=URL, URL or file")
    return databases


def _prompt_for(question: str, default: str, asks: bool) -> str:
    if not asks:
        return default
    return str(typer.prompt(question, default=default, show_default=bool(default), err=True)).strip()
