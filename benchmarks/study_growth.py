"""How the time and the memory of a whole study grow with its questions and its arms, over a hundredfold range.

    python benchmarks/study_growth.py [--questions 10000] [--arms 100] [--out FOLDER]

Collected, banked, retrieved, answered, scored and written by `study run` itself; only the model is scripted. Exits 1
when an exponent is above its bar. `--out` writes the curves.
"""

import argparse
import json
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from math import log
from pathlib import Path
from typing import Any

from growth import PER_DATABASE, Part, measure, write

BAR = 1.10
COLUMNS = (("size", 0), ("seconds", 2), ("megabytes", 0))
"""What is told of each size, with its digits after the point."""
ARMS_WHILE_QUESTIONS_GROW, QUESTIONS_WHILE_ARMS_GROW = 3, 200


def of_questions(count: int, folder: Path) -> Callable[[], int]:
    """A study of three arms over so many questions."""
    return _prepared(count, ARMS_WHILE_QUESTIONS_GROW, folder)


def of_arms(count: int, folder: Path) -> Callable[[], int]:
    """A study of so many arms over two hundred questions."""
    return _prepared(QUESTIONS_WHILE_ARMS_GROW, count, folder)


def _prepared(questions: int, arms: int, folder: Path) -> Callable[[], int]:
    from sqlcrystal.config import parse_study
    from sqlcrystal.models.embeddings import open_embedder
    from sqlcrystal.models.scripted import ScriptedModel
    from sqlcrystal.study.opening import run_study

    _write_benchmark(questions, folder)
    memories = [{"name": f"bank {share}%", "bank": f"{share}%"} for share in range(1, arms)]
    study = parse_study(
        {
            "name": "growth",
            "benchmark": {"name": "own", "data": str(folder)},
            "seeds": [42],
            "budget": 1,
            "default": {"name": "W0", "source": "T3-look"},
            "arm": [{"name": "none", "retriever": "none", "settings": ["transfer"]}, *memories],
        }
    )
    open_embedder("wordllama").embed(["loading it is not what grows"])

    def run() -> int:
        finished = run_study(study, folder / "run", model=ScriptedModel(_reply), jobs=1)
        assert not finished.left_out, finished.left_out
        return sum(path.stat().st_size for path in (folder / "run").rglob("*") if path.is_file())

    return run


def _write_benchmark(questions: int, folder: Path) -> None:
    """A hundred questions over each of so many equal databases."""
    lines = []
    for number in range(questions):
        database = f"shop{number // PER_DATABASE}"
        text, gold = f"How many items cost more than {number}?", f"SELECT count(*) FROM item WHERE price > {number}"
        lines.append(json.dumps({"id": number, "question": text, "sql": gold, "database": database}))
        if number % PER_DATABASE == 0:
            with closing(sqlite3.connect(folder / f"{database}.sqlite")) as connection, connection:
                connection.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, price INTEGER)")
                prices = range(number, number + PER_DATABASE + 1)
                connection.executemany("INSERT INTO item (price) VALUES (?)", [(price,) for price in prices])
    (folder / "questions.jsonl").write_text("\n".join(lines))


def _reply(messages: Any, _sampling: Any) -> str:
    """Every second first attempt is wrong, every repair right."""
    number = int(messages[-1].content.rsplit("cost more than ", 1)[1].split("?")[0])
    is_right = number % 2 or "correcting" in messages[0].content
    return f"```sql\nSELECT count(*) FROM item WHERE price > {number if is_right else number + 1}\n```"


def exponent(rows: list[dict[str, float]], column: str) -> float:
    """The steeper of the slopes to the largest size, from a hundredth and from a tenth of it."""
    last = rows[-1]
    return max(log(last[column] / row[column]) / log(last["size"] / row["size"]) for row in rows[:-1])


def main() -> int:
    """Measure both curves and print a Markdown table; 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=10_000)
    parser.add_argument("--arms", type=int, default=100)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    curves: dict[str, tuple[Part, int]] = {
        "questions": (of_questions, options.questions),
        "arms": (of_arms, options.arms),
    }
    grown: dict[str, list[dict[str, float]]] = {}
    missed = False
    print(f"| a whole study, by | sizes | CPU seconds | peak MB | exponents of time and memory (bar {BAR}) |")
    print("|---|--:|--:|--:|--:|")
    for name, (part, largest) in curves.items():
        rows = grown[f"a study, by {name}"] = [measure(part, max(1, largest // by)) for by in (100, 10, 1)]
        slopes = [exponent(rows, column) for column in ("seconds", "megabytes")]
        missed |= max(slopes) > BAR
        cells = [" / ".join(f"{row[column]:,.{digits}f}" for row in rows) for column, digits in COLUMNS]
        print(f"| {name} | {' | '.join(cells)} | {slopes[0]:.2f}, {slopes[1]:.2f} |", flush=True)
    if options.out:
        write(options.out, grown)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
