"""The architecture holds: imports point one way, and only admission can make what a writer accepts."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from sqlcrystal import types
from sqlcrystal.types import Admission, Admitted, Attempt, Call, Completion, Episode, Question, Sampling

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "sqlcrystal"
STAGES = {"solving", "acquisition", "admission", "writing", "consumption", "benchmarks"}
# Acquisition asks again and writing shows what was asked: both speak through solving's prompts.
ALLOWED_SIBLINGS = {("acquisition", "solving"), ("writing", "solving")}


def modules() -> list[tuple[str, ast.Module]]:
    return [
        (path.relative_to(SOURCE).as_posix(), ast.parse(path.read_text("utf-8")))
        for path in sorted(SOURCE.rglob("*.py"))
    ]


def imported(tree: ast.Module) -> set[str]:
    """Every module a module imports, wherever in it the import stands."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.update([node.module, *(f"{node.module}.{alias.name}" for alias in node.names)])
    return names


def test_imports_point_one_way() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stdout


def test_a_stage_imports_no_other_stage() -> None:
    crossings = {
        (stage, other)
        for name, tree in modules()
        for other in STAGES
        if (stage := name.partition("/")[0]) in STAGES and stage != other
        if any(module.startswith(f"sqlcrystal.{other}") for module in imported(tree))
    }
    assert crossings <= ALLOWED_SIBLINGS


def test_no_stage_can_reach_gold() -> None:
    holders = {
        name
        for name, tree in modules()
        if name.partition("/")[0] in STAGES - {"benchmarks"} | {"pipeline.py", "assembly.py"}
        if any(module.startswith(("sqlcrystal.benchmarks", "sqlcrystal.scoring")) for module in imported(tree))
    }
    assert holders == set()


def names_used(tree: ast.Module) -> set[str]:
    """Every identifier, attribute and imported name."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.alias):
            names.add(node.name)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.update({"ADMISSION_SEAL"} & set(node.value.split()))
    return names


def builds_admitted(tree: ast.Module) -> bool:
    """Whether a module calls Admitted, under that name or a new one."""
    aliases = {"Admitted"}
    for node in ast.walk(tree):
        if isinstance(node, ast.alias) and node.name == "Admitted" and node.asname:
            aliases.add(node.asname)
    called = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return any(
        (isinstance(callee, ast.Name) and callee.id in aliases)
        or (isinstance(callee, ast.Attribute) and callee.attr == "Admitted")
        for callee in called
    )


def test_only_admission_touches_the_seal() -> None:
    holders = {name for name, tree in modules() if "ADMISSION_SEAL" in names_used(tree)}
    assert holders == {"types.py", "admission/seal.py"}


def test_only_admission_builds_an_admitted() -> None:
    assert {name for name, tree in modules() if builds_admitted(tree)} == {"admission/seal.py"}


def test_an_admitted_without_the_seal_cannot_exist() -> None:
    call = Call(purpose="solve", messages=(), sampling=Sampling(), completion=Completion(text=""))
    question = Question(id="q", database="d", text="?")
    episode = Episode(attempt=Attempt(question=question, calls=(call,), sql=None), source="T3", sql="SELECT 1")
    admission = Admission(signal="forged", by="me", at="2026-01-01T00:00:00Z")
    for seal in (None, object(), "ADMISSION_SEAL"):
        with pytest.raises(TypeError, match="only admission"):
            Admitted(episode=episode, admission=admission, seal=seal)
    assert types.ADMISSION_SEAL is not None


SNIPPET = """\
from sqlcrystal.protocols import Verifier, Writer
from sqlcrystal.types import Admitted, Episode, Rejected, Written

def unchecked(writer: Writer, rejected: Rejected) -> Written:
    return writer.write(rejected)

def unverified(writer: Writer, episode: Episode) -> Written:
    return writer.write(episode)

def careless(writer: Writer, verifier: Verifier, episode: Episode) -> Written:
    return writer.write(verifier.verify(episode))

def proper(writer: Writer, verifier: Verifier, episode: Episode) -> Written | None:
    verdict = verifier.verify(episode)
    return writer.write(verdict) if isinstance(verdict, Admitted) else None
"""


def test_writing_what_was_rejected_is_a_type_error(tmp_path: Path) -> None:
    snippet = tmp_path / "snippet.py"
    snippet.write_text(SNIPPET)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", f"--cache-dir={tmp_path}", str(snippet)]
    environment = {"MYPYPATH": str(ROOT / "src"), "PATH": "/usr/bin:/bin"}
    result = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False, env=environment
    )
    complaints = [
        line.split(":") for line in result.stdout.splitlines() if line.startswith("snippet.py") or "snippet.py" in line
    ]
    assert [int(complaint[1]) for complaint in complaints] == [5, 8, 11]
    assert all('expected "Admitted"' in ":".join(complaint) for complaint in complaints)


def test_no_interface_reaches_past_the_door_into_the_store() -> None:
    reaching = [
        f"{name}:{node.lineno}"
        for name, tree in modules()
        if name.startswith("interfaces/")
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in {"store", "workspace", "bank"}
        if not (isinstance(node.value, ast.Name) and node.value.id == "sqlcrystal")
    ]
    assert reaching == []


def test_mcp_over_stdio_needs_no_web_framework() -> None:
    pytest.importorskip("mcp")
    script = (
        "import sys\n"
        "for name in ('fastapi', 'uvicorn', 'prometheus_client', 'jinja2'): sys.modules[name] = None\n"
        "import sqlcrystal.interfaces.mcp.tools"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
