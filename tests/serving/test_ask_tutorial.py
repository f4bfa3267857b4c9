"""The tutorial of the serving loop runs as it is written, on an install of what it says: shell in bash, Python too."""

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from fresh_install import BY_PIP, environment_of, named_extras
from servers import new_postgres_database, running_postgres
from serving_endpoint import model_at, scripted_endpoint
from shop import PROFILE, fenced
from sqlcrystal.types import Message, Sampling

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tutorial" / "ask.md"
RIGHT = "SELECT COUNT(*) FROM item WHERE kind = 'HW'"


def learner(messages: Sequence[Message], _: Sampling) -> str:
    """A model that learns how hardware is spelt from a card, a comment or a probe; the profile is lost on it."""
    text = PROFILE.sub("", messages[-1].content)
    question = text.rpartition("[Question]")[2]
    if "most expensive" in question:
        return fenced("SELECT kind FROM item ORDER BY price DESC LIMIT 1")
    spelt = "HW" if "HW" in text else "hardware"
    more = " AND price > 100" if "100" in question else ""
    return fenced(f"SELECT COUNT(*) FROM item WHERE kind = '{spelt}'{more}")


def blocks(section: str, language: str) -> str:
    """The blocks of one section of the page, in order."""
    page = PAGE.read_text(encoding="utf-8")
    part = page.partition(f"## {section}")[2].partition("\n## ")[0]
    return "\n".join(re.findall(rf"```{language}\n(.*?)```", part, re.S))


def before(section: str) -> str:
    """The page up to a section: what was installed by then."""
    return PAGE.read_text(encoding="utf-8").partition(f"## {section}")[0]


def bash(script: str, folder: Path, *said: str, **more: str) -> str:
    """Run a script where only what some parts of the page install is there."""
    done = subprocess.run(
        ["bash", "-e"],
        input=script,
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment_of(named_extras(*said), folder / "cache", **more),
        timeout=3_000 if BY_PIP else 280,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_sqlite_part_runs_from_an_empty_folder(tmp_path: Path) -> None:
    with scripted_endpoint(learner) as server:
        script = blocks("SQLite, without any settings", "sh")
        shown = bash(script, tmp_path, before("PostgreSQL"), SQLCRYSTAL_MODEL=model_at(server))
    assert "first attempt: SELECT COUNT(*) FROM item WHERE kind = 'hardware'" in shown
    assert re.search(r"card \w{16}  0\.\d\d  user \S+  How many hardware items are there\?", shown)
    assert f"{RIGHT} AND price > 100" in shown
    assert "Tea\n(1 row)\ncorrected: answer" in shown
    assert "replayed, no model call" in shown


@pytest.mark.timeout(600)
@pytest.mark.parametrize("store", ["SQLite", "PostgreSQL"])
def test_the_postgresql_part_runs_after_it_and_python_goes_on(tmp_path: Path, store: str) -> None:
    """As it is written, and with a store that several machines can share."""
    with running_postgres() as server, scripted_endpoint(learner) as model:
        owner = new_postgres_database(server, "shop")
        reader = "postgresql://reader:secret@/shop?" + owner.partition("?")[2]
        (tmp_path / "tests.yaml").write_text(
            f"- name: hardware\n  question: How many hardware items are there?\n  sql: {RIGHT}\n"
        )
        settings = {"SHOP_OWNER": owner, "SHOP_URL": reader, "SQLCRYSTAL_MODEL": model_at(model)}
        python = f"\npython3 - <<'END'\n{blocks('From Python', 'python')}END\n"
        script = blocks("PostgreSQL, with settings for a team", "sh") + python
        if store == "PostgreSQL":
            settings["STORE_URL"] = new_postgres_database(server, "team")
            script = script.replace("sqlcrystal init ", 'sqlcrystal init --store "$STORE_URL" ')
        shown = bash(script, tmp_path, before("From Python"), **settings)
    assert (tmp_path / "team" / "sqlcrystal.db").exists() == (store == "SQLite")
    assert "${SHOP_PASSWORD}" in shown
    assert "secret" not in (tmp_path / "team" / "sqlcrystal.toml").read_text()
    assert "corrected: answer" in shown
    assert f"{RIGHT} ((2,),)" in shown
