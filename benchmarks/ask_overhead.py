"""What `ask` adds to the model and the database: milliseconds an answer at 10,000 cards, and the start of the command.

    python benchmarks/ask_overhead.py [--cards 10000] [--asks 300]

The model is scripted and takes no time; what the database takes is measured inside and taken off. The command's start
ends where the first model is loaded: the embedder where there are cards, else the language model. Wall time is held to
the bars and suffers from whatever else the machine does; processor time, told beside it, suffers less. Exits 1 when a
bar is missed.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlcrystal.bank import Entry, Store
from sqlcrystal.databases.sqlite import SqliteDatabase
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.serving import Crystal
from sqlcrystal.types import Admission, Card, CardId, Question

SQL = "SELECT count(*) FROM item WHERE price > {number}"
START_BAR, ASK_BAR = 0.5, 25.0
"""Seconds until a model is loaded; milliseconds an ask, at the 95th percentile."""
Moment = tuple[float, ...]
START = """
import os, sys, time
store, began = sys.argv[1], float(sys.argv[2])
sys.argv = ["sqlcrystal", "ask", "How many items are there?", "--db", "shop.sqlite", "--store", store]
sys.argv += ["--model", "http://127.0.0.1:9/v1#m"]


def tell():
    print(time.time() - began, time.process_time(), flush=True)


class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "wordllama":
            tell()
        if name == "httpx":
            tell()
            os._exit(0)


sys.meta_path.insert(0, Watch())
from sqlcrystal.interfaces.cli.app import main
main()
"""
SUBJECTS = ("items", "orders", "customers", "suppliers", "shipments", "returns", "payments", "shelves")
VERBS = ("cost more than", "were made before", "weigh less than", "arrived after", "are rated above")


def question(number: int) -> str:
    """A question unlike its neighbours."""
    subject, verb = SUBJECTS[number % len(SUBJECTS)], VERBS[number // 8 % len(VERBS)]
    return f"How many {subject} of group {number // 40} {verb} {number}?"


def fill(store: Path, fingerprint: str, cards: int) -> None:
    """Bank so many cards."""
    admission = Admission(signal="user", by="ada", at="2026-01-01T00:00:00Z")
    with Store(store) as opened:
        opened.bank.add_all(
            Entry(
                card=Card(
                    id=CardId(f"{number:016x}"),
                    database="shop",
                    question=Question(id=f"q{number}", database="shop", text=question(number)),
                    sql=SQL.format(number=number),
                    text=f"Q: {question(number)}\n```sql\n{SQL.format(number=number)}\n```",
                    writer="W0",
                    source="success",
                    admission=admission,
                    fingerprint=fingerprint,
                    tokens=30,
                )
            )
            for number in range(cards)
        )


@contextmanager
def clocked(clock: Callable[[], float]) -> Iterator[list[float]]:
    """The time that databases take from here on, as a one-element list."""
    spent = [0.0]
    kept: dict[str, Any] = {}
    depth = [0]

    def timed(method: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            depth[0] += 1
            started = clock()
            try:
                return method(*arguments, **named)
            finally:
                depth[0] -= 1
                spent[0] += clock() - started if depth[0] == 0 else 0.0

        return call

    for name in ("execute", "schema", "fingerprint", "tables"):
        kept[name] = getattr(SqliteDatabase, name)
        setattr(SqliteDatabase, name, timed(kept[name]))
    try:
        yield spent
    finally:
        for name, method in kept.items():
            setattr(SqliteDatabase, name, method)


def overhead(crystal: Crystal, asks: int, clock: Callable[[], float], *, confirm_every: int = 0) -> list[float]:
    """Milliseconds of each ask beside its database."""
    taken = []
    with clocked(clock) as spent:
        for number in range(asks):
            before, started = spent[0], clock()
            answer = crystal.ask(f"{question(number * 37)[:-1]} or so ({clock():.6f})?")
            taken.append(1000 * (clock() - started - (spent[0] - before)))
            if confirm_every and number % confirm_every == 0:
                crystal.confirm(answer, by="ada")
    return taken


def summary(name: str, taken: list[float]) -> str:
    """Median and 95th percentile."""
    return f"{name:<44} {statistics.median(taken):7.2f} {p95(taken):7.2f}"


def p95(taken: list[float]) -> float:
    """The 95th percentile."""
    return statistics.quantiles(taken, n=20)[-1]


def starts(folder: Path, store: str) -> tuple[list[Moment], list[Moment]]:
    """The start of `sqlcrystal ask` over a store: until a model is first loaded, and until the language model is asked.

    Seconds of wall time and of processor time, a pair for each of five starts.
    """
    loaded, asked = [], []
    for _ in range(5):
        command = [sys.executable, "-c", START, store, str(time.time())]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
        moments = [tuple(map(float, line.split())) for line in done.stdout.splitlines()]
        loaded.append(moments[0])
        asked.append(moments[-1])
    return loaded, asked


def verdict(value: float, bar: float) -> str:
    """Whether a bar holds."""
    return f"bar {bar:g}: {'holds' if value <= bar else 'MISSED'}"


def main() -> int:
    """Measure, print, and say by the exit code whether both bars hold."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cards", type=int, default=10_000)
    parser.add_argument("--asks", type=int, default=300)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        place = folder / "shop.sqlite"
        build(place)
        database = SqliteDatabase(place)
        fill(folder / "team.db", database.fingerprint(), options.cards)
        database.close()
        model = ScriptedModel(lambda *_: "```sql\nSELECT count(*) FROM item WHERE price > 10\n```")
        print(f"start of the command, seconds{'':<21}wall  processor")
        slowest = 0.0
        for where, store in (
            ("in an empty folder", "none.db"),
            (f"over a store of {options.cards:,} cards", "team.db"),
        ):
            loaded, asked = (
                [statistics.median(kind) for kind in zip(*command_runs, strict=True)]
                for command_runs in starts(folder, store)
            )
            slowest = max(slowest, loaded[0])
            print(f"{where:<44} {loaded[0]:7.2f} {loaded[1]:7.2f}   {verdict(loaded[0], START_BAR)}")
            print(f"{'  until the language model is asked':<44} {asked[0]:7.2f} {asked[1]:7.2f}")
        print(f"{options.cards:,} cards, {options.asks} asks; milliseconds{'':<15} median     p95")
        with Crystal.over(place, model=model, store=folder / "team.db") as crystal:
            crystal.ask("How many items are there in all?")  # embeds every card
            wall = overhead(crystal, options.asks, time.perf_counter)
            print(f"{summary('wall', wall)}   {verdict(p95(wall), ASK_BAR)}")
            print(summary("processor", overhead(crystal, options.asks, time.process_time)))
            every = overhead(crystal, options.asks // 4, time.process_time, confirm_every=2)
            print(summary("processor, every second answer confirmed", every))
    return int(slowest > START_BAR or p95(wall) > ASK_BAR)


def build(place: Path) -> None:
    """A small shop, so that the database's own time is small too."""
    import sqlite3

    with sqlite3.connect(place) as connection:
        connection.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT, kind TEXT, price INTEGER)")
        connection.executemany("INSERT INTO item VALUES (?, ?, ?, ?)", [(n, f"item {n}", "HW", n) for n in range(100)])
    connection.close()


if __name__ == "__main__":
    sys.exit(main())
