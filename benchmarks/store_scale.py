"""A million cards over a thousand databases: open, add, retrieve and check, within a memory budget.

    python benchmarks/store_scale.py                          # SQLite, in a temporary folder
    python benchmarks/store_scale.py --store postgresql://…   # an empty PostgreSQL database
    python benchmarks/store_scale.py --keep FILE              # fill once, measure again later

Every figure is taken in a fresh process that did not fill the store. `retrieve` walks over more databases than the
budget holds, so that cards, vectors and indexes are let go and read again. Exits 1 when a limit is missed.
"""

import argparse
import json
import random
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median, quantiles

LIMITS = {"open (s)": 1.0, "add, p95 (ms)": 100.0, "retrieve again, p95 (ms)": 25.0, "peak memory (MB)": 2048.0}
WORDS = ("orders", "items", "shipments", "patients", "flights", "schools", "players", "loans", "reviews", "orchards")


def main() -> int:
    """Fill, measure, print, and say by the exit code whether every limit holds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cards", type=int, default=1_000_000)
    parser.add_argument("--databases", type=int, default=1_000)
    parser.add_argument("--touched", type=int, default=400, help="databases that `retrieve` walks over, twice")
    parser.add_argument("--memory", type=int, default=256, help="MB of cards the store may keep decoded")
    parser.add_argument("--store", help="an empty store's URL or path")
    parser.add_argument("--keep", help="a file to fill, or one filled before")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure, options)))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        place = options.store or options.keep or str(Path(folder) / "store.db")
        figures = {} if options.keep and Path(options.keep).exists() else {"fill (s)": fill(place, options)}
        command = [sys.executable, __file__, "--measure", place, "--databases", str(options.databases)]
        command += ["--touched", str(options.touched), "--memory", str(options.memory)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    figures |= json.loads(done.stdout)
    missed = [name for name, limit in LIMITS.items() if figures[name] > limit]
    if options.json:
        print(json.dumps({"figures": figures, "limits": LIMITS, "missed": missed}, indent=2))
    else:
        for name, value in figures.items():
            verdict = "" if name not in LIMITS else f"limit {LIMITS[name]:<8g}{'MISSED' if name in missed else 'holds'}"
            print(f"{name:<36}{value:>12.3f}   {verdict}".rstrip())
    return 1 if missed else 0


def fill(place: str, options: argparse.Namespace) -> float:
    """Bank every card, ten thousand a transaction."""
    from sqlcrystal.bank import CardStore

    started = time.perf_counter()
    per_database = options.cards // options.databases
    with CardStore(place) as store:
        batch: list = []
        for database in range(options.databases):
            batch += entries(database, per_database)
            if len(batch) >= 10_000 or database == options.databases - 1:
                store.add_all(batch)
                batch = []
                print(f"\rfilled {database + 1} of {options.databases}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return time.perf_counter() - started


def measure(place: str, options: argparse.Namespace) -> dict[str, float]:
    """What a process that opens the filled store sees."""
    from sqlcrystal.bank import Store
    from sqlcrystal.consumption.dense import Dense
    from sqlcrystal.models.embeddings import open_embedder

    figures: dict[str, float] = {}
    started = time.perf_counter()
    with Store(place, memory=options.memory * 2**20) as store:
        figures["open (s)"] = time.perf_counter() - started
        extra = [entry.card for entry in entries(options.databases, 100)]
        figures["add, p95 (ms)"] = p95([timed(lambda card=card: store.bank.add(card)) for card in extra])
        retriever = Dense(open_embedder())
        rng = random.Random(3)
        visited = rng.sample(range(options.databases), min(options.touched, options.databases))
        first = [timed(lambda number=number: search(retriever, store.bank, number)) for number in visited]
        figures["retrieve first, median (ms)"] = median(first) * 1000
        again = [timed(lambda: search(retriever, store.bank, visited[-1])) for _ in range(100)]
        figures["retrieve again, p95 (ms)"] = p95(again)
        for database in visited:  # once more: what was let go is read again
            search(retriever, store.bank, database)
        figures["check a database (s)"] = timed(lambda: check(store.bank))
        figures["cards"] = float(
            sum(len(store.bank.cards(name(number))) for number in visited[:3]) / 3 * options.databases
        )
    figures["peak memory (MB)"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return figures


def search(retriever: object, bank: object, database: int) -> None:
    """Five cards for a question nobody banked; fails if they are another database's."""
    from sqlcrystal.types import Question

    asked = Question(id="asked", database=name(database), text=f"How many {WORDS[database % 10]} cost more than 7?")
    neighbours = retriever.retrieve(asked, bank, k=5)  # type: ignore[attr-defined]
    assert len(neighbours) == 5
    assert {neighbour.card.database for neighbour in neighbours} == {name(database)}


def check(bank: object) -> None:
    """Every card of one database, executed against a live file."""
    from sqlcrystal.bank import check_cards
    from sqlcrystal.databases import open_database

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "live.sqlite"
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE item (name TEXT, price INTEGER)")
        connection.close()
        database = open_database(str(path), name=name(0))
        report = check_cards(bank, database)  # type: ignore[arg-type]
        database.close()
        assert report.ran == report.checked, report


def entries(database: int, count: int) -> Iterator:
    """Cards of the size of a verbatim card on BIRD, each with its own question and SQL that runs."""
    from sqlcrystal.bank import Entry
    from sqlcrystal.types import Admission, Card, CardId, Question

    admission = Admission(signal="user", by="ada", at="2026-01-01T00:00:00+00:00")
    rng = random.Random(database)
    for number in range(count):
        words = " and ".join(f"{rng.choice(WORDS)} {rng.choice(WORDS)}{rng.randrange(400)}" for _ in range(4))
        text = f"How many {words} cost more than {number}?"
        remark = " ".join(rng.choice(WORDS) for _ in range(20))
        sql = f"SELECT count(*) FROM item WHERE price > {number} /* {remark} */"
        card = Card(
            id=CardId(f"{rng.getrandbits(256):064x}"),
            database=name(database),
            question=Question(id=f"q{number}", database=name(database), text=text),
            sql=sql,
            text=f"Question: {text}\nCorrected SQL:\n{sql}",
            writer="W0",
            source="T3",
            admission=admission,
            fingerprint="f" * 64,
            tokens=150,
        )
        yield Entry(card=card)


def name(database: int) -> str:
    """How the database goes by."""
    return f"database-{database:04d}"


def timed(work: Callable[[], object]) -> float:
    """Seconds the work took."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def p95(seconds: Sequence[float]) -> float:
    """The 95th percentile in milliseconds."""
    return quantiles(seconds, n=20)[-1] * 1000


if __name__ == "__main__":
    sys.exit(main())
