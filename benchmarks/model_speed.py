"""Questions per minute of the embedded model over one database: by slots, schema prefix reused or not, or batched.

usage: python benchmarks/model_speed.py [--model NAME] [--database NAME] [--slots N …] [--batched N …] [--questions N]

Real questions of one Quarry database through the real solver; nothing is recorded. The machine may be busy, so all
conditions take turns, round after round, over the same questions, and only their ratios are a claim.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sqlcrystal.benchmarks import quarry
from sqlcrystal.benchmarks.quarry import path as quarry_path
from sqlcrystal.databases import open_database
from sqlcrystal.models.local import BatchedModel, BatchedSettings, LocalModel, LocalSettings
from sqlcrystal.solving.solver import SingleShot
from sqlcrystal.types import Message, Question, Sampling


class Condition:
    """One runtime and slot count, with or without reuse, and what was measured of it so far."""

    def __init__(self, model: LocalModel | BatchedModel, database: str, *, reuse: bool, max_tokens: int) -> None:
        self.model, self.slots, self.reuse = model, model.slots, reuse
        self.kind = "batched" if isinstance(model, BatchedModel) else "local"
        opened = open_database(str(quarry_path(database)), name=database)
        self.solver = SingleShot(self.model, opened, sampling=Sampling(max_tokens=max_tokens))
        self.rounds: list[dict[str, float]] = []

    def ask(self, asked: Sequence[Question]) -> None:
        """One round, as many questions at once as there are slots; loading the model is not timed."""
        self.model.chat([Message("user", "Say hello.")], sampling=Sampling(max_tokens=4))
        started = time.perf_counter()
        with ThreadPoolExecutor(self.slots) as pool:
            replies = [attempt.call.completion for attempt in pool.map(self.solver.solve, asked)]
        seconds = time.perf_counter() - started
        self.model.close()  # one model in memory at a time
        self.rounds.append(
            {
                "questions": len(asked),
                "seconds": round(seconds, 2),
                "prompt_tokens": sum(reply.prompt_tokens for reply in replies),
                "completion_tokens": sum(reply.completion_tokens for reply in replies),
                "questions_per_minute": round(60 * len(asked) / seconds, 2),
            }
        )
        print(f"{self.kind} slots {self.slots} reuse {self.reuse}: {self.rounds[-1]}", file=sys.stderr, flush=True)

    def row(self) -> dict[str, object]:
        """All rounds together, the cold start of the first included."""
        asked = sum(done["questions"] for done in self.rounds)
        return {
            "model": self.model.name,
            "kind": self.kind,
            "slots": self.slots,
            "reuse": self.reuse,
            "questions_per_minute": round(60 * asked / sum(done["seconds"] for done in self.rounds), 2),
            "rounds": self.rounds,
        }


def main() -> None:
    """Every condition in turn, round after round, then one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="qwen2.5-coder-1.5b")
    parser.add_argument("--database", default=quarry.names()[0], choices=quarry.names())
    parser.add_argument("--slots", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument(
        "--batched", type=int, nargs="*", default=[], help="slots of the batched model, to compare with"
    )
    parser.add_argument("--questions", type=int, default=12, help="questions per round")
    parser.add_argument("--cold-questions", type=int, help="fewer for the conditions without reuse, which are steady")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--max-tokens", type=int, default=200)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    questions = [entry.question for entry in quarry.entries(options.database)]
    models: list[tuple[LocalModel | BatchedModel, bool]] = [
        (LocalModel(LocalSettings(name=options.model, slots=slots, context=4096, reuse_prefix=reuse)), reuse)
        for slots in options.slots
        for reuse in (True, False)
    ]
    models += [(BatchedModel(BatchedSettings(name=options.model, slots=slots)), True) for slots in options.batched]
    conditions = [
        Condition(model, options.database, reuse=reuse, max_tokens=options.max_tokens) for model, reuse in models
    ]
    for number in range(options.rounds):
        start = number * options.questions
        asked = [questions[index % len(questions)] for index in range(start, start + options.questions)]
        for condition in conditions:
            condition.ask(asked if condition.reuse else asked[: options.cold_questions])
    text = json.dumps([condition.row() for condition in conditions], indent=2)
    if options.out:
        options.out.write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
