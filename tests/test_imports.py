"""The contracts of pyproject.toml hold, and are worth something: twelve bad edits are refused, each by name."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
WAYS = {
    "a database driver in the study": ("study/run.py", "import duckdb"),
    "scoring asks a model": ("scoring/verdicts.py", "from sqlcrystal.models.opening import open_model"),
    "the bank asks a model": ("bank/frozen.py", "from sqlcrystal.models.opening import open_model"),
    "measurement reads gold": ("measurement/cost.py", "from sqlcrystal.benchmarks.cases import Case"),
    "a room for everything": ("helpers/__init__.py", "VALUE = 1"),
    "a stage reads gold": ("writing/card.py", "from sqlcrystal.benchmarks.cases import Case"),
    "a stage knows another": ("consumption/dense.py", "from sqlcrystal.acquisition.repair import Repair"),
    "the pipeline knows the study": ("pipeline.py", "from sqlcrystal.ledger.records import Outcome"),
    "a unit knows who performs it": ("study/units.py", "from sqlcrystal.study.run import Runner"),
    "an engine knows what it carries": ("engines/worker_pool.py", "from sqlcrystal.study.units import Unit"),
    "the ledger reads gold": ("ledger/records.py", "from sqlcrystal.benchmarks.cases import Case"),
    "a web framework in the command line": ("interfaces/cli/app.py", "import fastapi"),
}


def linted(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"]
    return subprocess.run(
        [*command, "--no-cache"],
        cwd=folder,
        env={"PYTHONPATH": str(folder / "src"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(
        ROOT / "src" / "sqlcrystal", tmp_path / "src" / "sqlcrystal", ignore=shutil.ignore_patterns("*.pyc")
    )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_contracts_hold() -> None:
    checked = linted(ROOT)
    assert checked.returncode == 0, checked.stdout[-2000:]


@pytest.mark.parametrize("way", WAYS)
def test_a_bad_edit_is_refused(way: str, copy: Path) -> None:
    place, line = WAYS[way]
    module = copy / "src" / "sqlcrystal" / place
    module.parent.mkdir(exist_ok=True)
    text = module.read_text(encoding="utf-8") if module.exists() else '"""New."""\n'
    module.write_text(f"{text}\n{line}\n", encoding="utf-8")
    checked = linted(copy)
    assert checked.returncode == 1, checked.stdout[-500:] + checked.stderr[-2000:]
    assert "Broken contracts" in checked.stdout or "exhaustive" in checked.stdout
