"""An evaluator of the exact shape of BIRD's official one, as a command: the yardstick of `score_command_speed.py`.

It takes one file at a time, as BIRD's does: a pool of two processes, a task per question, and in it one thread with a
time limit and one new connection that runs the prediction and then gold. The file holds `[[database file, prediction,
gold], …]`; it prints a bit per question. What BIRD's script does beside (its libraries, difficulty tables) is left
out, which makes this one the faster of the two.
"""

import json
import multiprocessing
import sqlite3
import sys
import threading
from pathlib import Path

TIMEOUT = 30.0


def execute(path: str, predicted: str, gold: str) -> bool:
    """Whether both statements give the same set of rows."""
    connection = sqlite3.connect(path)
    cursor = connection.cursor()
    rows = cursor.execute(predicted).fetchall()
    return set(rows) == set(cursor.execute(gold).fetchall())


def judge(path: str, predicted: str, gold: str) -> bool:
    """The same in a thread of its own, as `func_timeout` does it; what fails or is late is wrong."""
    result: list[bool] = []

    def run() -> None:
        try:
            result.append(execute(path, predicted, gold))
        except Exception:
            return

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(TIMEOUT)
    return bool(result and result[0])


def evaluate(file: Path) -> list[bool]:
    """One verdict per question."""
    questions = json.loads(file.read_text(encoding="utf-8"))
    with multiprocessing.Pool(2) as pool:
        tasks = [pool.apply_async(judge, question) for question in questions]
        return [task.get() for task in tasks]


if __name__ == "__main__":
    print(json.dumps([int(right) for right in evaluate(Path(sys.argv[1]))]))
