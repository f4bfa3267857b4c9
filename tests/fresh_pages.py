"""Every command block of the pages on installs that pip fetches by their own lines: `make fresh`.

`make test` runs the same blocks on installs that are linked from what is there: it must not depend on a network, nor on
what came out yesterday. Here pip takes the newest of everything, as it does for a reader. Left out: weights (1.1 GB),
and the extra `batched`, whose PyTorch is gigabytes and which no page of a first visit asks for.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fresh_install import LINES, environment_of, named_extras
from serving_endpoint import model_at, scripted_endpoint
from shop import build
from test_command_blocks import RUN, blocks, orders, said

ROOT = Path(__file__).resolve().parents[1]
CELLS = """
import sys
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
for cell in sys.stdin.read().split("\\0"):
    shell.run_cell(cell).raise_error()
print(shell.user_ns["answer"].rows)
"""
"""A notebook's kernel runs its cells so."""


@pytest.mark.parametrize("page", [page for page in RUN if "pip install" in said(page)])
def test_the_install_lines_of_a_page_are_all_that_it_needs(page: str, tmp_path: Path) -> None:
    """Nothing is broken in what pip fetched, and the program is there with its data."""
    extras = named_extras(said(page))
    settings = environment_of(extras, tmp_path / "cache")
    assert LINES[extras]
    done = subprocess.run(
        ["bash", "-e", "-c", "python -m pip check && sqlcrystal --version && sqlcrystal benchmark list"],
        cwd=tmp_path,
        env=settings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "quarry" in done.stdout


def test_the_cells_of_the_notebook_run_in_ipython(tmp_path: Path) -> None:
    """The page takes a notebook for granted, so the test brings one."""
    loaded, cell = blocks("docs/cookbook/chat.md", "python")
    build(tmp_path / "shop.sqlite")
    settings = environment_of(named_extras("pip install 'sqlcrystal[server]'"), tmp_path / "cache")
    subprocess.run(["bash", "-e", "-c", "pip install --quiet ipython"], env=settings, check=True)
    with scripted_endpoint(orders) as server:
        (tmp_path / "sqlcrystal.toml").write_text(
            f'model = "{model_at(server)}"\nbudget = 0\n[databases.shop]\nurl = "shop.sqlite"\n'
        )
        cells = "\0".join([loaded, "%%ask\nHow many orders are there?", cell])
        done = subprocess.run(
            ["python", "-c", CELLS],
            input=cells,
            cwd=tmp_path,
            env={**settings, "IPYTHONDIR": str(tmp_path / "ipython")},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr


def main() -> int:
    """Run the tests of every block, each page on the install that its lines make."""
    here = str(Path(__file__).resolve().relative_to(ROOT))
    tests = dict.fromkeys(by for listed in RUN.values() for _, by in listed if not by.startswith(("not run: ", here)))
    places = [*tests, here]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-n",
        "0",
        "-s",
        "--timeout=3600",
        "--durations=0",
        *places,
        *sys.argv[1:],
    ]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, "SQLCRYSTAL_FRESH": "pip"}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
