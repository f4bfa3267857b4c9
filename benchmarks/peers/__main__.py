"""sqlcrystal beside the tools that people would use instead: same weights, questions, databases and examples.

    python benchmarks/peers                                     Quarry's held-out questions of seed 42
    python benchmarks/peers --benchmark spider --data DIR --folds 5 --fold 1 --bank RUN      a fold of forty databases
    python benchmarks/peers --only vanna --limit 10 --out build/peers-try                    a look at what is sent
    python benchmarks/peers --rehearse --out build/peers-rehearsal                           without a model

Every tool lives in an environment of its own below build/peers and is asked a line at a time; all of them find the
model at one endpoint, where calls and tokens are counted and prompts are kept (OUT/calls/TOOL.jsonl). Each question's
outcome is written down at once (OUT/outcomes/TOOL.jsonl), so that the same command goes on where it was stopped.
"""

import argparse
import json
import queue
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import questions
import table
import writes
from contestants import CONTESTANTS, Contestant, newest, python_of, versions
from counting import CountedModel, endpoint
from talking import Talking, TimeIsUp

from sqlcrystal.benchmarks.cases import Benchmark, Case
from sqlcrystal.models.opening import open_model
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.types import Call, Completion, Message, Sampling

ROOT = Path(__file__).resolve().parents[2]


class Arena(NamedTuple):
    """What every tool meets."""

    model: CountedModel
    base_url: str
    benchmark: Benchmark
    examples: dict[str, list[dict[str, Any]]]
    out: Path
    seconds: float
    workers: int


