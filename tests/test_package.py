"""The package as somebody installs it: public names, types, one version, extras with code, studies in the wheel."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

import sqlcrystal

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = {name: needs for name, needs in PROJECT["optional-dependencies"].items() if name != "dev"}
PROGRAM = """
from pathlib import Path

from sqlcrystal import Failure, Question, Rows, load_benchmark, open_database, read_study, score_predictions

study = read_study(Path("quarry"))
questions: list[Question] = [case.question for case in load_benchmark(study.asked.name).cases]
result = open_database("some.sqlite").execute("SELECT 1")
if isinstance(result, Failure):
    text: str = result.message
else:
    rows: Rows = result
accuracies: list[float] = [one.report.accuracy for one in score_predictions(load_benchmark("quarry"), {})]
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the wheel installs."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    [wheel] = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def text_of(name: str) -> str:
    """Read a file of the repository."""
    return (ROOT / name).read_text(encoding="utf-8")


def installed(site: Path) -> dict[str, str]:
    """An environment in which the wheel's modules are found before the checkout's."""
    return {**os.environ, "PYTHONPATH": str(site), "COLUMNS": "120"}


@pytest.mark.parametrize("name", sqlcrystal.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(sqlcrystal, name) is not None


def test_type_checkers_see_the_names_that_programs_get() -> None:
    tree = ast.parse(Path(sqlcrystal.__file__).read_text(encoding="utf-8"))
    seen = {alias.asname for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen - {None} == set(sqlcrystal.__all__)


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        sqlcrystal.nonsense  # noqa: B018


def test_importing_the_package_loads_nothing_heavy() -> None:
    program = "import sys, sqlcrystal; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert not {"numpy", "sqlglot", "httpx", "typer", "msgspec"} & set(done.stdout.split())


def test_the_command_tells_the_one_version(site: Path) -> None:
    command = [sys.executable, "-m", "sqlcrystal.interfaces.cli.app", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == f"sqlcrystal {sqlcrystal.__version__}\n"
    metadata = next(site.glob("*.dist-info/METADATA")).read_text(encoding="utf-8")
    assert f"\nVersion: {sqlcrystal.__version__}\n" in metadata


def test_help_names_the_address_of_the_documentation_that_a_release_writes(site: Path, tmp_path: Path) -> None:
    for name in ("pyproject.toml", "README.md", "LICENSE", "src", "studies"):
        place = tmp_path / name
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, place)
    steps = yaml.safe_load(text_of(".github/workflows/release.yml"))["jobs"]["build"]["steps"]
    (written,) = [step["run"] for step in steps if "[project.urls\\]" in step.get("run", "")]
    ours = {"GITHUB_SERVER_URL": "https://host.example", "GITHUB_REPOSITORY": "we/sqlcrystal", "GITHUB_REF_NAME": "v9"}
    for command in (["bash", "-e", "-c", written], [sys.executable, "-m", "hatchling", "build", "-t", "wheel"]):
        subprocess.run(command, cwd=tmp_path, env={**os.environ, **ours}, check=True, capture_output=True, timeout=120)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "released")
    address = "Documentation: https://host.example/we/sqlcrystal/blob/v9/docs/index.md"
    assert address in help_of(tmp_path / "released")
    assert "Documentation:" not in help_of(site)  # before there is an address, none is told


def help_of(site: Path) -> str:
    """Run `sqlcrystal --help` of one install."""
    command = [sys.executable, "-m", "sqlcrystal", "--help"]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=True, env=installed(site), cwd=site
    ).stdout


def test_the_changelog_and_the_citation_name_the_version() -> None:
    released = re.findall(r"^## \[(\d[^\]]*)\] - \d{4}-\d\d-\d\d$", text_of("CHANGELOG.md"), re.MULTILINE)
    cited = re.findall(r"^version: (.+)$", text_of("CITATION.cff"), re.MULTILINE)
    assert [released[0], *cited] == [sqlcrystal.__version__] * 2


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_has_code_that_loads_what_it_brings(extra: str) -> None:
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    names = [re.split(r"[^\w.-]", requirement)[0] for requirement in EXTRAS[extra]]
    brought = [name.replace("-", joint) for name in names for joint in ("_", r"\.")]
    loads = rf"^\s*(?:import|from) ({'|'.join(brought)})\b|[\"']({'|'.join(brought)})[\"']"
    assert re.search(loads, source, re.MULTILINE), f"nothing loads any of {brought}"


@pytest.mark.parametrize("extra", ["local", "report", "server", "mcp"])
def test_the_lock_behind_make_study_and_make_demo_pins_what_the_extra_needs(extra: str) -> None:
    pinned = re.findall(r"^([\w.-]+)==", (ROOT / "requirements.lock").read_text(encoding="utf-8"), re.MULTILINE)
    needed = [re.split(r"[^\w.-]", requirement)[0] for requirement in EXTRAS[extra]]
    assert {*needed} - {"sqlcrystal"} <= {*pinned}


def test_the_wheel_runs_a_bundled_study_in_an_empty_folder(site: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sqlcrystal.interfaces.cli.app", "study", "run", "quarry"]
    done = subprocess.run(
        [*command, "--set", "seeds=[42]", "--set", "arms=['none']"],
        cwd=tmp_path,
        env={**installed(site), "SQLCRYSTAL_CACHE": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "replaying what is recorded: qwen2.5-coder-1.5b is not here" in done.stderr
    assert (tmp_path / "runs" / "quarry" / "ledger.json").is_file()


def test_an_unknown_study_is_one_line_with_the_bundled_ones(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sqlcrystal.interfaces.cli.app", "study", "run", "quary"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert re.search(r"study quary: no such file, and no bundled study; choose from .*quarry", done.stderr)


def test_a_program_that_uses_the_wheel_type_checks(site: Path, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "program.py"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**installed(site), "MYPYPATH": str(site)},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout
