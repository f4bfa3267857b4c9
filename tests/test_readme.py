"""README keeps its promises: the session is what the commands print, pictures and figures are the repository's."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fresh_install import environment_of, named_extras
from model_endpoints import Handler, serving
from sqlcrystal.benchmarks.quarry import load
from sqlcrystal.models.recording import Recording
from sqlcrystal.serving.demo import RECORDING, RecordedReplies, _beside
from sqlcrystal.types import Message

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
MOST_LINES = 100


@contextmanager
def recorded_endpoint() -> Iterator[str]:
    """An endpoint that replies as the small model was recorded to, with the tokens that it took."""
    with Recording(_beside(RECORDING)) as recording:
        replies = RecordedReplies(recording.entries())

    def answer(handler: Handler, body: dict[str, Any], _: int) -> None:
        said = replies.chat([Message(each["role"], each["content"]) for each in body["messages"]])
        choice = {"message": {"role": "assistant", "content": said.text}, "finish_reason": "stop"}
        usage = {"prompt_tokens": said.prompt_tokens, "completion_tokens": said.completion_tokens}
        handler.reply(200, json.dumps({"choices": [choice], "usage": usage}).encode())

    with serving(answer) as server:
        yield f"{server.base_url}#qwen2.5-coder-1.5b"


def without_chance(text: str) -> str:
    """A session without what differs from run to run: ids, seconds, the person, and spaces at the ends of lines."""
    text = re.sub(r"\b[0-9a-f]{12,16}\b", "ID", text)
    text = re.sub(r"\d+\.\d s", "SECONDS", text)
    text = re.sub(r"(by|user) \w+", r"\1 PERSON", text)
    return "\n".join(line.rstrip() for line in text.splitlines())


def test_the_session_is_what_the_commands_print(tmp_path: Path) -> None:
    (session,) = re.findall(r"```console\n(\$ sqlcrystal ask.*?)```", README, re.S)
    shutil.copy(load().locations["payroll"], tmp_path / "payroll.sqlite")
    with recorded_endpoint() as model:
        settings = environment_of(named_extras(README), tmp_path / "cache", SQLCRYSTAL_MODEL=model)
        for step in re.split(r"^\$ ", session, flags=re.M)[1:]:
            command, _, told = step.partition("\n")
            done = subprocess.run(
                ["bash", "-c", command], cwd=tmp_path, env=settings, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr
            printed = without_chance(done.stdout)
            for part in told.split("...\n"):
                assert without_chance(part).strip() in printed, printed


def test_its_figures_are_those_of_the_bundled_report() -> None:
    summary = json.loads((ROOT / "studies" / "reports" / "quarry" / "summary.json").read_text(encoding="utf-8"))
    low, high = summary["lift_ci_pp"]
    told = (f"{summary['p0']:.1f} %", f"{summary['pm']:.1f} %", f"{summary['lift_pp']:.1f} points more")
    assert [figure for figure in (*told, f"{low:.1f} to {high:.1f}") if figure not in " ".join(README.split())] == []
    contrasts = {(each["a"], each["b"]): each for each in summary["contrasts"]}
    for pair, sentence in (
        (("none", "profile"), "{by} points ({ends})"),
        (("none", "served/served"), "{by} points ({ends})"),
        (("served without cards", "served"), "its cards add {by} points of its gain ({ends}; its repair left out)"),
        (("profile", "profile W0"), "add {by} points, which may be chance ({ends})"),
    ):
        by, ends = contrasts[pair]["delta_pp"], " to ".join(f"{end:.1f}" for end in contrasts[pair]["ci_pp"])
        assert sentence.format(by=f"{by:.1f}", ends=ends) in " ".join(README.split())
    for pair in (("none", "profile"), ("none", "served/served")):
        assert README.count(f"{summary['p0'] + contrasts[pair]['delta_pp']:.1f} %") == 2  # above, and in the table


def test_its_figures_of_definitions_forty_databases_and_other_tools_are_those_of_their_own_pages() -> None:
    words = " ".join(README.split())
    evidence = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
    row = re.findall(
        r"^\| \*\*definitions\*\* \| (\S+ %) \| none \| \*\*\+(\S+) points, \+(\S+) to \+(\S+)\*\*", evidence, re.M
    )
    assert "| {} | {} points ({} to {}) |".format(*row[0]) in words
    (forty,) = re.findall(
        r"^\| \*\*as served\*\*[^|]*\| \*\*(\S+ %)\*\* \| \*\*\+(\S+) points over one shot, \+(\S+) to \+([\d.]+)",
        evidence,
        re.M,
    )
    assert "{} as `ask` answers ({} points more, {} to {})".format(*forty) in words
    tools = json.loads((ROOT / "docs" / "reference" / "peers.json").read_text(encoding="utf-8"))["tools"]
    ours, vanna, llamaindex = (tools[name] for name in ("ours", "vanna", "llamaindex"))
    assert f"{ours['accuracy']:.1f} % in {ours['calls']:.2f} calls a question" in words
    assert f"Vanna {vanna['accuracy']:.1f} % and LlamaIndex {llamaindex['accuracy']:.1f} % in one" in words
    assert vanna["calls"] == llamaindex["calls"] == 1


def test_it_is_read_to_its_end_and_defines_its_letters() -> None:
    assert len(README.splitlines()) <= MOST_LINES
    assert max(map(len, README.splitlines())) <= 160
    assert not re.findall(r"\bP_[0KME]\b|\bCR\b", README)
    assert README.index("docs/pictures/") < README.index("make demo") < README.index("sqlcrystal ask")


@pytest.mark.parametrize("name", sorted(set(re.findall(r"docs/pictures/[\w-]+\.png", README))))
def test_every_picture_is_there(name: str) -> None:
    assert (ROOT / name).is_file()


GUIDES = ["start", "measure", "reproduce", "design", *(f"tutorial/{name}" for name in ("ask", "learn", "score"))]
GUIDES += [f"cookbook/{name}" for name in ("chat", "deploy", "internet-scale")]


@pytest.mark.parametrize("page", GUIDES)
def test_every_guide_opens_with_what_its_reader_will_have(page: str) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    assert re.match(r"# [^\n]+\n\nAt the end of this page ", text)


@pytest.mark.parametrize("page", GUIDES)
def test_every_guide_has_lines_that_a_reader_of_its_source_can_read(page: str) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    assert [line for line in prose.splitlines() if len(line) > 120 and not line.startswith("|")] == []
