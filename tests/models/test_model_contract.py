"""One suite over every language model: a reply or a ModelError, counts, thread safety, a stable digest."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from model_endpoints import behave, serving
from sqlcrystal.errors import BadReply, ConfigError, DataError, ModelRejected, ModelTimeout
from sqlcrystal.models.catalogue import KNOWN_MODELS, weights_path
from sqlcrystal.models.local import LocalModel, LocalSettings
from sqlcrystal.models.opening import open_model
from sqlcrystal.models.recorded import Recorded
from sqlcrystal.models.recording import Recording
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.protocols import LanguageModel
from sqlcrystal.types import Message, Sampling

SMALL = "qwen2.5-coder-0.5b"
SHORT = Sampling(max_tokens=12)


def scripted() -> LanguageModel:
    return ScriptedModel(lambda messages, sampling: f"SELECT '{messages[-1].content}'")


@pytest.fixture(scope="module")
def local() -> Iterator[LocalModel]:
    if not weights_path(SMALL).is_file():
        pytest.skip(f"the weights of {SMALL} are not in the cache: sqlcrystal model pull {SMALL}")
    model = LocalModel(LocalSettings(name=SMALL, slots=2, context=2048))
    yield model
    model.close()


@pytest.fixture(params=["scripted", "recorded", "openai", pytest.param("local", marks=pytest.mark.live_model)])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LanguageModel]:
    if request.param == "scripted":
        yield scripted()
    elif request.param == "recorded":
        with Recording(tmp_path / "r.sqlite") as recording:
            yield Recorded(scripted(), recording, "fill")
    elif request.param == "openai":
        with serving(behave) as server:
            remote = open_model(f"{server.base_url}#m")
            yield remote
            remote.close()
    else:
        yield request.getfixturevalue("local")


def test_a_chat_yields_text_a_finish_reason_counts_and_latency(model: LanguageModel) -> None:
    reply = model.chat([Message("system", "Be brief."), Message("user", "Count to three.")], sampling=SHORT)
    assert reply.text.strip()
    assert reply.finish_reason in ("stop", "length")
    assert reply.prompt_tokens > 0
    assert 0 < reply.completion_tokens <= 12
    assert reply.seconds >= 0


def test_name_and_digest_are_set_and_do_not_change_with_use(model: LanguageModel) -> None:
    before = (model.name, model.digest)
    model.chat([Message("user", "Say yes.")], sampling=SHORT)
    assert (model.name, model.digest) == before
    assert len(model.digest) == 64


def test_four_threads_each_get_a_reply_of_their_own(model: LanguageModel) -> None:
    def ask(word: str) -> str:
        prompt = f"Repeat this one word and nothing else: {word}"
        return model.chat([Message("user", prompt)], sampling=SHORT).text.lower()

    words = ["apple", "river", "seven", "green"]
    with ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(ask, words))
    assert [word for word, reply in zip(words, replies, strict=True) if word in reply] == words


@pytest.mark.live_model
def test_a_prompt_longer_than_a_slot_is_rejected_with_both_lengths_and_the_model_lives_on(local: LocalModel) -> None:
    with pytest.raises(ModelRejected, match=r"prompt has 30\d\d tokens, a slot holds 2048"):
        local.chat([Message("user", "word " * 3000)], sampling=SHORT)
    assert local.chat([Message("user", "Say yes.")], sampling=SHORT).text


@pytest.mark.live_model
def test_a_local_call_ends_at_its_deadline_and_frees_its_slot() -> None:
    if not weights_path(SMALL).is_file():
        pytest.skip(f"the weights of {SMALL} are not in the cache: sqlcrystal model pull {SMALL}")
    model = LocalModel(LocalSettings(name=SMALL, slots=1, context=2048, deadline=0.01))
    for _ in range(2):
        with pytest.raises(ModelTimeout, match=r"within 0\.01 s"):
            model.chat([Message("user", "Count to one thousand.")], sampling=Sampling(max_tokens=1000))
    model.close()


@pytest.mark.live_model
def test_sample_indexes_draw_different_replies_at_a_high_temperature(local: LocalModel) -> None:
    prompt = [Message("user", "Invent a name for a boat. Reply with the name only.")]
    replies = {local.chat(prompt, sampling=Sampling(temperature=1.5, max_tokens=12, index=i)).text for i in range(4)}
    assert len(replies) > 1


@pytest.mark.parametrize("name", KNOWN_MODELS)
def test_the_digest_of_a_known_model_needs_no_weights(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = open_model(name).digest
    monkeypatch.setenv("SQLCRYSTAL_CACHE", str(tmp_path))
    absent = open_model(name)
    assert absent.digest == here
    with pytest.raises(DataError, match=f"sqlcrystal model pull {name}"):
        absent.chat([Message("user", "hi")], sampling=SHORT)


def test_a_file_that_is_not_the_model_it_is_named_after_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SQLCRYSTAL_CACHE", str(tmp_path))
    weights_path(SMALL).parent.mkdir()
    weights_path(SMALL).write_bytes(b"other bytes")
    with pytest.raises(DataError, match="sha256 differs"):
        open_model(SMALL).chat([Message("user", "hi")], sampling=SHORT)


def test_the_two_sizes_have_different_digests_and_settings_of_speed_do_not_count() -> None:
    small, large = (open_model(name).digest for name in KNOWN_MODELS)
    assert small != large
    table = {"kind": "local", "name": SMALL, "slots": 4, "context": 4096, "threads": 1}
    assert open_model(table).digest == open_model(SMALL).digest


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("gpt-9", r"model: unknown value 'gpt-9'; choose from .*qwen2.5-coder-1.5b"),
        ({"kind": "cloud"}, r"model.kind: unknown value 'cloud'; choose from batched, local, openai"),
        ({"kind": "local", "name": SMALL, "slot": 2}, r"unknown field `slot`"),
        ({"kind": "local", "name": SMALL, "slots": "two"}, r"`\$.slots`"),
        ({"kind": "local", "name": SMALL, "slots": 0}, r"slots: 0 is below 1"),
        ({"kind": "batched", "name": SMALL, "slots": 0}, r"slots: 0 is below 1"),
        ({"kind": "batched", "name": "gpt-9"}, r"model: unknown value 'gpt-9'"),
        ({"kind": "openai", "name": "m", "base_url": "localhost:80"}, r"model.base_url"),
        (
            {"kind": "openai", "name": "m", "base_url": "http://h", "retry": {"attempts": 0}},
            r"attempts must be above 0",
        ),
        ("http://127.0.0.1:1/v1", r"model.name"),
    ],
)
def test_a_bad_setting_is_one_line_naming_the_key(spec: Any, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint) as error:
        open_model(spec)
    assert "\n" not in str(error.value)


def test_a_closed_model_can_be_asked_again(model: LanguageModel) -> None:
    before = model.chat([Message("user", "Say yes.")], sampling=SHORT)
    model.close()
    assert model.chat([Message("user", "Say yes.")], sampling=SHORT).text == before.text


def test_a_model_says_how_many_calls_it_serves_at_once(model: LanguageModel) -> None:
    assert model.slots >= 1


def test_an_empty_reply_is_recorded_like_any_other_answer(tmp_path: Path) -> None:
    with Recording(tmp_path / "r.sqlite") as recording:
        for script in ([""], []):
            reply = Recorded(ScriptedModel(script), recording, "fill").chat([Message("user", "q")], sampling=SHORT)
            assert reply.text == ""


def test_a_scripted_model_without_a_reply_says_for_which_prompt() -> None:
    model = ScriptedModel({r"boats": "SELECT 1"})
    assert model.chat([Message("user", "How many boats?")], sampling=SHORT).text == "SELECT 1"
    with pytest.raises(BadReply, match="no reply to …'How many cars"):
        model.chat([Message("user", "How many cars?")], sampling=SHORT)
    assert [prompt[-1].content for prompt in model.prompts] == ["How many boats?", "How many cars?"]


def test_a_failed_request_is_asked_again_the_next_time(tmp_path: Path) -> None:
    replies = iter([None, "SELECT 1"])
    with Recording(tmp_path / "r.sqlite") as recording:
        recorded = Recorded(ScriptedModel(lambda messages, sampling: next(replies)), recording, "fill")
        with pytest.raises(BadReply):
            recorded.chat([Message("user", "q")], sampling=SHORT)
        assert recorded.chat([Message("user", "q")], sampling=SHORT).text == "SELECT 1"
