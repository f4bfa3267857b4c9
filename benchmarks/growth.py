"""How time, memory and disk grow with the size of a study, part by part, over a hundredfold range and more.

    python benchmarks/growth.py [--largest 100000] [--out FOLDER]

Every size runs in a process of its own. The exponent is the slope of log(CPU seconds) over log(size) over the
hundredfold range below the largest. `--out` writes growth.svg and growth.json.
"""

import argparse
import json
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable
from math import log
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any

PER_DATABASE = 100
Part = Callable[[int, Path], Callable[[], int]]
"""Prepares so many things and returns what is measured, which answers with the bytes it left on disk."""


def compare_pairs(count: int, _folder: Path) -> Callable[[], int]:
    """`compare`: everything that stands beside a contrast, from pairs in memory."""
    import numpy as np
    import scipy.special  # noqa: F401  (loading it is not what grows)

    from sqlcrystal.measurement.comparison import compare
    from sqlcrystal.measurement.outcomes import paired

    rng = np.random.default_rng(0)
    before = rng.random(count) < 0.6
    after = before ^ (rng.random(count) < 0.15)
    rows = [
        (f"d{place // PER_DATABASE}", f"q{place}", "", int(a), int(b))
        for place, (a, b) in enumerate(zip(before, after, strict=True))
    ]

    def run() -> int:
        compare(paired(rows))
        return 0

    return run


def ledger_rows(count: int, folder: Path) -> Callable[[], int]:
    """The ledger: written and read again, by answers."""
    from sqlcrystal.ledger.records import LEDGER_FILE, Arm, Ledger, Manifest, Outcome, read_ledger, write_ledger

    sql = "SELECT T1.name, COUNT(*) FROM patient AS T1 JOIN visit AS T2 ON T1.id = T2.patient_id WHERE T2.year = "
    outcomes = tuple(
        Outcome(
            arm="W0",
            setting="transfer",
            seed=42,
            question=f"q{place}",
            database=f"d{place // PER_DATABASE}",
            difficulty="simple",
            right=bool(place % 3),
            first_right=bool(place % 3),
            rules=dict.fromkeys(("bird", "subset", "bag", "test-suite"), bool(place % 3)),
            kind="match",
            sql=f"{sql}{place}",
            first_sql=f"{sql}{place}",
        )
        for place in range(count)
    )
    manifest = Manifest(
        study="growth",
        digest="0",
        version="0",
        benchmark="made-up",
        model="none",
        model_digest="0",
        embedder="none",
        seeds=(42,),
        rule="bird",
        default_arm="W0",
        arms=(Arm(name="W0"),),
        contrasts=(),
    )
    ledger = Ledger(manifest=manifest, outcomes=outcomes, cards=())

    def run() -> int:
        write_ledger(ledger, folder)
        assert len(read_ledger(folder).outcomes) == count
        return (folder / LEDGER_FILE).stat().st_size

    return run


def recorded_calls(count: int, folder: Path) -> Callable[[], int]:
    """A recording: every completion added and looked up, prompts as long as the paper's."""
    from sqlcrystal.models.recording import RecordedCall, Recording, request_key
    from sqlcrystal.types import Completion, Message, Sampling

    schema = "CREATE TABLE visit (id INTEGER PRIMARY KEY, patient_id INTEGER, year INTEGER);\n" * 60

    def entry(place: int) -> RecordedCall:
        messages = (Message(role="user", content=f"{schema}Question {place}?"),)
        completion = Completion(text=f"```sql\nSELECT {place}\n```", prompt_tokens=1232, completion_tokens=77)
        key = request_key("0", messages, Sampling())
        asked = {"key": key, "model": "m", "digest": "0", "messages": messages}
        return RecordedCall(**asked, sampling=Sampling(), completion=completion)

    def run() -> int:
        path = folder / "calls.sqlite"
        with Recording(path) as recording:
            for start in range(0, count, 100):
                entries = [entry(place) for place in range(start, min(count, start + 100))]
                recording.add(entries)
                assert all(recording.get(entry.key) for entry in entries)
        return path.stat().st_size

    return run


def banked_cards(count: int, folder: Path) -> Callable[[], int]:
    """A bank: cards added to their databases, and each database's served once."""
    from sqlcrystal.bank import CardStore, Entry
    from sqlcrystal.types import Admission, Card, CardId, Question

    admission = Admission(signal="oracle", by="benchmark", at="2026-01-01T00:00:00+00:00")
    sql = "SELECT a.name, COUNT(*) FROM visit AS a JOIN patient AS b ON a.id = b.id GROUP BY 1 LIMIT "

    def card(place: int) -> Card:
        database = f"d{place // PER_DATABASE}"
        text = f"how many visits has patient {place} had in all"
        return Card(
            id=CardId(f"{place:064x}"),
            database=database,
            question=Question(id=f"q{place}", database=database, text=text, evidence=""),
            sql=f"{sql}{place}",
            text=f"Question: {text}\nCorrected SQL:\n{sql}{place}",
            writer="W0",
            source="T3",
            admission=admission,
            fingerprint="f" * 64,
            tokens=60,
        )

    def run() -> int:
        path = folder / "bank.sqlite"
        with CardStore(path) as store:
            store.add_all(Entry(card=card(place)) for place in range(count))
            assert sum(len(store.cards(database)) for database in store.databases()) == count
        return path.stat().st_size

    return run


