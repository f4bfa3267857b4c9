"""The batched model: the same weights as llama.cpp's, many replies at once, shared beginnings read once."""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sqlcrystal.errors import ConfigError, ModelRejected, ModelUnavailable
from sqlcrystal.models.catalogue import weights_path
from sqlcrystal.models.local import BatchedModel, BatchedSettings, LocalModel, LocalSettings
from sqlcrystal.models.opening import open_model
from sqlcrystal.models.recording import Recording
from sqlcrystal.types import Completion, Message, Sampling
from tiny_gguf import write_tiny_model

RECORDING = Path(__file__).resolve().parents[2] / "studies" / "recordings" / "quarry.jsonl.xz"
RECORDED = "qwen2.5-coder-1.5b"
BEGINNING = "Every one of these questions begins with the same long sentence about the tables of the shop. "
QUESTIONS = [f"{BEGINNING}Then it asks for {letter * 7}." for letter in "abcdefghijklmnopqrstuvwx"]
SHORT = Sampling(max_tokens=8)

Open = Callable[..., BatchedModel]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch", reason="the extra `batched` is not installed")
    pytest.importorskip("gguf", reason="the extra `batched` is not installed")
    return write_tiny_model(tmp_path_factory.mktemp("weights") / "tiny.gguf")


@pytest.fixture
def batched(tiny: Path) -> Iterator[Open]:
    opened: list[BatchedModel] = []

    def open_tiny(*, slots: int = 8, cache_mib: int = 64) -> BatchedModel:
        opened.append(BatchedModel(BatchedSettings(path=str(tiny), slots=slots, cache_mib=cache_mib)))
        return opened[-1]

    yield open_tiny
    for model in opened:
        model.close()


def ask(model: BatchedModel | LocalModel, question: str, sampling: Sampling = SHORT) -> Completion:
    return model.chat([Message("system", "Be brief."), Message("user", question)], sampling=sampling)


def ask_together(model: BatchedModel) -> list[Completion]:
    with ThreadPoolExecutor(len(QUESTIONS)) as pool:
        return list(pool.map(lambda question: ask(model, question), QUESTIONS))


def test_it_reads_prompts_as_llama_cpp_does_and_nearly_always_answers_alike(tiny: Path, batched: Open) -> None:
    local = LocalModel(LocalSettings(path=str(tiny), context=512))
    model = batched()
    assert model.digest == local.digest
    few = Sampling(max_tokens=4)
    pairs = [(ask(local, question, few), ask(model, question, few)) for question in QUESTIONS]
    local.close()
    assert [theirs.prompt_tokens for theirs, _ in pairs] == [ours.prompt_tokens for _, ours in pairs]
    # Random weights prefer nothing by much, so that a rounded sum can tip a token; a wrong product tips them all.
    assert sum(theirs.text == ours.text for theirs, ours in pairs) >= 0.8 * len(pairs)


def test_replies_written_together_are_those_written_alone(batched: Open) -> None:
    together = ask_together(batched(slots=len(QUESTIONS)))
    alone = batched(slots=1)
    assert [reply.text for reply in together] == [ask(alone, question).text for question in QUESTIONS]


def test_more_callers_than_slots_wait_and_get_the_reply_to_their_own_question(batched: Open) -> None:
    crowded, alone = ask_together(batched(slots=3)), batched(slots=1)
    assert [reply.text for reply in crowded] == [ask(alone, question).text for question in QUESTIONS]
    assert len({reply.text for reply in crowded}) > len(QUESTIONS) / 2


def test_a_beginning_that_was_read_before_changes_no_reply(batched: Open) -> None:
    forgetful, mindful = batched(cache_mib=0), batched()
    assert [ask(mindful, question).text for question in QUESTIONS] == [
        ask(forgetful, question).text for question in QUESTIONS
    ]


def test_a_beginning_that_was_read_before_is_not_read_again(batched: Open) -> None:
    from sqlcrystal.models.batch_engine import Beginnings

    engine = batched().load()
    first, second = (engine.text.tokens([Message("user", question)]) for question in QUESTIONS[:2])
    beginnings = Beginnings(engine._transformer, mebibytes=64)
    memory, known = beginnings.of(first)
    assert known == 0
    beginnings.keep(first, memory)
    assert 80 < beginnings.of(second)[1] < len(second)
    assert beginnings.of(first)[1] == len(first) - 1


