"""Gold never reaches a stage: a marker planted in every gold is nowhere in the folder that a study leaves behind."""

import contextlib
import io
import json
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from shop import QUESTION, RIGHT, build, fenced, repairing
from sqlcrystal.assembly import REGIMES, SOURCES, WRITERS
from sqlcrystal.config import parse_study
from sqlcrystal.ledger.folder import RECORDING
from sqlcrystal.ledger.records import Ledger, read_ledger
from sqlcrystal.models.recording import Recording
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.study.opening import run_study
from sqlcrystal.study.report.write import write_report
from sqlcrystal.types import Episode, Message, Sampling
from sqlcrystal.writing.card import Verbatim

MARKER = "sentinel_of_gold"
GOLD = f"SELECT COUNT(*) AS \"{MARKER}\" FROM item WHERE kind = 'HW' AND '{MARKER}' <> '' -- {MARKER}"
LOGGED = {"oracle", "round-trip"}
"""The default, and the one that only a log can feed: there gold is the input, and tests/study/test_log.py looks."""
SETTINGS = ["transfer", "repair", "engine-repair", "replay", "retention", "rerun"]


def planted(folder: Path) -> Path:
    """A benchmark of one's own whose golds carry the marker as a column name, a value and a comment."""
    folder.mkdir()
    build(folder / "shop.sqlite")
    questions = [
        {"id": str(n), "question": f"{QUESTION.text} ({n})", "sql": GOLD, "database": "shop"} for n in range(10)
    ]
    (folder / "questions.jsonl").write_text("\n".join(map(json.dumps, questions)))
    return folder


def every_source_with_every_writer() -> list[dict[str, Any]]:
    """Arms that change one factor at a time until each source was written by each writer, and each gate was asked."""
    arms: list[dict[str, Any]] = [
        {"name": "none", "retriever": "none", "settings": ["transfer", "repair", "engine-repair"]}
    ]
    gates = [name if name != "noisy" else "noisy:20%" for name in REGIMES if name not in LOGGED]
    arms += [{"name": name, "admission": name, "settings": SETTINGS} for name in gates]
    for source in SOURCES:
        if source != "T3":
            arms.append({"name": source, "source": source, "settings": SETTINGS})
        base = "W0" if source == "T3" else source
        arms += [
            {"name": f"{source} {writer}", "base": base, "writer": writer, "settings": SETTINGS}
            for writer in WRITERS
            if writer != "W0"
        ]
    return arms


def half_right(messages: Sequence[Message], sampling: Sampling) -> str:
    """Right at once for half of the questions, and in every second sample; else wrong until it was led."""
    asked = re.search(r"there\? \((\d)\)\n(?:Write|Think)", messages[1].content)
    lucky = asked and int(asked[1]) % 2 if not sampling.temperature else sampling.index % 2 == 0
    return fenced(RIGHT) if asked and lucky else repairing(messages, sampling)


@contextlib.contextmanager
def overheard() -> Iterator[Callable[[], str]]:
    """Everything printed, and everything this package logs, at every level."""
    heard = io.StringIO()
    handler = logging.StreamHandler(heard)
    root = logging.getLogger("sqlcrystal")
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        with contextlib.redirect_stdout(heard), contextlib.redirect_stderr(heard):
            yield heard.getvalue
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


def evidence(folder: Path, arms: list[dict[str, Any]]) -> tuple[str, Ledger]:
    """All that a study and its report print, log and write; what is compressed or packed is read as they read it."""
    study = parse_study(
        {
            "name": "sentinel",
            "benchmark": {"name": "own", "data": str(planted(folder / "benchmark"))},
            "seeds": [42],
            "default": {"name": "W0", "settings": SETTINGS},
            "arm": arms,
            "contrast": [{"a": "none", "b": "W0", "confirmatory": True}],
        }
    )
    run = folder / "run"
    with overheard() as heard:
        run_study(study, run, model=ScriptedModel(half_right))
        write_report(run)
    with Recording(run / RECORDING) as recording:
        calls = msgspec.json.encode(list(recording.entries())).decode()
    files = "\n".join(path.read_bytes().decode(errors="replace") for path in sorted(run.rglob("*")) if path.is_file())
    return "\n".join([heard(), calls, files]), read_ledger(run)


def test_gold_is_nowhere_in_what_a_study_of_every_source_and_writer_leaves_behind(tmp_path: Path) -> None:
    seen, ledger = evidence(tmp_path, every_source_with_every_writer())
    assert MARKER not in seen
    # The search is worth something only if it went over cards of every making, in prompts, logs and the report.
    assert {card.arm for card in ledger.cards} >= {"W0", "union", "T4 W5", "success W1", "ungated", "engine"}
    assert seen.count("[Similar solved questions and their final SQL]") > 20
    assert "<html" in seen


def leaking(monkeypatch: pytest.MonkeyPatch, leak: Callable[[], str]) -> None:
    render = Verbatim.render
    monkeypatch.setattr(Verbatim, "render", lambda writer, episode: render(writer, episode) + leak())


def test_a_writer_that_leaks_gold_would_be_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leaking(monkeypatch, lambda: GOLD)
    seen, _ = evidence(tmp_path, every_source_with_every_writer()[:1])
    assert MARKER in seen


def test_a_stage_that_logs_gold_would_be_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def log() -> str:
        logging.getLogger("sqlcrystal").debug("gold is %s", GOLD)
        return ""

    leaking(monkeypatch, log)
    seen, _ = evidence(tmp_path, every_source_with_every_writer()[:1])
    assert MARKER in seen


def test_an_episode_has_no_room_for_gold() -> None:
    assert set(Episode.__struct_fields__) == {"attempt", "source", "sql", "rounds"}
