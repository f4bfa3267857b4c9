"""Recordings keep what was asked and answered, survive crashes, and replay exactly."""

import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlcrystal.errors import BadReply, ConfigError, DataError, ModelUnavailable, RecordingMiss
from sqlcrystal.models.recorded import Mode, Recorded, verify
from sqlcrystal.models.recording import RecordedCall, Recording, export, merge, prune, request_key, stats
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.types import Completion, Message, Sampling


def ask(text: str) -> tuple[Message, ...]:
    return (Message("system", "You write SQL."), Message("user", text))


def echo(messages: Sequence[Message], sampling: Sampling) -> str:
    return f"SELECT '{messages[-1].content}', {sampling.index}"


def entry(text: str, *, digest: str = "d", reply: str = "SELECT 1") -> RecordedCall:
    sampling = Sampling()
    return RecordedCall(
        key=request_key(digest, ask(text), sampling),
        model="m",
        digest=digest,
        messages=ask(text),
        sampling=sampling,
        completion=Completion(text=reply, prompt_tokens=3, completion_tokens=2, seconds=0.25),
    )


def test_a_filled_recording_replays_the_same_completions_without_the_model(tmp_path: Path) -> None:
    with Recording(tmp_path / "r.sqlite") as recording:
        model = ScriptedModel(echo)
        filled = [Recorded(model, recording, "fill").chat(ask(f"q{i}"), sampling=Sampling()) for i in range(5)]
    with Recording(tmp_path / "r.sqlite") as recording:
        silent = ScriptedModel([])
        replayed = [Recorded(silent, recording, "replay").chat(ask(f"q{i}"), sampling=Sampling()) for i in range(5)]
    assert replayed == filled
    assert silent.prompts == []


def test_fill_asks_the_model_only_for_what_is_missing(tmp_path: Path) -> None:
    with Recording(tmp_path / "r.sqlite") as recording:
        first, second = ScriptedModel(echo), ScriptedModel(echo)
        Recorded(first, recording, "fill").chat(ask("known"), sampling=Sampling())
        model = Recorded(second, recording, "fill")
        model.chat(ask("known"), sampling=Sampling())
        model.chat(ask("new"), sampling=Sampling())
    assert [prompt[-1].content for prompt in second.prompts] == ["new"]


def test_live_asks_again_what_an_earlier_run_recorded_and_keeps_the_newer_reply(tmp_path: Path) -> None:
    with Recording(tmp_path / "r.sqlite") as recording:
        Recorded(ScriptedModel(["old"]), recording, "live").chat(ask("q"), sampling=Sampling())
        Recorded(ScriptedModel(["new"]), recording, "live").chat(ask("q"), sampling=Sampling())
        assert Recorded(ScriptedModel([]), recording, "replay").chat(ask("q"), sampling=Sampling()).text == "new"


def test_live_answers_a_repeated_request_as_it_did_the_first_time_so_that_a_replay_is_equal(tmp_path: Path) -> None:
    with Recording(tmp_path / "r.sqlite") as recording:
        model = Recorded(ScriptedModel(["one", "two"]), recording, "live")
        assert [model.chat(ask("q"), sampling=Sampling()).text for _ in range(2)] == ["one", "one"]


def test_a_replay_miss_names_the_question_the_model_and_the_prompt(tmp_path: Path) -> None:
    prompt = ask("CREATE TABLE harbour (a);\nCREATE TABLE boat (a);\n[Question]\nHow many boats?\nWrite SQL now.")
    with Recording(tmp_path / "r.sqlite") as recording, pytest.raises(RecordingMiss) as miss:
        Recorded(ScriptedModel(echo), recording, "replay").chat(prompt, sampling=Sampling())
    key = request_key(ScriptedModel(echo).digest, prompt, Sampling())
    for part in ("harbour, boat…: How many boats?", "scripted", key[:12]):
        assert part in str(miss.value)


def test_an_error_is_raised_and_never_recorded(tmp_path: Path) -> None:
    def fail(messages: Sequence[Message], sampling: Sampling) -> str:
        raise ModelUnavailable("down")

    with Recording(tmp_path / "r.sqlite") as recording:
        with pytest.raises(ModelUnavailable):
            Recorded(ScriptedModel(fail), recording, "fill").chat(ask("q"), sampling=Sampling())
        with pytest.raises(BadReply):
            Recorded(ScriptedModel([]), recording, "fill").chat(ask("q"), sampling=Sampling())
        assert len(recording) == 0


