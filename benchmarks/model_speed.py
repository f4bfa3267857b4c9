"""Questions per minute of the embedded model over one database: 1, 2 and 4 slots, schema prefix reused or not.

usage: python benchmarks/model_speed.py [--model NAME] [--questions N] [--rounds N] [--out FILE.json]

The machine may be busy, so the two conditions of a slot count alternate in rounds and only their ratio is a claim.
Every question differs, no reply is recorded, and the schema is about 1,000 tokens like a mid-sized database's.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sqlcrystal.models.local import LocalModel, LocalSettings
from sqlcrystal.types import Message, Sampling

TABLES = ("customer", "orders", "invoice", "shipment", "supplier", "product", "warehouse", "employee")
COLUMNS = (
    "status",
    "region",
    "created_on",
    "amount",
    "currency",
    "category",
    "priority",
    "notes",
    "is_deleted",
    "code",
)
MEASURES = ("the average amount", "the number of rows", "the largest amount", "the earliest created_on")


def schema() -> str:
    """DDL of eight tables of a dozen columns."""
    return "\n\n".join(
        f"CREATE TABLE {table} (\n    {table}_id INTEGER PRIMARY KEY,\n"
        + "".join(f"    {column} TEXT,\n" for column in COLUMNS)
        + f"    parent_id INTEGER REFERENCES {TABLES[index - 1]} ({TABLES[index - 1]}_id)\n);"
        for index, table in enumerate(TABLES)
    )


def questions() -> Iterator[str]:
    """Distinct questions over that schema."""
    for column in COLUMNS:
        for table in TABLES:
            for measure in MEASURES:
                yield f"What is {measure} of {table} for each {column}?"


def prompt(question: str) -> list[Message]:
    """The schema first, the question last, so that the prefix is shared."""
    return [
        Message("system", "You write one SQLite query that answers the question. Reply with SQL only."),
        Message("user", f"{schema()}\n\nQuestion: {question}\nSQL:"),
    ]


def ask_all(model: LocalModel, asked: list[str], max_tokens: int) -> tuple[float, int, int]:
    """Seconds, prompt tokens and completion tokens for these questions, as many at once as there are slots."""
    sampling = Sampling(max_tokens=max_tokens)
    started = time.perf_counter()
    with ThreadPoolExecutor(model.slots) as pool:
        replies = list(pool.map(lambda question: model.chat(prompt(question), sampling=sampling), asked))
    seconds = time.perf_counter() - started
    return seconds, replies[0].prompt_tokens, sum(reply.completion_tokens for reply in replies)


def measure(name: str, slots: int, *, per_round: int, rounds: int, max_tokens: int) -> list[dict[str, object]]:
    """Both conditions of one slot count, alternating; the reusing model starts cold, as it does over a new database."""
    models = {
        reuse: LocalModel(LocalSettings(name=name, slots=slots, context=4096, reuse_prefix=reuse))
        for reuse in (True, False)
    }
    for model in models.values():
        model.chat([Message("user", "Say hello.")], sampling=Sampling(max_tokens=4))
    # Without reuse every question costs the same, so a few suffice; with reuse the cold start must be spread as it is.
    sizes = {True: per_round, False: max(slots, per_round // 4)}
    rates: dict[bool, list[float]] = {True: [], False: []}
    totals = {True: [0, 0.0, 0], False: [0, 0.0, 0]}
    stream = questions()
    for _ in range(rounds):
        for reuse, model in models.items():
            asked = [next(stream) for _ in range(sizes[reuse])]
            seconds, prompt_tokens, completion_tokens = ask_all(model, asked, max_tokens)
            rates[reuse].append(60 * len(asked) / seconds)
            totals[reuse][0] += len(asked)
            totals[reuse][1] += seconds
            totals[reuse][2] += completion_tokens
            print(f"slots {slots} reuse {reuse}: {rates[reuse][-1]:.1f} q/min", file=sys.stderr, flush=True)
    for model in models.values():
        model.close()
    return [
        {
            "model": name,
            "slots": slots,
            "reuse": reuse,
            "questions": totals[reuse][0],
            "prompt_tokens": prompt_tokens,
            "completion_tokens_per_question": round(totals[reuse][2] / totals[reuse][0], 1),
            "questions_per_minute": round(60 * totals[reuse][0] / totals[reuse][1], 2),
            "median_of_rounds": round(statistics.median(rates[reuse]), 2),
        }
        for reuse in (True, False)
    ]


def main() -> None:
    """Measure every slot count and print one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="qwen2.5-coder-1.5b")
    parser.add_argument("--slots", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--questions", type=int, default=16, help="questions per round with reuse")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--max-tokens", type=int, default=80)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = [
        row
        for slots in options.slots
        for row in measure(
            options.model,
            slots,
            per_round=options.questions,
            rounds=options.rounds,
            max_tokens=options.max_tokens,
        )
    ]
    text = json.dumps(rows, indent=2)
    if options.out:
        options.out.write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
