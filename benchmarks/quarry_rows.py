"""The rows of every Quarry generator, as one digest: the same under every version of Python.

    python benchmarks/quarry_rows.py

It needs the standard library alone, not even sqlite3, so that it also runs where nothing can be installed: see
`quarry_rows.mjs`, which runs it under the Pythons of Pyodide.
"""

import hashlib
import platform
import runpy
from pathlib import Path
from random import Random

QUARRY = Path(__file__).resolve().parents[1] / "src" / "sqlcrystal" / "benchmarks" / "quarry"


def digests(folder: Path) -> dict[str, str]:
    """For each database the digest of its schema and of all that its generator writes, in order."""
    by_name = {}
    for questions in sorted(folder.glob("*.toml")):
        name = questions.stem
        module = runpy.run_path(str(folder / f"{name}.py"))
        total = hashlib.sha256(module["SCHEMA"].encode())
        for table, rows in module["rows"](Random(f"quarry/{name}")):
            total.update(repr((table, rows)).encode())
        by_name[name] = total.hexdigest()
    return by_name


if __name__ == "__main__":
    every = digests(QUARRY)
    whole = hashlib.sha256(repr(sorted(every.items())).encode()).hexdigest()
    print(f"Python {platform.python_version()}: {len(every)} databases, {whole}")
