"""`sqlcrystal model serve`: the official OpenAI client against weights of this machine, of either kind."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import openai
import pytest

from running_service import listening
from serving_commands import run_command
from sqlcrystal.interfaces.server.model_app import make_model_app
from sqlcrystal.models.embeddings import WordLlamaEmbedder
from sqlcrystal.models.local import BatchedModel, LocalModel
from sqlcrystal.models.opening import open_model
from sqlcrystal.types import Message, Sampling
from tiny_gguf import write_tiny_model

ASKED: list[Any] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Count the boats."}]
MESSAGES = [Message("system", "Be brief."), Message("user", "Count the boats.")]
SHORT = Sampling(max_tokens=24)
KEY = "a key of the team"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch", reason="the extra `batched` is not installed")
    pytest.importorskip("gguf", reason="the extra `batched` is not installed")
    return write_tiny_model(tmp_path_factory.mktemp("weights") / "tiny.gguf")


@pytest.fixture(scope="module", params=["local", "batched"])
def model(request: pytest.FixtureRequest, tiny: Path) -> Iterator[LocalModel | BatchedModel]:
    opened = open_model({"kind": request.param, "path": str(tiny), "context": 512, "slots": 2})
    assert isinstance(opened, LocalModel | BatchedModel)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def client(model: LocalModel | BatchedModel) -> Iterator[openai.OpenAI]:
    with (
        listening(make_model_app(model, WordLlamaEmbedder())) as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="none is needed", max_retries=0) as opened,
    ):
        yield opened


def test_the_model_and_the_embedder_are_listed(client: openai.OpenAI) -> None:
    assert [listed.id for listed in client.models.list()] == ["tiny", "wordllama"]
    assert client.models.retrieve("wordllama").id == "wordllama"


def test_a_reply_is_the_one_that_the_model_gives_here(client: openai.OpenAI, model: LocalModel | BatchedModel) -> None:
    here = model.chat(MESSAGES, sampling=SHORT)
    reply = client.chat.completions.create(model="tiny", messages=ASKED, max_tokens=24)
    assert reply.choices[0].message.content == here.text
    assert reply.choices[0].finish_reason == here.finish_reason == "length"
    assert reply.usage is not None
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (here.prompt_tokens, 24)


def test_a_streamed_reply_adds_up_to_the_whole_one_with_its_tokens(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(model="tiny", messages=ASKED, max_completion_tokens=24)
    stream = client.chat.completions.create(
        model="tiny", messages=ASKED, max_completion_tokens=24, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    said = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
    assert said == whole.choices[0].message.content
    assert [choice.finish_reason for chunk in chunks for choice in chunk.choices][-1] == "length"
    assert chunks[-1].usage == whole.usage


def test_a_reply_ends_before_the_text_that_is_to_stop_it(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(model="tiny", messages=ASKED, max_tokens=24)
    text = whole.choices[0].message.content or ""
    stop = text[8:11]
    cut = client.chat.completions.create(model="tiny", messages=ASKED, max_tokens=24, stop=["nowhere", stop])
    assert cut.choices[0].message.content == text[: text.index(stop)]
    assert cut.choices[0].finish_reason == "stop"
    assert cut.usage is not None
    assert cut.usage.completion_tokens < 24


def test_vectors_are_those_of_the_embedder_in_both_encodings(client: openai.OpenAI) -> None:
    texts = ["How many boats are there?", "the longest boat"]
    expected = WordLlamaEmbedder().embed(texts)
    packed = client.embeddings.create(model="wordllama", input=texts)  # base64 unless a client asks for numbers
    plain = client.embeddings.create(model="wordllama", input=texts[1], encoding_format="float")
    assert np.allclose([row.embedding for row in packed.data], expected)
    assert np.allclose(plain.data[0].embedding, expected[1])
    assert packed.usage.total_tokens > plain.usage.total_tokens > 0


@pytest.mark.parametrize(
    ("request_of", "status", "words"),
    [
        ({"model": "gpt-5"}, 404, "no 'gpt-5' here; choose from tiny"),
        ({"messages": [{"role": "user", "content": "boat " * 2000}]}, 400, "a slot holds 512"),
        ({"tools": [{"type": "function", "function": {"name": "sql"}}]}, 422, "tools: this model answers in text only"),
        ({"response_format": {"type": "json_object"}}, 422, "response_format: this model answers in text only"),
        ({"temperature": 3}, 422, "body.temperature: Input should be less than or equal to 2"),
    ],
)
def test_a_mistake_is_told_in_the_form_that_clients_read(
    client: openai.OpenAI, request_of: dict[str, Any], status: int, words: str
) -> None:
    with pytest.raises(openai.APIStatusError) as refused:
        client.chat.completions.create(**{"model": "tiny", "messages": ASKED, **request_of})
    assert refused.value.status_code == status
    assert words in str(refused.value)


def test_tokens_of_another_vocabulary_are_not_embedded(client: openai.OpenAI) -> None:
    with pytest.raises(openai.UnprocessableEntityError, match="give a text or a list of texts, not tokens"):
        client.embeddings.create(model="wordllama", input=[1, 2, 3])


def test_with_a_key_only_its_holders_are_answered(model: LocalModel | BatchedModel) -> None:
    with listening(make_model_app(model, WordLlamaEmbedder(), key=KEY)) as url:
        for key in ("another", KEY[:-1]):
            with (
                openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0) as stranger,
                pytest.raises(openai.AuthenticationError, match="holders of its key"),
            ):
                stranger.models.list()
        with openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as holder:
            assert [listed.id for listed in holder.models.list()] == ["tiny", "wordllama"]


def test_the_command_serves_until_it_is_told_to_stop(tiny: Path) -> None:
    command = [sys.executable, "-m", "sqlcrystal", "model", "serve", str(tiny), "--port", "0", "--context", "512"]
    environment = {name: value for name, value in os.environ.items() if name != "SQLCRYSTAL_API_KEY"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        welcome = next(line for line in process.stderr if line.startswith("sqlcrystal serves"))
        assert "tiny (local, 1 at once) and wordllama at http://127.0.0.1:" in welcome
        with openai.OpenAI(base_url=welcome.split()[-1], api_key="-", max_retries=0) as client:
            reply = client.chat.completions.create(model="tiny", messages=ASKED, max_tokens=4)
        process.send_signal(signal.SIGTERM)
        process.stderr.read()
    assert reply.usage is not None
    assert reply.usage.completion_tokens == 4
    assert process.returncode in (0, -signal.SIGTERM)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nobody"], "unknown value 'nobody'"),
        (["http://127.0.0.1:1/v1#m"], "is served already"),
        (["qwen2.5-coder-1.5b", "--kind", "openai"], "--kind: unknown value 'openai'; choose from batched, local"),
        (["qwen2.5-coder-1.5b", "--host", "0.0.0.0"], "give a key in SQLCRYSTAL_API_KEY or --api-key-env"),
        (["qwen2.5-coder-1.5b", "--api-key-env", "NOT_SET"], "NOT_SET is not set in the environment"),
    ],
)
def test_a_mistake_in_the_command_is_one_line(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SQLCRYSTAL_API_KEY", raising=False)
    done = run_command(capsys, monkeypatch, "model", "serve", *arguments)
    assert done.code == 2
    assert words in done.err
    assert done.err.count("\n") == 1
