"""Benchmarks are run by hand and seldom; each must at least load, with all that it takes from elsewhere."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOAD_EACH = """
import os, runpy, sys
usual = list(sys.path)
for path in sys.argv[1:]:
    sys.path[:] = [os.path.dirname(path), *usual]  # as for a script that is run
    runpy.run_path(path, run_name="only loaded")
    print(path)
"""


def test_every_benchmark_loads() -> None:
    found = [*(ROOT / "benchmarks").glob("*.py"), *(ROOT / "benchmarks").glob("*/__main__.py")]
    scripts = [str(path) for path in sorted(found)]
    command = [sys.executable, "-c", LOAD_EACH, *scripts]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert run.stdout.split() == scripts, run.stderr
