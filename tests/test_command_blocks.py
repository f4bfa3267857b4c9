"""Every command block of README, guides, tutorials and cookbook is run on an install of exactly what its page names.

`RUN` is the list: each block by how it begins, with the test that runs it or the reason why none can. A block that is
not in the list fails. `make fresh` runs the same tests on installs that pip fetches by the pages' own lines.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import yaml

from cardbox import HashingEmbedder
from fresh_install import BY_PIP, environment_of, installed, named_extras
from interfaces.test_notebook import Shell
from scoring_data import make_databases
from serving.test_ask_tutorial import bash
from serving_endpoint import model_at, scripted_endpoint
from shop import OWN_TESTS, RIGHT, build, fenced
from sqlcrystal.config import DatabaseEntry, TeamFile, read_team
from sqlcrystal.interfaces.notebook import load_ipython_extension, unload_ipython_extension
from sqlcrystal.ledger.folder import write_results
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.serving import Crystal
from sqlcrystal.types import Message, Sampling
from synthetic_ledger import synthetic_ledger

ROOT = Path(__file__).resolve().parents[1]
INSTALL = "tests/fresh_pages.py::test_the_install_lines_of_a_page_are_all_that_it_needs"
ELSEWHERE = "not run: settings of another program, which is not on this machine"
ASK, LEARN, SCORE, DEPLOY = (
    f"{place}.py"
    for place in (
        "tests/serving/test_ask_tutorial",
        "tests/serving/test_learn_tutorial",
        "tests/interfaces/test_score_tutorial",
        "tests/service/test_deployment",
    )
)
HERE = "tests/test_command_blocks.py"
RUN = {
    "README.md": [
        ("make demo", f"{HERE}::test_make_demo_serves_the_story_from_a_clone"),
        ("$ sqlcrystal ask", "tests/test_readme.py::test_the_session_is_what_the_commands_print"),
        ("pip install", INSTALL),
        ("pip install", f"{HERE}::test_the_researchers_commands_run"),
    ],
    "docs/start.md": [
        ("git clone", f"{HERE}::test_make_demo_serves_the_story_from_a_clone"),
        ("pip install", f"{HERE}::test_the_start_asks_a_database_and_serves_it"),
        ("sqlcrystal token create", f"{HERE}::test_the_start_asks_a_database_and_serves_it"),
    ],
    "docs/measure.md": [
        ("[databases.shop]", f"{HERE}::test_the_settings_that_measure_are_read"),
        ("sqlcrystal test", f"{HERE}::test_own_tests_and_a_study_of_ones_own_run"),
        ("benchmark =", f"{HERE}::test_own_tests_and_a_study_of_ones_own_run"),
        ("pip install", f"{HERE}::test_own_tests_and_a_study_of_ones_own_run"),
    ],
    "docs/tutorial/ask.md": [
        ("pip install", INSTALL),
        *[(each, f"{ASK}::test_the_sqlite_part_runs_from_an_empty_folder") for each in ("python3",)],
        *[("sqlcrystal", f"{ASK}::test_the_sqlite_part_runs_from_an_empty_folder")] * 6,
        ("cat > tests.yaml", f"{ASK}::test_the_sqlite_part_runs_from_an_empty_folder"),
        ("pip install", INSTALL),
        ("python3", f"{ASK}::test_the_postgresql_part_runs_after_it_and_python_goes_on"),
        ("mkdir team", f"{ASK}::test_the_postgresql_part_runs_after_it_and_python_goes_on"),
        ("sqlcrystal ask", f"{ASK}::test_the_postgresql_part_runs_after_it_and_python_goes_on"),
        ("from sqlcrystal import", f"{ASK}::test_the_postgresql_part_runs_after_it_and_python_goes_on"),
    ],
    "docs/tutorial/learn.md": [
        ("pip install", INSTALL),
        *[("sqlcrystal", f"{LEARN}::test_the_tutorial_runs_from_an_empty_folder")] * 3,
        ("sqlcrystal token create", f"{HERE}::test_what_was_learned_is_served"),
        ("answer=", f"{LEARN}::test_the_tutorial_runs_from_an_empty_folder"),
        ("mkdir -p dbt", f"{LEARN}::test_the_tutorial_runs_from_an_empty_folder"),
        ("sqlcrystal cards list", f"{LEARN}::test_the_tutorial_runs_from_an_empty_folder"),
    ],
    "docs/tutorial/score.md": [
        ("pip install", INSTALL),
        *[
            (each, f"{SCORE}::test_the_first_section_of_the_tutorial_runs_and_ends_at_50_percent")
            for each in ("mkdir demo", "sqlcrystal benchmark check", "sqlcrystal score")
        ],
        ("sqlcrystal score predict_dev.json", f"{HERE}::test_published_benchmarks_are_scored_in_their_own_layout"),
        ("sqlcrystal score gpt.json", f"{HERE}::test_published_benchmarks_are_scored_in_their_own_layout"),
    ],
    "docs/cookbook/chat.md": [
        ("sqlcrystal token create", f"{HERE}::test_a_token_for_a_chat_is_made_and_its_settings_are_valid"),
        ("OPENAI_API_BASE_URL", ELSEWHERE),
        ("endpoints:", f"{HERE}::test_a_token_for_a_chat_is_made_and_its_settings_are_valid"),
        ("%load_ext", f"{HERE}::test_the_cells_of_the_notebook_run"),
        ("%%ask", f"{HERE}::test_the_cells_of_the_notebook_run"),
    ],
    "docs/cookbook/deploy.md": [
        ("STORE_PASSWORD", f"{DEPLOY}::test_the_commands_of_the_page_run_as_written_on_what_it_installs"),
        ("sqlite3", f"{DEPLOY}::test_the_commands_of_the_page_run_as_written_on_what_it_installs"),
    ],
    "docs/cookbook/internet-scale.md": [
        ("pip install", INSTALL),
        ("import duckdb", f"{HERE}::test_the_inference_at_any_size_runs_as_it_is_written"),
    ],
}
"""Of deploy.md, `docker compose up` wants a container engine: its files are checked instead. Its pg_dump runs in
`test_a_dump_of_a_postgresql_store_restores_what_was_confirmed`, with the server's own programs."""


