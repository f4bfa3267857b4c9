"""How long the bank takes to load and retrieval takes to answer, against faiss and bm25s on the same cards.

    python benchmarks/retrieval_speed.py [--cards 100000] [--dimensions 256] [--threads 2] [--json]

Both sides of a comparison run in one process, alternately, question by question, with the same vectors, texts and
number of threads; the figure is the median over the questions, and the whole is done `--repeats` times. Loading is the
best of as many fresh processes; on a busy machine compare its CPU seconds. Exits 1 if a line misses its limit.
"""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

K = 10
LOAD_SECONDS, LOAD_MEGABYTES, RATIO = 3.0, 1000.0, 1.3
NOUNS = (
    "customer",
    "order",
    "item",
    "price",
    "region",
    "store",
    "visit",
    "patient",
    "flight",
    "crew",
    "ticket",
    "loan",
)
VERBS = ("list", "count", "sum", "average", "compare", "rank", "show", "find", "name", "return")


def main() -> int:
    """Measure, print the table, and say by the exit code whether every limit holds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cards", type=int, default=100_000)
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--dimensions", type=int, default=256)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--load", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.load:
        print(json.dumps(load(options.load)))
        return 0
    # BLAS and OpenMP read these when they are first loaded, hence before numpy is imported below.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(options.threads)
    lines = measure(options)
    if options.json:
        print(json.dumps({"cards": options.cards, "threads": options.threads, "lines": lines}, indent=2))
    else:
        print(
            f"{options.cards:,} cards of one database, {options.dimensions} dimensions,"
            f" {options.threads} threads, k = {K}\n"
        )
        for line in lines:
            verdict = "holds" if line["holds"] else "MISSED"
            limit = "" if line["limit"] is None else f"limit {line['limit']:<8g}{verdict}"
            print(f"{line['what']:<44}{line['value']:>10.3f}   {limit}".rstrip())
    return 0 if all(line["holds"] for line in lines) else 1


def measure(options: argparse.Namespace) -> list[dict[str, object]]:
    """Every line of the table."""
    cards, questions = make_cards(options.cards), make_questions(options.questions)
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bank.sqlite"
        fill(path, cards)
        command = [sys.executable, __file__, "--load", str(path)]
        runs = [subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(options.repeats)]
        loaded = min((json.loads(run.stdout) for run in runs), key=lambda run: run["seconds"])
    assert loaded["cards"] == options.cards
    lines.append(line("load the bank (s)", loaded["seconds"], LOAD_SECONDS))
    lines.append(line("load the bank (s of CPU)", loaded["cpu"]))
    lines.append(line("peak memory of the loading process (MB)", loaded["megabytes"], LOAD_MEGABYTES))
    for name, compare in (("dense / faiss.IndexFlatIP", dense_pair), ("bm25 / bm25s", lexical_pair)):
        ours, theirs = compare(cards, options)
        timings = [alternate(ours, theirs, questions) for _ in range(options.repeats)]
        mine, other = median(timing[0] for timing in timings), median(timing[1] for timing in timings)
        lines.append(line(f"{name}: ours (ms)", mine * 1000))
        lines.append(line(f"{name}: theirs (ms)", other * 1000))
        lines.append(line(f"{name}: ratio", median(timing[0] / timing[1] for timing in timings), RATIO))
    return lines


def line(what: str, value: float, limit: float | None = None) -> dict[str, object]:
    """One figure and whether it is within its limit."""
    return {"what": what, "value": round(value, 4), "limit": limit, "holds": limit is None or value <= limit}


def alternate(
    ours: Callable[[str], object], theirs: Callable[[str], object], questions: Sequence[str]
) -> tuple[float, float]:
    """The median seconds of both over the same questions, taking turns at going first."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for number, text in enumerate(questions):
        for side in ((0, 1), (1, 0))[number % 2]:
            started = time.perf_counter()
            (ours, theirs)[side](text)
            seconds[side].append(time.perf_counter() - started)
    return median(seconds[0]), median(seconds[1])


