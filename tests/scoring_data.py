"""A small benchmark on disk, in the user's own format, for tests of loading and scoring."""

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

from sqlcrystal.benchmarks.cases import Benchmark
from sqlcrystal.benchmarks.catalogue import load_benchmark

QUESTIONS = [
    {
        "id": "a",
        "question": "How many pets?",
        "sql": "SELECT count(*) FROM pet",
        "database": "zoo",
        "difficulty": "simple",
    },
    {"id": "b", "question": "Their names?", "sql": "SELECT name FROM pet", "database": "zoo", "difficulty": "simple"},
    {"id": "c", "question": "Oldest first?", "sql": "SELECT name FROM pet ORDER BY age DESC", "database": "zoo"},
    {"id": "d", "question": "Which shops?", "sql": "SELECT name, city FROM shop", "database": "mall"},
]
GOLDS = [str(question["sql"]) for question in QUESTIONS]


def make_databases(folder: Path) -> None:
    """Two SQLite files, one in a folder of its own and one flat."""
    (folder / "zoo").mkdir(parents=True, exist_ok=True)
    zoo = sqlite3.connect(folder / "zoo" / "zoo.sqlite")
    zoo.execute("CREATE TABLE pet (name TEXT, age INTEGER, weight REAL)")
    zoo.executemany("INSERT INTO pet VALUES (?, ?, ?)", [("Rex", 3, 1.5), ("Ada", 7, 2.0), ("Rex", 9, 0.1)])
    zoo.commit()
    zoo.close()
    mall = sqlite3.connect(folder / "mall.sqlite")
    mall.execute("CREATE TABLE shop (name TEXT, city TEXT)")
    mall.executemany("INSERT INTO shop VALUES (?, ?)", [("Aldi", "Ulm"), ("Lidl", "Bonn")])
    mall.commit()
    mall.close()


def make_own(folder: Path) -> Benchmark:
    """Write the questions and databases, and load them."""
    make_databases(folder)
    (folder / "questions.jsonl").write_text("".join(json.dumps(question) + "\n" for question in QUESTIONS))
    return load_benchmark("own", folder)


def run_cli(*arguments: object, cache: Path) -> subprocess.CompletedProcess[str]:
    """The real command line, in a process of its own, with a cache of its own."""
    environment = {**os.environ, "SQLCRYSTAL_CACHE": str(cache), "COLUMNS": "200"}
    command = [sys.executable, "-m", "sqlcrystal.interfaces.cli.app", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)
