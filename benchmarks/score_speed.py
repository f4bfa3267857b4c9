"""Measures scoring as a function: against an evaluator built as BIRD's official one, and against bare SQLite.

Every figure is the median of rounds in which the contestants take turns, so that a busy machine slows all of them,
and the process raises its own priority where it may. The guard's memory, the statements' keys and, where gold is to
be cold, the gold cache are emptied before each measurement. Verdicts must be identical. Without the real Spider data
beside the checkout, a synthetic benchmark of the same size is made.
"""

import contextlib
import multiprocessing
import os
import random
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from sqlcrystal.benchmarks.cases import Benchmark, Case, make_benchmark
from sqlcrystal.benchmarks.catalogue import load_benchmark
from sqlcrystal.benchmarks.evaluate import read_predictions, score_predictions
from sqlcrystal.databases import guard
from sqlcrystal.scoring.cache import GoldCache
from sqlcrystal.scoring.verdicts import sqlite_key
from sqlcrystal.types import Question

SHARED = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
ROUNDS, ROUNDS_OF_TEN = 9, 3
TIMEOUT = 30.0

Files = dict[str, list[str]]


# ── the contestants ──────────────────────────────────────────────────────────────────────────────────────────────────


def reference_query(path: str, sql: str) -> set[tuple[object, ...]] | None:
    """One query the official way: a thread with a timeout and a new connection; None when it fails or is late."""
    result: list[set[tuple[object, ...]]] = []

    def run() -> None:
        connection = sqlite3.connect(path)
        try:
            result.append(set(connection.execute(sql).fetchall()))
        except (sqlite3.Error, sqlite3.Warning):
            return
        finally:
            connection.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(TIMEOUT)
    return result[0] if result else None


def reference_question(path: str, predicted: str, gold: str) -> int:
    """One question: the prediction, then gold again, and their sets of rows."""
    rows = reference_query(path, predicted)
    return int(rows is not None and rows == reference_query(path, gold))


def reference(benchmark: Benchmark, files: Files) -> list[list[int]]:
    """The official shape: for each file a pool of two processes, and a task per question."""
    results = []
    for sqls in files.values():
        with multiprocessing.get_context("fork").Pool(2) as pool:
            tasks = [
                pool.apply_async(reference_question, (benchmark.locations[case.question.database], sql, case.sql))
                for case, sql in zip(benchmark.cases, sqls, strict=True)
            ]
            results.append([task.get() for task in tasks])
    return results


def bare(benchmark: Benchmark, files: Files) -> None:
    """Nothing but SQLite: one open connection per database, every prediction executed and fetched."""
    connections = {name: sqlite3.connect(path) for name, path in benchmark.locations.items()}
    for sqls in files.values():
        for case, sql in zip(benchmark.cases, sqls, strict=True):
            try:
                connections[case.question.database].execute(sql).fetchall()
            except (sqlite3.Error, sqlite3.Warning):
                continue
    for connection in connections.values():
        connection.close()


def ours(benchmark: Benchmark, files: Files, cache_folder: Path) -> list[list[int]]:
    """What `sqlcrystal score` does, guard and cache included, with nothing remembered in the process."""
    guard._read.cache_clear()
    sqlite_key.cache_clear()
    cache = GoldCache(cache_folder)
    results = score_predictions(benchmark, files, rule="bird", timeout=TIMEOUT, cache=cache)
    cache.close()
    return [[int(prediction.correct) for prediction in result.scored] for result in results]


# ── what they work on ────────────────────────────────────────────────────────────────────────────────────────────────


def real_data() -> tuple[Benchmark, Files] | None:
    """Spider dev with three systems' predictions, where they lie beside the checkout."""
    folder = SHARED / "predictions" / "spider_dev"
    if not folder.is_dir():
        return None
    benchmark = load_benchmark("spider", SHARED / "spider")
    return benchmark, {path.stem: read_predictions(path, benchmark) for path in sorted(folder.glob("*.json"))}


def synthetic_data(folder: Path) -> tuple[Benchmark, Files]:
    """Twenty databases and 1,034 questions in pairs of paraphrases, with three systems that err now and then."""
    draw = random.Random(0)
    locations = {f"shop_{number}": str(folder / f"shop_{number}.sqlite") for number in range(20)}
    for path in locations.values():
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT, city TEXT, age INTEGER)")
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER, amount REAL, status TEXT)")
        people = [(n, f"name {n}", f"city {draw.randrange(40)}", draw.randrange(18, 90)) for n in range(400)]
        connection.executemany("INSERT INTO customer VALUES (?, ?, ?, ?)", people)
        orders = [(n, draw.randrange(400), draw.random() * 99, draw.choice("OCX")) for n in range(2_000)]
        connection.executemany("INSERT INTO orders VALUES (?, ?, ?, ?)", orders)
        connection.commit()
        connection.close()
    shapes = (
        "SELECT count(*) FROM customer WHERE age > {n}",
        "SELECT name, city FROM customer WHERE city = 'city {n}' ORDER BY age",
        "SELECT city, avg(age) FROM customer GROUP BY city HAVING count(*) > {n} % 9",
        "SELECT T1.name, sum(T2.amount) FROM customer AS T1 JOIN orders AS T2 ON T1.id = T2.customer"
        " WHERE T2.status = 'O' AND T1.age > {n} GROUP BY T1.id",
        "SELECT name FROM customer WHERE id NOT IN (SELECT customer FROM orders WHERE amount > {n})",
    )
    cases = []
    for number in range(1_034):
        name = f"shop_{number % 20}"
        pair = number // 40  # neighbours in pairs share their gold, as Spider's paraphrases do
        sql = shapes[pair % len(shapes)].format(n=18 + pair)
        cases.append(Case(question=Question(id=str(number), database=name, text=f"question {number}"), sql=sql))
    golds = [case.sql for case in cases]
    files = {
        f"system_{seed}": [_vary(sql, random.Random(f"{seed}/{n}")) for n, sql in enumerate(golds)] for seed in "abc"
    }
    return make_benchmark("synthetic", cases, locations), files