def test_an_unknown_mode_lists_the_modes(tmp_path: Path) -> None:
    with (
        Recording(tmp_path / "r.sqlite") as recording,
        pytest.raises(ConfigError, match=r"'rewind'; choose from fill, live, replay"),
    ):
        Recorded(ScriptedModel(echo), recording, "rewind")  # type: ignore[arg-type]


def test_identical_requests_in_flight_are_sent_once(tmp_path: Path) -> None:
    started = threading.Barrier(16)

    def slow(messages: Sequence[Message], sampling: Sampling) -> str:
        time.sleep(0.2)
        return "SELECT 1"

    inner = ScriptedModel(slow)
    with Recording(tmp_path / "r.sqlite") as recording:
        model = Recorded(inner, recording, Mode.FILL)

        def call(_: int) -> str:
            started.wait()
            return model.chat(ask("same"), sampling=Sampling()).text

        with ThreadPoolExecutor(16) as pool:
            assert set(pool.map(call, range(16))) == {"SELECT 1"}
    assert len(inner.prompts) == 1


def test_many_threads_share_one_recording_without_losing_an_entry(tmp_path: Path) -> None:
    with Recording(tmp_path / "r.sqlite") as recording:
        model = Recorded(ScriptedModel(echo), recording, "fill")
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(lambda i: model.chat(ask(f"q{i % 100}"), sampling=Sampling()), range(400)))
        assert len(recording) == 100


def test_a_killed_process_leaves_every_finished_completion_readable(tmp_path: Path) -> None:
    program = """
        import sys
        from sqlcrystal.models.recorded import Recorded
        from sqlcrystal.models.recording import Recording
        from sqlcrystal.models.scripted import ScriptedModel
        from sqlcrystal.types import Message, Sampling
        model = Recorded(ScriptedModel(lambda m, s: "SELECT " + m[-1].content), Recording(sys.argv[1]), "fill")
        i = 0
        while True:
            model.chat([Message("user", str(i))], sampling=Sampling())
            print(i, flush=True)
            i += 1
    """
    path = tmp_path / "r.sqlite"
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), str(path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        while (line := process.stdout.readline()) and int(line) < 200:
            pass
        os.kill(process.pid, signal.SIGKILL)
        rest = process.stdout.read().split("\n")
    finished = max(int(number) for number in [line, *rest] if number.strip().isdigit())
    with Recording(path) as recording:
        replay = Recorded(ScriptedModel([]), recording, "replay")
        for i in range(finished + 1):
            assert replay.chat([Message("user", str(i))], sampling=Sampling()).text == f"SELECT {i}"


@given(
    first=st.tuples(st.sampled_from("xy"), st.sampled_from("pq"), st.sampled_from([0.0, 0.7]), st.integers(0, 2)),
    second=st.tuples(st.sampled_from("xy"), st.sampled_from("pq"), st.sampled_from([0.0, 0.7]), st.integers(0, 2)),
)
def test_two_requests_share_a_key_exactly_when_everything_asked_is_equal(
    first: tuple[str, str, float, int], second: tuple[str, str, float, int]
) -> None:
    keys = [
        request_key(digest, ask(text), Sampling(temperature=temperature, index=index))
        for digest, text, temperature, index in (first, second)
    ]
    assert (keys[0] == keys[1]) == (first == second)


def test_where_one_message_ends_and_the_next_begins_is_part_of_the_key() -> None:
    split = [Message("user", "a"), Message("user", "b")]
    assert request_key("d", split, Sampling()) != request_key("d", [Message("user", "ab")], Sampling())


def test_the_shipped_file_holds_the_same_entries_and_the_same_content_gives_the_same_bytes(tmp_path: Path) -> None:
    entries = [entry(f"q{i}") for i in range(20)]
    with Recording(tmp_path / "a.sqlite") as first, Recording(tmp_path / "b.sqlite") as second:
        first.add(entries)
        second.add(reversed(entries))
        export(first, tmp_path / "a.jsonl.xz")
        export(second, tmp_path / "b.jsonl.xz")
    assert (tmp_path / "a.jsonl.xz").read_bytes() == (tmp_path / "b.jsonl.xz").read_bytes()
    shipped = Recording(tmp_path / "a.jsonl.xz")
    assert {e.key: e for e in shipped.entries()} == {e.key: e for e in entries}


def test_a_shipped_recording_of_five_thousand_completions_is_small(tmp_path: Path) -> None:
    rng = random.Random(0)
    schemas = ["".join(rng.choices("abcdefghij_ ,()\n", k=6000)) for _ in range(10)]
    with Recording(tmp_path / "r.sqlite") as recording:
        recording.add(
            entry(f"{schemas[i % 10]} Question {i}?", reply="SELECT " + str(rng.random())) for i in range(5000)
        )
        export(recording, tmp_path / "r.jsonl.xz")
    assert len(Recording(tmp_path / "r.jsonl.xz")) == 5000
    assert (tmp_path / "r.jsonl.xz").stat().st_size < 2_000_000


def test_a_shipped_recording_is_never_changed(tmp_path: Path) -> None:
    with Recording(tmp_path / "r.sqlite") as recording:
        export(recording, tmp_path / "r.jsonl.xz")
    with pytest.raises(DataError, match="never changed"):
        Recording(tmp_path / "r.jsonl.xz").add([entry("q")])


@pytest.mark.parametrize("name", ["r.jsonl.xz", "r.sqlite"])
def test_a_file_that_is_no_recording_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"this is not a recording at all, not even nearly" * 20)
    with pytest.raises(DataError, match=r"recording .*: [^\n]*\Z"):
        Recording(tmp_path / name)


