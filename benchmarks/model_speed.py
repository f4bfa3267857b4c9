"""Questions per minute of the embedded model over one database: 1, 2 and 4 slots, schema prefix reused or not.

usage: python benchmarks/model_speed.py [--model NAME] [--questions N] [--rounds N] [--out FILE.json]

The machine may be busy, so all conditions take turns, round after round, and only their ratios are a claim.
Every question differs, no reply is recorded, and the schema is about 700 tokens like a small database's.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sqlcrystal.models.local import LocalModel, LocalSettings
from sqlcrystal.types import Message, Sampling

TABLES = ("customer", "orders", "invoice", "shipment", "supplier", "product")
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
    """DDL of six tables of a dozen columns."""
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


class Condition:
    """One slot count with or without reuse, and what was measured of it so far."""

    def __init__(self, name: str, slots: int, *, reuse: bool) -> None:
        """Load the model and let it say a word, so that no round pays for the start."""
        self.slots, self.reuse = slots, reuse
        self.model = LocalModel(LocalSettings(name=name, slots=slots, context=4096, reuse_prefix=reuse))
        self.model.chat([Message("user", "Say hello.")], sampling=Sampling(max_tokens=4))
        self.rounds: list[dict[str, float]] = []

    def ask(self, asked: list[str], max_tokens: int) -> None:
        """One round."""
        seconds, prompt_tokens, completion_tokens = ask_all(self.model, asked, max_tokens)
        self.rounds.append(
            {
                "questions": len(asked),
                "seconds": round(seconds, 2),
                "prompt_tokens": prompt_tokens,
                "completion_tokens": completion_tokens,
                "questions_per_minute": round(60 * len(asked) / seconds, 2),
            }
        )
        print(f"slots {self.slots} reuse {self.reuse}: {self.rounds[-1]}", file=sys.stderr, flush=True)

    def row(self) -> dict[str, object]:
        """All rounds together, the cold start of the first included."""
        asked = sum(done["questions"] for done in self.rounds)
        return {
            "model": self.model.name,
            "slots": self.slots,
            "reuse": self.reuse,
            "questions_per_minute": round(60 * asked / sum(done["seconds"] for done in self.rounds), 2),
            "rounds": self.rounds,
        }


def measure(
    name: str, slot_counts: list[int], *, per_round: int, rounds: int, max_tokens: int
) -> list[dict[str, object]]:
    """Every condition in turn, round after round, so that a busy machine slows all of them alike."""
    conditions = [Condition(name, slots, reuse=reuse) for slots in slot_counts for reuse in (True, False)]
    stream = questions()
    for _ in range(rounds):
        for condition in conditions:
            # Without reuse every question costs the same, so as many as there are slots tell as much as a round.
            size = per_round if condition.reuse else condition.slots
            condition.ask([next(stream) for _ in range(size)], max_tokens)
    return [condition.row() for condition in conditions]


def main() -> None:
    """Measure every slot count and print one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="qwen2.5-coder-1.5b")
    parser.add_argument("--slots", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--questions", type=int, default=12, help="questions per round with reuse")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--max-tokens", type=int, default=80)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = measure(
        options.model,
        options.slots,
        per_round=options.questions,
        rounds=options.rounds,
        max_tokens=options.max_tokens,
    )
    text = json.dumps(rows, indent=2)
    if options.out:
        options.out.write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