def _vary(sql: str, draw: random.Random) -> str:
    """Another system's wording: mostly right, sometimes wrong, seldom broken."""
    chance = draw.random()
    if chance < 0.03:
        return sql.replace("FROM customer", "FROM client")
    if chance < 0.2:
        return sql.replace("age", "id")
    return sql if chance < 0.5 else f"{sql.replace('SELECT', f'SELECT /* {draw.randrange(3)} */', 1)}"


def ten_files(files: Files) -> Files:
    """The three files and seven more that draw each answer from one of them and write half of the answers anew."""
    names, ten = sorted(files), dict(files)
    for number in range(10 - len(names)):
        draw = random.Random(number)
        mixed = []
        for index in range(len(files[names[0]])):
            sql = files[draw.choice(names)][index].rstrip().rstrip(";")
            mixed.append(f"SELECT * FROM ({sql}) AS system_{number}" if draw.random() < 0.5 else sql)
        ten[f"mixed_{number}"] = mixed
    return ten


# ── measuring ────────────────────────────────────────────────────────────────────────────────────────────────────────


def take_turns(contestants: dict[str, Callable[[], object]], rounds: int) -> tuple[dict[str, float], dict[str, object]]:
    """Median seconds and last answer of each contestant, after one round that does not count."""
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    answers: dict[str, object] = {}
    for turn in range(rounds + 1):
        for name, run in contestants.items():
            start = time.perf_counter()
            answers[name] = run()
            if turn:
                seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}, answers


def measure(
    benchmark: Benchmark, files: Files, folder: Path
) -> tuple[list[tuple[str, float, float, float]], list[str]]:
    """Every bar with what was measured, and every disagreement in verdicts."""
    fresh = (folder / f"cold-{number}" for number in range(1_000_000))
    first_file = {name: files[name] for name in sorted(files)[:1]}
    single, answers = take_turns(
        {
            "bare": lambda: bare(benchmark, first_file),
            "reference": lambda: reference(benchmark, first_file),
            "cold": lambda: ours(benchmark, first_file, next(fresh)),
            "warm": lambda: ours(benchmark, first_file, folder / "warm"),
        },
        ROUNDS,
    )
    ten = ten_files(files)
    many, answers_of_ten = take_turns(
        {"reference": lambda: reference(benchmark, ten), "ours": lambda: ours(benchmark, ten, next(fresh))},
        ROUNDS_OF_TEN,
    )
    reference_one, reference_ten = single["reference"], many["reference"]
    print(f"reference {reference_one:.3f} s for one file, {reference_ten:.3f} s for ten; bare {single['bare']:.3f} s")
    bars = [
        ("one file, gold warm: times faster than the reference", 3.0, reference_one / single["warm"], single["warm"]),
        ("one file, gold cold: times faster than the reference", 1.5, reference_one / single["cold"], single["cold"]),
        ("ten files at once: times faster than the reference", 5.0, reference_ten / many["ours"], many["ours"]),
        ("one file, gold warm: bare SQLite's share of our time", 0.5, single["bare"] / single["warm"], single["warm"]),
    ]
    wrong = [f"one file, {name}" for name in ("cold", "warm") if answers[name] != answers["reference"]]
    return bars, wrong + (["ten files"] if answers_of_ten["ours"] != answers_of_ten["reference"] else [])


def core_share(benchmark: Benchmark, files: Files) -> float:
    """How much of a core work that never waits gets: 1 on an idle machine."""
    wall, processor = time.perf_counter(), time.process_time()
    bare(benchmark, files)
    return (time.process_time() - processor) / (time.perf_counter() - wall)


def main() -> int:
    """Print the table; 0 when every bar is met and every verdict agrees."""
    with contextlib.suppress(OSError):
        os.nice(-19)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        real = real_data()
        benchmark, files = real or synthetic_data(folder)
        print(
            f"{benchmark.name}{'' if real else ' (generated: the real data is not here)'},"
            f" {len(benchmark.cases)} questions, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
        )
        if (share := core_share(benchmark, files)) < 0.75:
            print(f"note: other processes leave this one {share:.0%} of a core; the figures below measure them, too")
        bars, wrong = measure(benchmark, files, folder)
        for label, bar, value, seconds in bars:
            mark = "ok  " if value >= bar else "MISS"
            print(f"{mark} {label:<54} bar {bar:.1f}  measured {value:5.2f}  ({seconds:.3f} s)")
        for label in wrong:
            print(f"MISS verdicts differ from the reference: {label}")
    return int(bool(wrong) or any(value < bar for _, bar, value, _ in bars))


if __name__ == "__main__":
    sys.exit(main())