def test_a_run_copies_what_it_uses_from_the_recordings_it_also_looks_into(tmp_path: Path) -> None:
    used, unused = entry("used"), entry("unused")
    with Recording(tmp_path / "old.sqlite") as old, Recording(tmp_path / "run.sqlite", also=[old]) as run:
        old.add([used, unused])
        assert run.get(used.key) == used.completion
        assert run.keys() == {used.key}


def test_merging_keeps_every_entry_and_the_later_source_wins(tmp_path: Path) -> None:
    with (
        Recording(tmp_path / "a.sqlite") as first,
        Recording(tmp_path / "b.sqlite") as second,
        Recording(tmp_path / "both.sqlite") as both,
    ):
        first.add([entry("shared", reply="old"), entry("only a")])
        second.add([entry("shared", reply="new"), entry("only b")])
        merge([first, second], both)
        assert len(both) == 3
        assert both.get(entry("shared").key) == entry("shared", reply="new").completion


@pytest.mark.parametrize("name", ["kept.sqlite", "kept.jsonl.xz"])
def test_pruning_keeps_exactly_the_keys_a_study_used(tmp_path: Path, name: str) -> None:
    entries = [entry(f"q{i}") for i in range(10)]
    keep = {e.key for e in entries[:4]} | {"a key of another recording"}
    with Recording(tmp_path / "r.sqlite") as recording:
        recording.add(entries)
        assert prune(recording, keep, tmp_path / name) == 4
    with Recording(tmp_path / name) as kept:
        assert kept.keys() == {e.key for e in entries[:4]}


def test_verifying_reports_how_many_re_asked_replies_are_equal_and_shows_those_that_are_not(tmp_path: Path) -> None:
    with Recording(tmp_path / "r.sqlite") as recording:
        model = Recorded(ScriptedModel(echo), recording, "fill")
        for number in range(10):
            model.chat(ask(f"q{number}"), sampling=Sampling())
        changed = ScriptedModel(
            lambda messages, sampling: "SELECT 0" if messages[-1].content == "q3" else echo(messages, sampling)
        )
        report = verify(recording, changed, n=100, rng=random.Random(1))
    assert (report.asked, report.agreed) == (10, 9)
    assert [(disagreement.recorded, disagreement.live) for disagreement in report.disagreements] == [
        ("SELECT 'q3', 0", "SELECT 0")
    ]


def test_verifying_a_model_the_recording_does_not_hold_is_an_error_not_full_agreement(tmp_path: Path) -> None:
    with Recording(tmp_path / "r.sqlite") as recording:
        recording.add([entry("q", digest="other")])
        with pytest.raises(ConfigError, match="holds no completion"):
            verify(recording, ScriptedModel(echo), n=5, rng=random.Random(0))


def test_stats_add_up_what_each_model_cost(tmp_path: Path) -> None:
    with Recording(tmp_path / "r.sqlite") as recording:
        recording.add([entry("a"), entry("b"), entry("a", digest="e")])
        [first, second] = stats(recording)
    assert (first.digest, first.completions, first.prompt_tokens, first.completion_tokens) == ("d", 2, 6, 4)
    assert (second.digest, second.completions, second.seconds) == ("e", 1, 0.25)