def test_what_was_not_used_for_longest_is_forgotten_first(batched: Open) -> None:
    from sqlcrystal.models.batch_engine import Beginnings

    transformer = batched().load()._transformer
    prompts = [[number] * 400 for number in range(30)]
    beginnings = Beginnings(transformer, mebibytes=1)
    for prompt in prompts:
        beginnings.keep(prompt, beginnings.of(prompt)[0])
    assert beginnings.of(prompts[0])[1] == 0
    assert beginnings.of(prompts[-1])[1] == 399


def test_the_index_of_a_sample_draws_its_reply(batched: Open) -> None:
    model = batched()
    samples = [Sampling(temperature=1.0, max_tokens=8, index=index) for index in range(6)]
    drawn = [ask(model, "Say a word.", sampling).text for sampling in samples]
    assert len(set(drawn)) > 3
    assert [ask(model, "Say a word.", sampling).text for sampling in samples] == drawn


def test_a_reply_ends_at_its_longest_length_and_says_so(batched: Open) -> None:
    reply = ask(batched(), "Go on.", Sampling(max_tokens=3))
    assert (reply.finish_reason, reply.completion_tokens) == ("length", 3)


def test_a_prompt_longer_than_a_slot_is_rejected_with_both_lengths_and_the_model_lives_on(batched: Open) -> None:
    model = batched()
    with pytest.raises(ModelRejected, match=r"the prompt has \d+ tokens, a slot holds 512"):
        ask(model, "word " * 600)
    assert ask(model, "Say yes.").completion_tokens


def test_a_reply_that_fails_tells_its_caller_and_the_next_one_is_answered(
    batched: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = batched()
    transformer = model.load()._transformer
    with monkeypatch.context() as broken:
        broken.setattr(transformer, "read", lambda *_, **__: (_ for _ in ()).throw(RuntimeError("out of memory")))
        with pytest.raises(ModelUnavailable, match="model tiny: out of memory"):
            ask(model, "Say yes.")
    assert ask(model, "Say yes.").completion_tokens


def test_a_closed_model_can_be_asked_again(batched: Open) -> None:
    model = batched()
    before = ask(model, "Say yes.").text
    engine = model.load()
    model.close()
    with pytest.raises(ModelUnavailable, match="closed while it was asked"):
        engine.ask([1, 2], SHORT)
    assert ask(model, "Say yes.").text == before


def test_another_architecture_or_tokenizer_is_refused_by_its_name(tiny: Path, tmp_path: Path) -> None:
    llama = write_tiny_model(tmp_path / "llama.gguf", architecture="llama")
    with pytest.raises(ConfigError, match=r"architecture of its GGUF file: unknown value 'llama'; choose from qwen2"):
        ask(BatchedModel(BatchedSettings(path=str(llama))), "hi")
    falcon = write_tiny_model(tmp_path / "falcon.gguf", cut="falcon")
    with pytest.raises(ConfigError, match=r"tokenizer of its GGUF file: unknown value 'falcon'; choose from qwen2"):
        ask(BatchedModel(BatchedSettings(path=str(falcon))), "hi")


def test_a_file_that_is_no_gguf_is_one_line(tiny: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.gguf"
    other.write_bytes(b"no weights" * 100)
    with pytest.raises(ModelUnavailable, match=r"model other: .*other.gguf cannot be read"):
        ask(BatchedModel(BatchedSettings(path=str(other))), "hi")


def test_without_the_extra_the_error_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "sqlcrystal.models.batch_engine", raising=False)
    weights = tmp_path / "mine.gguf"
    weights.write_bytes(b"weights")
    with pytest.raises(ConfigError, match=r"pip install 'sqlcrystal\[batched\]'"):
        ask(BatchedModel(BatchedSettings(path=str(weights))), "hi")


def test_it_shares_recordings_with_the_local_model() -> None:
    table = {"kind": "batched", "name": RECORDED, "slots": 48}
    assert open_model(table).digest == open_model(RECORDED).digest


@pytest.mark.live_model
def test_every_recorded_prompt_has_as_many_tokens_here_as_llama_cpp_counted() -> None:
    gguf = pytest.importorskip("gguf", reason="the extra `batched` is not installed")
    if not weights_path(RECORDED).is_file():
        pytest.skip(f"the weights of {RECORDED} are not in the cache: sqlcrystal model pull {RECORDED}")
    from sqlcrystal.models.batch_engine import GgufText

    text = GgufText(gguf.GGUFReader(weights_path(RECORDED)).fields)
    with Recording(RECORDING) as recording:
        calls = list(recording.entries())
    differing = [call.key for call in calls if len(text.tokens(call.messages)) != call.completion.prompt_tokens]
    assert differing == []
