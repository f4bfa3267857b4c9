"""Outcomes as lines on disk, and the table that is made of them."""

import json
import statistics
import threading
from pathlib import Path
from typing import Any

import questions
from contestants import CONTESTANTS

from sqlcrystal.benchmarks.cases import Benchmark
from sqlcrystal.measurement.comparison import compare
from sqlcrystal.measurement.outcomes import paired

OURS = "ours"
_lock = threading.Lock()


def append_line(file: Path, document: dict[str, Any]) -> None:
    """Add one line; threads may share a file."""
    with _lock:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(document, ensure_ascii=False) + "\n")


def read_lines(file: Path) -> list[dict[str, Any]]:
    """Read what is there; the last line of a process that was killed may be cut."""
    found = []
    for line in file.read_text(encoding="utf-8").splitlines() if file.is_file() else ():
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return found


def read_outcomes(file: Path) -> dict[str, dict[str, Any]]:
    """Read the outcome of each question; one that failed before the model was asked is none, and is asked again."""
    return {line["id"]: line for line in read_lines(file) if line["calls"] or not line["error"]}


def write(out: Path, asked: Benchmark, *, rule: str) -> str:
    """Judge every tool that has answered, keep results.json, and give the table in Markdown."""
    about = json.loads((out / "about.json").read_text(encoding="utf-8"))
    ids = {case.question.id for case in asked.cases}
    outcomes = {
        name: [line for key, line in read_outcomes(out / "outcomes" / f"{name}.jsonl").items() if key in ids]
        for name in CONTESTANTS
    }
    written = {name: read_lines(out / "writes" / f"{name}.jsonl") for name in CONTESTANTS}
    outcomes = {name: lines for name, lines in outcomes.items() if lines or written[name]}
    answers = {name: {outcome["id"]: outcome["sql"] for outcome in lines} for name, lines in outcomes.items()}
    right = questions.judged(asked, answers, rule=rule) if answers else {}
    tools = {
        name: {
            **_figures(asked, lines, right[name]),
            **_beside_ours(asked, right, answers, name),
            **_writes(written[name]),
            **about["tools"].get(name, {}),
        }
        for name, lines in outcomes.items()
    }
    for name, figures in tools.items():
        figures["right_by_question"] = {key: right[name][key] for key in sorted(answers[name])}
    document = {**about, "rule": rule, "tools": tools}
    (out / "results.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    text = _markdown(document)
    (out / "table.md").write_text(text, encoding="utf-8")
    return text


def _figures(asked: Benchmark, lines: list[dict[str, Any]], right: dict[str, bool]) -> dict[str, Any]:
    answered = {line["id"] for line in lines}
    n = len(answered)
    if not n:
        return {"n": 0, "of": len(asked.cases)}

    def mean(field: str) -> float:
        return round(sum(line[field] for line in lines) / n, 2)

    return {
        "n": n,
        "of": len(asked.cases),
        "right": sum(right[key] for key in answered),
        "accuracy": round(100 * sum(right[key] for key in answered) / n, 1),
        "errors": sum(bool(line["error"]) for line in lines),
        "calls": mean("calls"),
        "prompt_tokens": mean("prompt_tokens"),
        "completion_tokens": mean("completion_tokens"),
        "model_seconds": mean("model_seconds"),
        "median_seconds": round(statistics.median(line["seconds"] for line in lines), 1),
    }


def _beside_ours(
    asked: Benchmark, right: dict[str, dict[str, bool]], answers: dict[str, dict[str, str]], name: str
) -> dict[str, Any]:
    """Compare ours with a tool on the questions that both have answered, over databases."""
    if name == OURS or OURS not in right:
        return {}
    pairs = [
        (case.question.database, case.question.id, "", right[name][case.question.id], right[OURS][case.question.id])
        for case in asked.cases
        if case.question.id in answers[name] and case.question.id in answers[OURS]
    ]
    if len({database for database, *_ in pairs}) < 2:
        return {}
    found = compare(paired([(*key, float(a), float(b)) for *key, a, b in pairs]))  # type: ignore[misc]
    low, high = found.ci_low_pp, found.ci_high_pp
    return {
        "ours_minus": round(found.delta_pp, 1),
        "interval": None if low is None or high is None else [round(low, 1), round(high, 1)],
        "compared": len(pairs),
    }


def _writes(lines: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        f"writes_{kind}": {
            "made": sum(line["kind"] == kind for line in lines),
            "reached": sum(line["reached"] for line in lines if line["kind"] == kind),
        }
        for kind in ("words", "sql")
        if any(line["kind"] == kind for line in lines)
    }


# ── Markdown ─────────────────────────────────────────────────────────────────────────────────────────────────────────

HEAD = (
    "tool",
    "version",
    "right, %",
    "of",
    "ours − it, points (95 %)",
    "calls",
    "prompt tokens",
    "reply tokens",
    "model s",
    "writes: words",
    "writes: SQL",
)


def _markdown(document: dict[str, Any]) -> str:
    rows = [_row(name, figures) for name, figures in document["tools"].items()]
    lines = ["| " + " | ".join(HEAD) + " |", "|" + "---|" * 2 + "---:|" * (len(HEAD) - 2)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    settings = [f"- **{CONTESTANTS[name].title}**: {CONTESTANTS[name].settings}." for name in document["tools"]]
    return "\n".join([*lines, "", *settings]) + "\n"


def _row(name: str, figures: dict[str, Any]) -> tuple[str, ...]:
    version = next(iter(figures.get("versions", {"": "?"}).values()))
    difference = "—"
    if "ours_minus" in figures:
        difference = f"{figures['ours_minus']:+.1f}"
        if figures["interval"]:
            low, high = figures["interval"]
            difference += f" ({low:+.1f} to {high:+.1f})"
    asked = str(figures["of"]) if figures["n"] == figures["of"] else f"{figures['n']} / {figures['of']}"
    return (
        CONTESTANTS[name].title,
        version,
        _number(figures.get("accuracy"), ".1f"),
        asked,
        difference,
        _number(figures.get("calls"), ".2f"),
        _number(figures.get("prompt_tokens"), ",.0f"),
        _number(figures.get("completion_tokens"), ",.0f"),
        _number(figures.get("model_seconds"), ".2f"),
        _reached(figures.get("writes_words")),
        _reached(figures.get("writes_sql")),
    )


def _number(value: float | None, form: str) -> str:
    return "—" if value is None else format(value, form)


def _reached(counts: dict[str, int] | None) -> str:
    return f"{counts['reached']} of {counts['made']}" if counts else "—"