def main() -> None:
    """Ask what is not answered yet, judge, and write the table."""
    settings = _settings()
    settings.out.mkdir(parents=True, exist_ok=True)
    whole = questions.load(settings.benchmark, settings.data)
    asked = questions.held_out(whole, seed=settings.seed, folds=settings.folds, fold=settings.fold)
    bank = settings.bank or questions.replayed_bank(settings.out, seed=settings.seed)
    examples = questions.examples(bank, seed=settings.fold if settings.folds else settings.seed)
    if settings.limit:
        asked = msgspec.structs.replace(asked, cases=asked.cases[:: max(1, len(asked.cases) // settings.limit)])
    tools = {name: CONTESTANTS[name] for name in settings.only}
    pythons = {name: python_of(tool, settings.environments) for name, tool in tools.items()}
    about = {name: {"versions": versions(tool, pythons[name]), "newest": newest(tool)} for name, tool in tools.items()}
    print(json.dumps(about), file=sys.stderr, flush=True)
    if not settings.judge:
        _keep_about(settings, about, asked, examples)
        model = CountedModel(_model(settings))
        with endpoint(model) as base_url:
            arena = Arena(model, base_url, asked, examples, settings.out, settings.seconds, settings.workers)
            for name, tool in tools.items():
                _ask_all(arena, name, tool, pythons[name])
                if settings.writes:
                    _ask_to_write(arena, name, tool, pythons[name], whole)
    print(table.write(settings.out, asked, rule=settings.rule))


def _settings() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "peers-run")
    parser.add_argument("--environments", type=Path, default=ROOT / "build" / "peers")
    parser.add_argument("--benchmark", default="quarry", help="a name from `sqlcrystal benchmark list`")
    parser.add_argument("--data", type=Path, help="its folder")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--folds", type=int, default=0, help="of the seed; 0 holds out the study's 30 percent")
    parser.add_argument("--fold", type=int, default=1)
    parser.add_argument("--bank", type=Path, help="a study's run whose cards are the examples; Quarry's is replayed")
    parser.add_argument("--only", type=_names, default=list(CONTESTANTS), help="tools, joined by commas")
    parser.add_argument("--limit", type=int, default=0, help="at most about so many questions, spread over all")
    parser.add_argument("--rule", default="bird", help="the judge's rule")
    parser.add_argument("--model", default="qwen2.5-coder-1.5b")
    parser.add_argument("--kind", default="batched", choices=["batched", "local"])
    parser.add_argument("--threads", type=int, default=0, help="of the model; 0: one per core")
    parser.add_argument("--workers", type=int, default=4, help="processes of a tool at once")
    parser.add_argument("--seconds", type=float, default=1800.0, help="for one question")
    parser.add_argument("--no-writes", dest="writes", action="store_false", help="leave the requests to write out")
    parser.add_argument("--judge", action="store_true", help="ask nothing: judge what is answered")
    parser.add_argument("--rehearse", action="store_true", help="a scripted model, to read the prompts")
    return parser.parse_args()


def _names(text: str) -> list[str]:
    names = text.split(",")
    if unknown := [name for name in names if name not in CONTESTANTS]:
        raise argparse.ArgumentTypeError(f"unknown {unknown[0]!r}; choose from {', '.join(CONTESTANTS)}")
    return names


class Rehearsal:
    """A model that always says the same."""

    name, slots = "rehearsal", 4

    def __init__(self) -> None:
        """Prepare the one reply."""
        self._model = ScriptedModel(lambda *_: "```sql\nSELECT 1;\n```")

    def chat(self, messages: list[Message], *, sampling: Sampling, stop: tuple[str, ...] = ()) -> Completion:  # noqa: ARG002
        """Say it."""
        return self._model.chat(messages, sampling=sampling)


def _model(settings: argparse.Namespace) -> Any:
    if settings.rehearse:
        return Rehearsal()
    model: Any = open_model({"kind": settings.kind, "name": settings.model, "threads": settings.threads, "slots": 8})
    model.load()  # before any tool's time runs
    return model


# ── asking ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _ask_all(arena: Arena, name: str, tool: Contestant, python: Path) -> None:
    """Share the questions that have no outcome yet among a few processes of the tool, a database to each at a time."""
    file = arena.out / "outcomes" / f"{name}.jsonl"
    known = table.read_outcomes(file)
    waiting = [case for case in arena.benchmark.cases if case.question.id not in known]
    if not waiting:
        return
    by_database: dict[str, list[Case]] = {}
    for case in waiting:
        by_database.setdefault(case.question.database, []).append(case)
    parts: queue.SimpleQueue[tuple[str, list[Case]]] = queue.SimpleQueue()
    for part in by_database.items():
        parts.put(part)
    began = time.perf_counter()
    with ThreadPoolExecutor(arena.workers) as pool:
        workers = [pool.submit(_work, arena, name, tool, python, parts) for _ in range(arena.workers)]
    for worker in workers:
        worker.result()
    print(f"{name}: {len(waiting)} questions in {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)


def _work(
    arena: Arena, name: str, tool: Contestant, python: Path, parts: "queue.SimpleQueue[tuple[str, list[Case]]]"
) -> None:
    """Ask one database after the other of one process, as long as there are some."""
    talking = _started(arena, name, tool, python)
    try:
        while True:
            database, cases = parts.get_nowait()
            _open(arena, tool, talking, database)
            for case in cases:
                if not _ask(arena, name, talking, case):
                    talking.end()
                    talking = _started(arena, name, tool, python)
                    _open(arena, tool, talking, database)
    except queue.Empty:
        return
    finally:
        talking.end()


def _ask(arena: Arena, name: str, talking: Talking, case: Case) -> bool:
    """Ask one question and write its outcome down; False when the process is of no more use."""
    began, useful = time.perf_counter(), True
    try:
        reply = talking.ask("answer", question=questions.text_of(case))
    except TimeIsUp as late:
        reply, useful = {"error": str(late)}, False
    outcome = {
        "id": case.question.id,
        "database": case.question.database,
        "sql": reply.get("sql", ""),
        "error": reply.get("error", ""),
        "seconds": round(time.perf_counter() - began, 2),
        **_counted(arena, name, talking.key, case.question.id),
    }
    table.append_line(arena.out / "outcomes" / f"{name}.jsonl", outcome)
    return useful


def _open(arena: Arena, tool: Contestant, talking: Talking, database: str) -> None:
    cards = arena.examples.get(database, []) if tool.remembers else []
    reply = talking.ask("open", place=arena.benchmark.locations[database], examples=cards)
    if reply.get("error"):
        raise RuntimeError(f"{tool.title}: cannot open {database}: {reply['error']}")


def _started(arena: Arena, name: str, tool: Contestant, python: Path) -> Talking:
    log = arena.out / f"{name}.log"
    key = f"{name}-{time.monotonic_ns()}"  # a call that outlives its process is not counted as its successor's
    return Talking(
        tool,
        python,
        base_url=arena.base_url,
        key=key,
        model=arena.model.name,
        log=log.absolute(),
        seconds=arena.seconds,
    )


def _ask_to_write(arena: Arena, name: str, tool: Contestant, python: Path, whole: Benchmark) -> None:
    """Make the twenty requests to write that were not made yet."""
    file = arena.out / "writes" / f"{name}.jsonl"
    known = {(done["kind"], done["request"]) for done in table.read_lines(file)}
    if writes.DATABASE not in whole.locations:
        return
    original = Path(whole.locations[writes.DATABASE])
    cards = arena.examples.get(writes.DATABASE, []) if tool.remembers else []
    waiting = [request for request in writes.requests() if request not in known]
    talking = _started(arena, name, tool, python) if waiting else None
    for kind, text in waiting:
        assert talking is not None
        done = writes.attempt(talking, original, cards, kind, text)
        table.append_line(file, {**done, "calls": _counted(arena, f"{name}-writes", talking.key, text)["calls"]})
        if talking.ended:
            talking = _started(arena, name, tool, python)
    if talking is not None:
        talking.end()


def _counted(arena: Arena, name: str, key: str, question: str) -> dict[str, Any]:
    calls = arena.model.taken(key)
    for call in calls:
        table.append_line(arena.out / "calls" / f"{name}.jsonl", {"id": question, **_told(call)})
    done = [call.completion for call in calls]
    return {
        "calls": len(done),
        "prompt_tokens": sum(reply.prompt_tokens for reply in done),
        "completion_tokens": sum(reply.completion_tokens for reply in done),
        "model_seconds": round(sum(reply.seconds for reply in done), 3),
    }


def _told(call: Call) -> dict[str, Any]:
    return {
        "messages": msgspec.to_builtins(call.messages),
        "temperature": call.sampling.temperature,
        "reply": call.completion.text,
        "finish": call.completion.finish_reason,
    }


def _keep_about(
    settings: argparse.Namespace, about: dict[str, Any], asked: Benchmark, examples: dict[str, list[dict[str, Any]]]
) -> None:
    """Write down what was compared; tools of earlier runs stay."""
    file = settings.out / "about.json"
    before = json.loads(file.read_text()) if file.is_file() else {"tools": {}}
    document = {
        "benchmark": settings.benchmark,
        "seed": settings.seed,
        "fold": f"{settings.fold} of {settings.folds}" if settings.folds else "",
        "questions": len(asked.cases),
        "databases": len(asked.databases),
        "examples": sum(map(len, examples.values())),
        "model": "rehearsal" if settings.rehearse else settings.model,
        "kind": settings.kind,
        "threads": settings.threads,
        "workers": settings.workers,
        "tools": {**before["tools"], **about},
    }
    file.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
