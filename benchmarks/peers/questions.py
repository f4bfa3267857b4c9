"""The questions that every tool is asked, the cards that our memory holds of the others, and the judge."""

import tempfile
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from sqlcrystal import load_benchmark, read_study, run_study, score_predictions
from sqlcrystal.benchmarks.cases import Benchmark, Case, splits_of
from sqlcrystal.ledger.folder import banked_entries

ARM = "W0"
COLLECTION = """
name = "peers-bank"
benchmark = "quarry"
model = "qwen2.5-coder-1.5b"
embedder = "wordllama"
seeds = [{seed}]
max_tokens = 384
budget = 1
card_order = "stable"
timeout = 10.0
mode = "replay"
recordings = ["{recording}"]

[default]
name = "W0"
source = "T3-look"
settings = ["transfer"]
"""
"""The default arm of studies/quarry.toml alone: its collection replays in a minute."""


def held_out(benchmark: Benchmark, *, seed: int, folds: int, fold: int) -> Benchmark:
    """Keep the questions that a study holds out, by database, as they are asked."""
    splits = splits_of(benchmark.cases, seeds=[seed], folds=folds)
    return replace(benchmark, cases=splits[fold if folds else seed].held_out)


def load(name: str, data: Path | None) -> Benchmark:
    """Load the whole benchmark."""
    return load_benchmark(name, data)


def text_of(case: Case) -> str:
    """Write the question as every tool is asked it: with its hint, where it has one."""
    hint = case.question.evidence.strip()
    return f"{case.question.text.strip()}\nHint: {hint}" if hint else case.question.text.strip()


def replayed_bank(out: Path, *, seed: int) -> Path:
    """Collect Quarry's bank again from its recording; the run is kept."""
    folder = out / f"bank-{seed}"
    if not (folder / "ledger.json").is_file():
        recording = Path(__file__).resolve().parents[2] / "studies" / "recordings" / "quarry.jsonl.xz"
        with tempfile.TemporaryDirectory() as place:
            file = Path(place) / "bank.toml"
            file.write_text(COLLECTION.format(seed=seed, recording=recording), encoding="utf-8")
            run_study(read_study(file), folder)
    return folder


def examples(run: Path, *, seed: int) -> dict[str, list[dict[str, Any]]]:
    """Give the cards of a run's bank by database: question and SQL for every tool with a memory, the card for ours."""
    found = defaultdict(list)
    for entry in banked_entries(run, arm=ARM, seed=seed):
        card = entry.card
        found[card.database].append(
            {"question": card.question.text, "sql": card.sql, "card": msgspec.to_builtins(entry)}
        )
    return dict(found)


def judged(benchmark: Benchmark, answers: Mapping[str, Mapping[str, str]], *, rule: str) -> dict[str, dict[str, bool]]:
    """Tell of every tool which questions it has right; an answer that is missing is wrong."""
    predictions = {
        tool: [given.get(case.question.id, "") for case in benchmark.cases] for tool, given in answers.items()
    }
    scorings = score_predictions(benchmark, predictions, rule=rule, jobs=1)
    return {
        tool: {scored.question_id: scored.correct for scored in scoring.scored}
        for tool, scoring in zip(predictions, scorings, strict=True)
    }