def two_stage_databases(count: int, _folder: Path) -> Callable[[], int]:
    """The paper's bootstrap, 1,000 resamples: a hundredth as many databases as the other parts have things."""
    import numpy as np

    from sqlcrystal.measurement.clusters import two_stage_totals
    from sqlcrystal.measurement.outcomes import QuestionTable

    rng = np.random.default_rng(0)
    groups = max(3, count // PER_DATABASE)
    values = np.stack([100.0 * rng.integers(-1, 2, count), np.ones(count)], axis=1)
    table = QuestionTable(np.sort(rng.integers(groups, size=count)), values, tuple(map(str, range(groups))))

    def run() -> int:
        two_stage_totals(table=table, rng=rng, resamples=1000)
        return 0

    return run


def sums_by_duckdb(count: int, folder: Path) -> Callable[[], int]:
    """The same inference at scale: DuckDB adds up a Parquet file per database, and CR2 takes two numbers of each."""
    import duckdb

    from sqlcrystal.measurement.statistics import difference_of_sums

    path = folder / "results.parquet"
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT 'd' || (i // {PER_DATABASE}) AS database, i AS question, arm,"
            f" hash(i, arm) % 100 < 60 + 4 * arm AS is_right FROM range({count}) t(i), range(2) a(arm))"
            f" TO '{path}' (FORMAT parquet)"
        )

    def run() -> int:
        with duckdb.connect() as engine:
            engine.execute("SET threads = 1")
            columns = engine.execute(
                "SELECT sum(CASE WHEN arm = 1 THEN 100 ELSE -100 END * is_right::INT)::DOUBLE AS difference,"
                f" (count(*) / 2)::DOUBLE AS pairs FROM '{path}' GROUP BY database"
            ).fetchnumpy()
        difference_of_sums(sums=columns["difference"], sizes=columns["pairs"])
        return path.stat().st_size

    return run


PARTS: dict[str, tuple[Part, int]] = {
    "compare, pairs in memory": (compare_pairs, 10),
    "two-stage bootstrap, 1,000 resamples": (two_stage_databases, 1),
    "compare, sums by DuckDB": (sums_by_duckdb, 100),
    "ledger, written and read": (ledger_rows, 1),
    "recording, added and looked up": (recorded_calls, 1),
    "bank, added and served": (banked_cards, 1),
}
"""Each part with how far beyond `--largest` it is taken."""


def measure(part: Part, count: int) -> dict[str, float]:
    """CPU seconds, megabytes beyond what preparing took, and bytes on disk, in a process of its own."""
    context = multiprocessing.get_context("spawn")
    answers: Queue[dict[str, float]] = context.Queue()
    child = context.Process(target=_child, args=(part, count, answers))
    child.start()
    child.join()  # what it answers is small enough to wait in the pipe
    if child.exitcode:
        raise SystemExit(f"{part.__name__} of {count:,} failed; what went wrong stands above")
    return answers.get()


def _child(part: Part, count: int, answers: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = part(count, Path(folder))
        started = time.process_time()
        disk = run()
        answers.put(
            {
                "size": count,
                "seconds": time.process_time() - started,
                "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
                "disk": disk,
            }
        )


def exponent(rows: list[dict[str, float]]) -> float:
    """The slope over the hundredfold range below the largest size."""
    first, last = rows[-3], rows[-1]
    return log(last["seconds"] / first["seconds"]) / log(last["size"] / first["size"])


def main() -> None:
    """Measure every part and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--largest", type=int, default=100_000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    print("| part | things | CPU seconds | µs each | peak MB | bytes each on disk | exponent |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    grown: dict[str, list[dict[str, float]]] = {}
    for name, (part, further) in PARTS.items():
        largest = options.largest * further
        sizes = [largest // 1000, largest // 100, largest // 10, largest]
        rows = grown[name] = [measure(part, size) for size in sizes if size >= 100]
        last, slope = rows[-1], exponent(rows)
        per_item = 1e6 * last["seconds"] / last["size"]
        disk = f"{last['disk'] / last['size']:.0f}" if last["disk"] else ""
        print(
            f"| {name} | {last['size']:,} | {last['seconds']:.2f} | {per_item:.1f} | {last['megabytes']:.0f} | {disk}"
            f" | {slope:.2f} |",
            flush=True,
        )
    if options.out:
        write(options.out, grown)


def write(folder: Path, grown: dict[str, list[dict[str, float]]]) -> None:
    """The curves as a figure and as numbers."""
    from sqlcrystal.study.report.drawing import MARKERS, PALETTE, Figure, Panel, files

    def draw(axes: Any) -> None:
        for index, (name, rows) in enumerate(grown.items()):
            axes.plot(
                [row["size"] for row in rows],
                [row["seconds"] for row in rows],
                color=PALETTE[index],
                marker=MARKERS[index],
                label=name,
            )
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("Pairs, answers, calls or cards")
        axes.set_ylabel("CPU seconds")
        axes.legend()

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "growth.json").write_text(json.dumps(grown, indent=2))
    figure = Figure("growth", "How a study's parts grow", "", (Panel(draw, 4.2, 6.0),))
    for kind, drawn in files(figure).items():
        (folder / f"growth.{kind}").write_bytes(drawn)


if __name__ == "__main__":
    main()