def blocks(page: str, *languages: str) -> list[str]:
    """Every block of a page that is no mere output, or those in some languages."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.findall(r"^```(\w+)\n(.*?)^```", text, re.S | re.M)
    return [block for language, block in found if language in languages or (not languages and language != "text")]


def said(page: str) -> str:
    """The words of a page, of which only the install lines count."""
    return (ROOT / page).read_text(encoding="utf-8")


def without_fetching(script: str) -> str:
    """A script without what needs a network: 1.1 GB of weights, and installs unless pip is to make them."""
    fetching = r"sqlcrystal model pull" if BY_PIP else r"pip install|sqlcrystal model pull"
    return "".join(line for line in script.splitlines(keepends=True) if not re.match(fetching, line))


@contextmanager
def running(command: str, folder: Path, settings: dict[str, str]) -> Iterator[str]:
    """A command that serves until it is told to end; gives where it listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = f"exec {command} --port {port}" if command.startswith("sqlcrystal") else command
    with subprocess.Popen(
        ["bash", "-c", command],
        cwd=folder,
        env={**settings, "PORT": str(port)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            for _ in range(18_000 if BY_PIP else 600):
                assert process.poll() is None, process.stdout.read() if process.stdout else ""
                if is_ready(f"http://127.0.0.1:{port}"):
                    break
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}"
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
            process.communicate(timeout=60)


def is_ready(url: str) -> bool:
    """Tell whether a server takes questions."""
    try:
        return httpx.get(f"{url}/ready", timeout=5).status_code == 200
    except httpx.HTTPError:
        return False


def test_every_block_is_in_the_list_with_the_test_that_runs_it() -> None:
    pages = [
        str(path.relative_to(ROOT)) for each in ("tutorial", "cookbook") for path in (ROOT / "docs" / each).iterdir()
    ]
    assert {*RUN} == {"README.md", "docs/start.md", "docs/measure.md", *pages}
    for page, listed in RUN.items():
        found = [block.splitlines()[0] for block in blocks(page)]
        assert len(found) == len(listed), (page, found)
        assert [(one, other) for one, (other, _) in zip(found, listed, strict=True) if not one.startswith(other)] == []
        for _, by in listed:
            place, _, test = by.partition("::")
            assert by.startswith("not run: ") or f"def {test}(" in (ROOT / place).read_text(encoding="utf-8"), by


# ── README and start ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.skipif(shutil.which("make") is None, reason="LOUD: no make on this machine")
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="LOUD: no repository to clone")
def test_make_demo_serves_the_story_from_a_clone(tmp_path: Path) -> None:
    """The install that `make` would fetch is done when it begins: the lock's extras, linked from this machine.

    Not where pip may fetch them: there `make` does it all.
    """
    clone, demo = blocks("docs/start.md")[0].splitlines()
    assert blocks("README.md")[0].splitlines()[0].split("#")[0].strip() == demo
    environment = environment_of((), tmp_path / "cache")
    subprocess.run(["bash", "-e", "-c", clone.replace("REPOSITORY", str(ROOT))], cwd=tmp_path, check=True)
    if not BY_PIP:
        ready = installed(frozenset({"local", "report", "server", "mcp"}))
        (tmp_path / "sqlcrystal" / ".venv").symlink_to(ready)
        (ready / ".installed").touch()
    with running(demo, tmp_path / "sqlcrystal", environment) as url:
        assert "Log in" in httpx.get(f"{url}/login").text