def dense_pair(cards: Sequence, options: argparse.Namespace) -> tuple[Callable, Callable]:
    """Our dense retriever and faiss over the same vectors; looking a vector up is part of both."""
    import faiss
    import numpy as np

    from sqlcrystal.bank import FrozenBank
    from sqlcrystal.consumption.dense import Dense

    faiss.omp_set_num_threads(options.threads)
    texts = [card.question.text for card in cards] + make_questions(options.questions)
    rng = np.random.default_rng(7)
    matrix = rng.standard_normal((len(texts), options.dimensions), dtype=np.float32)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    row = {text: number for number, text in enumerate(texts)}

    class Known:
        name = digest = "known"

        def embed(self, wanted: Sequence[str]) -> np.ndarray:
            return matrix[[row[text] for text in wanted]]

    index = faiss.IndexFlatIP(options.dimensions)
    index.add(matrix[: len(cards)])
    bank, retriever = FrozenBank(cards), Dense(Known())

    def theirs(text: str) -> list[str]:
        _, nearest = index.search(matrix[row[text]][None], K)
        return [cards[place].id for place in nearest[0]]

    def ours(text: str) -> list[str]:
        return [neighbour.card.id for neighbour in retriever.retrieve(ask(text), bank, k=K)]

    for text in make_questions(options.questions):
        assert ours(text) == theirs(text), "the two do not find the same cards"
    return ours, theirs


def lexical_pair(cards: Sequence, options: argparse.Namespace) -> tuple[Callable, Callable]:
    """Our BM25 retriever and bm25s as its documentation uses it; both tokenise the question."""
    import bm25s

    from sqlcrystal.bank import FrozenBank
    from sqlcrystal.consumption.lexical import Bm25

    model = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
    texts = [card.question.text for card in cards]
    model.index(bm25s.tokenize(texts, stopwords="english", show_progress=False), show_progress=False)
    bank, retriever = FrozenBank(cards), Bm25()

    def theirs(text: str) -> list[float]:
        tokens = bm25s.tokenize([text], stopwords="english", return_ids=False, show_progress=False)
        _, scores = model.retrieve(tokens, k=K, show_progress=False)
        return scores[0].tolist()

    def ours(text: str) -> list[float]:
        return [neighbour.score for neighbour in retriever.retrieve(ask(text), bank, k=K)]

    for text in make_questions(options.questions):
        pairs = zip(ours(text), theirs(text), strict=True)
        assert all(abs(mine - other) < 1e-4 for mine, other in pairs), "the two do not score the same"
    return ours, theirs


def load(path: str) -> dict[str, float]:
    """Open the bank in a fresh process and serve every card; peak memory is the whole process's."""
    from sqlcrystal.bank import CardStore

    started, worked = time.perf_counter(), time.process_time()
    with CardStore(path) as store:
        cards = store.cards("shop")
    return {
        "cards": len(cards),
        "seconds": time.perf_counter() - started,
        "cpu": time.process_time() - worked,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def fill(path: Path, cards: Sequence) -> None:
    """Write the bank to be loaded."""
    from sqlcrystal.bank import CardStore, Entry

    with CardStore(path) as store:
        store.add_all(Entry(card=card) for card in cards)


def make_cards(count: int) -> list:
    """Cards of the size of a verbatim card on BIRD, each with its own question."""
    from sqlcrystal.types import Admission, Card, CardId, Question

    admission = Admission(signal="oracle", by="benchmark", at="2026-01-01T00:00:00+00:00")
    rng = random.Random(11)
    cards = []
    for number in range(count):
        text = f"{sentence(rng)} in case {number}"
        sql = f"SELECT a.{rng.choice(NOUNS)}, COUNT(*) FROM {rng.choice(NOUNS)} AS a JOIN b ON a.id = b.id " * 2
        sql += f"WHERE a.{rng.choice(NOUNS)} = {number} GROUP BY 1"
        cards.append(
            Card(
                id=CardId(f"{number:064x}"),
                database="shop",
                question=Question(id=f"q{number}", database="shop", text=text, evidence=sentence(rng)),
                sql=sql,
                text=f"Question: {text}\nCorrected SQL:\n{sql}",
                writer="W0",
                source="T3",
                admission=admission,
                fingerprint="f" * 64,
                tokens=150,
            )
        )
    return cards


def make_questions(count: int) -> list[str]:
    """Questions nobody banked."""
    rng = random.Random(13)
    return [f"{sentence(rng)} of {number}" for number in range(count)]


def sentence(rng: random.Random) -> str:
    """Some twelve words, of which common ones stand in many questions."""
    return f"{rng.choice(VERBS)} the " + " and ".join(
        f"{rng.choice(NOUNS)} {rng.choice(NOUNS)}{rng.randrange(400)}" for _ in range(4)
    )


def ask(text: str) -> object:
    """A question to the one database."""
    from sqlcrystal.types import Question

    return Question(id="asked", database="shop", text=text)


if __name__ == "__main__":
    sys.exit(main())