def test_the_researchers_commands_run(tmp_path: Path) -> None:
    """With two databases of the study: the whole of it is replayed by tests/study/test_quarry_study.py."""
    script = without_fetching(blocks("README.md")[3]).replace("quarry", "smoke")
    pairs = [f"zoo{number % 4},q{number},{number % 2},{(number + number // 3) % 2}" for number in range(40)]
    (tmp_path / "pairs.csv").write_text("\n".join(["database,question,before,after", *pairs]))
    shown = bash(script, tmp_path, said("README.md"))
    assert (tmp_path / "runs" / "smoke" / "report" / "index.html").is_file()
    assert shown.rstrip()


def orders(messages: Sequence[Message], _: Sampling) -> str:
    """A model that counts what it is asked about."""
    return fenced("SELECT COUNT(*) FROM item" if "order" in messages[-1].content else RIGHT)


def test_the_start_asks_a_database_and_serves_it(tmp_path: Path) -> None:
    _, ask, page = blocks("docs/start.md")
    token, serve = page.splitlines()
    build(tmp_path / "shop.sqlite")
    with scripted_endpoint(orders) as server:
        model = {"SQLCRYSTAL_MODEL": model_at(server), "USER": "ada"}
        shown = bash(without_fetching(ask), tmp_path, said("docs/start.md"), **model)
        assert "(1 row)" in shown
        secret = bash(token, tmp_path, said("docs/start.md"), **model)
        settings = environment_of(named_extras(said("docs/start.md")), tmp_path / "cache", **model)
        with running(serve, tmp_path, settings) as url:
            headers = {"Authorization": f"Bearer {re.findall(r'sqlc_[-_A-Za-z0-9]+', secret)[0]}"}
            assert "Ask shop" in httpx.get(url, headers=headers).text
            asked = {"question": "How many orders came in this month?"}
            assert httpx.post(f"{url}/api/ask", json=asked, headers=headers, timeout=60).json()["rows"] == [[3]]


# ── measure ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_settings_that_measure_are_read(tmp_path: Path) -> None:
    settings, _ = blocks("docs/measure.md", "toml")
    for name, text in (
        ("as-written.toml", settings),
        ("all.toml", settings.replace("# both", "both").replace("# audit", "audit")),
    ):
        (tmp_path / name).write_text(text)
        entry = read_team(tmp_path / name).databases["shop"]
        assert (entry.hold_out, entry.both_arms) == (0.2, name == "all.toml")


def test_own_tests_and_a_study_of_ones_own_run(tmp_path: Path) -> None:
    tests, study = blocks("docs/measure.md", "console")
    _, file = blocks("docs/measure.md", "toml")
    entries = {"shop": DatabaseEntry(url=str(build(tmp_path / "shop.sqlite")))}
    (tmp_path / "tests.yaml").write_text(OWN_TESTS)
    team = TeamFile(databases=entries, store=str(tmp_path / "sqlcrystal.db"), budget=0)
    with Crystal(team, model=ScriptedModel(orders), embedder=HashingEmbedder()) as crystal:
        for shelf in "ABCDEFGH":
            crystal.confirm(crystal.ask(f"How many hardware items are there in shelf {shelf}?"), anyway=True)
    with scripted_endpoint(orders) as server:
        model = {"SQLCRYSTAL_MODEL": model_at(server)}
        (tmp_path / "ours.toml").write_text(file.replace("qwen2.5-coder-1.5b", model_at(server)))
        script = f"{tests.rstrip()} || test $? = 1\n{without_fetching(study)}"
        bash(script, tmp_path, said("docs/measure.md"), **model)
    assert (tmp_path / "report.xml").is_file()
    assert (tmp_path / "runs" / "ours" / "report" / "index.html").is_file()


# ── tutorials ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_was_learned_is_served(tmp_path: Path) -> None:
    page = "docs/tutorial/learn.md"
    ((token, serve),) = [block.splitlines() for block in blocks(page) if "sqlcrystal serve" in block]
    build(tmp_path / "shop.sqlite")
    with scripted_endpoint(orders) as server:
        model = {"SQLCRYSTAL_MODEL": model_at(server), "USER": "ada"}
        bash('sqlcrystal ask "How many orders?" --db shop.sqlite --store shop.db', tmp_path, said(page), **model)
        settings = environment_of(named_extras(said(page)), tmp_path / "cache", **model)
        secret = re.findall(r"sqlc_[-_A-Za-z0-9]+", bash(token, tmp_path, said(page), **model))[0]
        with running(serve, tmp_path, settings) as url:
            headers = {"Authorization": f"Bearer {secret}"}
            assert "From the query log" in httpx.get(f"{url}/queue/log", headers=headers).text


def test_published_benchmarks_are_scored_in_their_own_layout(tmp_path: Path) -> None:
    page = "docs/tutorial/score.md"
    one, several = [block for block in blocks(page) if "--benchmark spider" in block]
    bird, spider = tmp_path / "dev_20240627", tmp_path / "spider"
    make_databases(bird / "dev_databases")
    make_databases(spider / "database")
    asked = {"question_id": 0, "db_id": "zoo", "question": "How many pets?", "evidence": "", "difficulty": "simple"}
    (bird / "dev.json").write_text(json.dumps([{**asked, "SQL": "SELECT count(*) FROM pet"}]))
    (spider / "dev.json").write_text(json.dumps([{"db_id": "zoo", "question": "How many?", "query": "SELECT 3"}]))
    for name in ("predict_dev", "gpt", "qwen", "llama"):
        (tmp_path / f"{name}.json").write_text(json.dumps({"0": "SELECT count(*) FROM pet\t----- bird -----\tzoo"}))
    (tmp_path / "predict.sql").write_text("SELECT count(*) FROM pet\tzoo\n")
    shown = bash(one + several, tmp_path, said(page))
    assert [each["accuracy"] for each in json.loads(shown[shown.index("{") :])["files"]] == [100.0] * 3


# ── cookbook ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_token_for_a_chat_is_made_and_its_settings_are_valid(tmp_path: Path) -> None:
    page = "docs/cookbook/chat.md"
    build(tmp_path / "shop.sqlite")
    (tmp_path / "sqlcrystal.toml").write_text('[databases.shop]\nurl = "shop.sqlite"\n')
    assert "sqlc_" in bash(blocks(page)[0], tmp_path, "pip install 'sqlcrystal[server]'")
    (custom,) = yaml.safe_load(blocks(page, "yaml")[0])["endpoints"]["custom"]
    assert custom["models"]["default"] == ["shop"]


def test_the_cells_of_the_notebook_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell that keeps its magics by name takes the place of IPython, which is not on every machine."""
    loaded, cell = blocks("docs/cookbook/chat.md", "python")
    assert loaded == f"%load_ext {load_ipython_extension.__module__}\n"
    build(tmp_path / "shop.sqlite")
    monkeypatch.chdir(tmp_path)
    with scripted_endpoint(orders) as server:
        (tmp_path / "sqlcrystal.toml").write_text(
            f'model = "{model_at(server)}"\nbudget = 0\n[databases.shop]\nurl = "shop.sqlite"\n'
        )
        shell = Shell()
        load_ipython_extension(shell)
        shell.magics["ask"]("", "How many orders are there?")
        line, _, question = cell.partition("\n")
        shell.magics["ask"](line.removeprefix("%%ask "), question)
        unload_ipython_extension(shell)
    assert [*shell.names] == ["answer"]


def test_the_inference_at_any_size_runs_as_it_is_written(tmp_path: Path) -> None:
    page = "docs/cookbook/internet-scale.md"
    (program,) = blocks(page, "python")
    (tmp_path / "runs" / "one").mkdir(parents=True)
    write_results(synthetic_ledger(only=("none", "W0")), tmp_path / "runs" / "one")
    shown = bash(f"python3 - <<'END'\n{program}END\n", tmp_path, said(page))
    assert "n_databases=10" in shown
