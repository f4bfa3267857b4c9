"""An endpoint that misbehaves still yields the right completion or a typed error, within the policy."""

import json
import random
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import pytest

from model_endpoints import (
    Answer,
    Handler,
    Server,
    behave,
    break_off,
    completion,
    hang,
    no_choices,
    refuse,
    reset,
    say_nothing,
    serving,
    truncate,
)
from sqlcrystal.config import with_key
from sqlcrystal.errors import (
    BadReply,
    ConfigError,
    ModelError,
    ModelRefusedAccess,
    ModelRejected,
    ModelTimeout,
    ModelUnavailable,
)
from sqlcrystal.models.openai import OpenAIModel, OpenAISettings, RetryPolicy, TokenPrices
from sqlcrystal.models.opening import open_model, using_model
from sqlcrystal.types import Completion, Message, Sampling

QUICK = RetryPolicy(attempts=3, timeout=1.0, deadline=20.0, first_wait=0.01, longest_wait=0.05)


def client(server: Server, **settings: Any) -> OpenAIModel:
    return OpenAIModel(OpenAISettings(**{"name": "m", "base_url": server.base_url, "retry": QUICK, **settings}))


def ask(model: OpenAIModel, text: str = "q", sampling: Sampling = Sampling()) -> Completion:
    try:
        return model.chat([Message("user", text)], sampling=sampling)
    finally:
        model.close()


def fail_first(times: int, failure: Answer) -> Answer:
    def answer(handler: Handler, body: dict[str, Any], attempt: int) -> None:
        (failure if attempt <= times else behave)(handler, body, attempt)

    return answer


FAULTS: dict[str, tuple[Answer, type[ModelError]]] = {
    "429": (refuse(429, {"retry-after": "0"}), ModelUnavailable),
    "500": (refuse(500), ModelUnavailable),
    "503": (refuse(503), ModelUnavailable),
    "reset": (reset, ModelUnavailable),
    "timeout": (hang(1.5), ModelUnavailable),
    "broken off": (break_off, ModelUnavailable),
    "truncated JSON": (truncate, BadReply),
    "empty choices": (no_choices, BadReply),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_passing_fault_is_retried_until_the_completion_arrives(fault: str) -> None:
    with serving(fail_first(2, FAULTS[fault][0])) as server:
        assert ask(client(server)).text == "SELECT 'q'"
        assert len(server.attempts["q"]) == 3


@pytest.mark.parametrize("fault", FAULTS)
def test_a_lasting_fault_ends_in_its_typed_error_after_exactly_the_attempts_of_the_policy(fault: str) -> None:
    failure, error = FAULTS[fault]
    with serving(failure) as server:
        with pytest.raises(error):
            ask(client(server))
        assert len(server.attempts["q"]) == 3


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, ModelRejected),
        (413, ModelRejected),
        (422, ModelRejected),
        (401, ModelRefusedAccess),
        (402, ModelRefusedAccess),
        (403, ModelRefusedAccess),
        (404, ModelRefusedAccess),
    ],
)
def test_a_refusal_is_not_asked_again_and_says_what_the_endpoint_said(status: int, error: type[ModelError]) -> None:
    with serving(refuse(status)) as server:
        with pytest.raises(error, match=rf"HTTP {status}: .*no"):
            ask(client(server))
        assert len(server.attempts["q"]) == 1


def test_a_refused_caller_is_not_mistaken_for_a_refused_prompt() -> None:
    assert not issubclass(ModelRefusedAccess, ModelRejected)


def test_a_refused_key_is_told_by_its_variable_and_a_missing_one_by_how_to_give_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("SQLCRYSTAL_API_KEY", raising=False)
    monkeypatch.setenv("TEST_MODEL_KEY", "s3cret")
    with serving(refuse(401)) as server:
        with pytest.raises(ModelRefusedAccess, match=r"no key was sent\)\nset SQLCRYSTAL_API_KEY"):
            ask(client(server))
        with pytest.raises(ModelRefusedAccess, match="the key came from TEST_MODEL_KEY") as refused:
            ask(client(server, api_key="${TEST_MODEL_KEY}"))
    assert "s3cret" not in str(refused.value)


def test_an_endpoint_nobody_listens_on_is_unavailable() -> None:
    with serving(behave) as server:
        gone = client(server)
    with pytest.raises(ModelUnavailable, match="ConnectError"):
        ask(gone)


def test_retry_after_is_honoured() -> None:
    with serving(fail_first(1, refuse(429, {"retry-after": "1"}))) as server:
        ask(client(server))
        first, second = server.attempts["q"]
    assert second - first >= 1.0


def test_a_retry_after_beyond_the_deadline_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("sqlcrystal.models.openai.time.sleep", waits.append)
    late = pytest.raises(ModelTimeout, match=r"deadline of 20 s leaves no time.*HTTP 429")
    with serving(refuse(429, {"retry-after": "60"})) as server, late:
        ask(client(server))
    assert waits == []


def test_the_deadline_holds_against_a_body_sent_byte_by_byte() -> None:
    sent: list[bytes] = []

    def dribble(handler: Handler, body: dict[str, Any], attempt: int) -> None:
        handler.send_response(200)
        handler.send_header("content-length", "1000")
        handler.end_headers()
        for _ in range(60):
            handler.wfile.write(b" ")
            sent.append(b" ")
            time.sleep(0.05)

    policy = RetryPolicy(attempts=5, timeout=2.0, deadline=0.5)
    with serving(dribble) as server:
        with pytest.raises(ModelTimeout):
            ask(client(server, retry=policy))
        assert len(sent) < 60, "the call waited for the whole body"


def test_a_reply_cut_off_before_its_first_word_is_an_empty_answer_and_not_asked_again() -> None:
    def cut(handler: Handler, body: dict[str, Any], attempt: int) -> None:
        handler.reply(200, completion("", finish_reason="length"))

    with serving(cut) as server:
        reply = ask(client(server))
        assert (reply.text, reply.finish_reason, reply.completion_tokens) == ("", "length", 3)
        assert len(server.attempts["q"]) == 1


def test_a_silence_that_passes_is_the_endpoints_and_one_that_lasts_is_the_models_answer() -> None:
    with serving(fail_first(2, say_nothing)) as server:
        assert ask(client(server)).text == "SELECT 'q'"
    with serving(say_nothing) as server:
        reply = ask(client(server))
        assert (reply.text, reply.finish_reason, reply.prompt_tokens) == ("", "stop", 7)
        assert len(server.attempts["q"]) == QUICK.attempts


def test_no_more_calls_than_the_concurrency_are_in_flight() -> None:
    def slow(handler: Handler, body: dict[str, Any], attempt: int) -> None:
        time.sleep(0.03)
        behave(handler, body, attempt)

    with serving(slow) as server:
        model = client(server, concurrency=3)
        with ThreadPoolExecutor(12) as pool:
            list(pool.map(lambda i: model.chat([Message("user", f"q{i}")], sampling=Sampling()), range(24)))
        model.close()
        assert server.most == 3


def test_the_sample_index_is_the_seed_and_extra_fields_are_sent() -> None:
    with serving(behave) as server:
        extra = {"top_p": 0.9, "max_tokens": None, "max_completion_tokens": 50}
        ask(client(server, extra=extra), sampling=Sampling(temperature=0.7, index=4))
        [body] = server.bodies
    assert (body["seed"], body["temperature"], body["top_p"], body["max_completion_tokens"]) == (4, 0.7, 0.9, 50)
    assert "max_tokens" not in body


def test_the_key_comes_from_the_environment_when_the_first_call_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(behave) as server:
        model = client(server, api_key="${TEST_MODEL_KEY}")
        with pytest.raises(ConfigError, match="TEST_MODEL_KEY is not set"):
            ask(model)
        monkeypatch.setenv("TEST_MODEL_KEY", "s3cret")
        ask(model)
        assert server.headers[-1]["authorization"] == "Bearer s3cret"


def test_a_model_given_as_a_url_takes_the_usual_key_if_it_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(behave) as server:
        for key in ("", "s3cret"):
            monkeypatch.setenv("SQLCRYSTAL_API_KEY", key)
            with using_model(f"{server.base_url}#m") as model:
                model.chat([Message("user", "q")], sampling=Sampling())
        without, with_key = server.headers
    assert "authorization" not in without
    assert with_key["authorization"] == "Bearer s3cret"


def test_a_variable_named_for_the_key_goes_before_the_usual_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQLCRYSTAL_API_KEY", "usual")
    monkeypatch.setenv("TEST_MODEL_KEY", "own")
    with serving(behave) as server:
        with using_model(with_key(f"{server.base_url}#m", "TEST_MODEL_KEY")) as model:
            model.chat([Message("user", "q")], sampling=Sampling())
        assert server.headers[-1]["authorization"] == "Bearer own"


def test_a_key_given_in_place_of_a_variable_is_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigError, match="--api-key-env: give the name") as refused:
        with_key("http://127.0.0.1/v1#m", "sk-123")
    assert "sk-123" not in str(refused.value)


def test_a_model_in_this_process_takes_no_key() -> None:
    with pytest.raises(ConfigError, match="--api-key-env: a model that runs in this process takes no key"):
        with_key("qwen2.5-coder-0.5b", "SOME_KEY")


def test_a_key_written_out_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"\$\{NAME\}"):
        open_model({"kind": "openai", "name": "m", "base_url": "http://127.0.0.1/v1", "api_key": "sk-123"})


def test_prices_turn_tokens_into_money() -> None:
    prices = TokenPrices(prompt_per_million=0.5, completion_per_million=2.0)
    assert prices.cost(prompt_tokens=1_000_000, completion_tokens=500_000) == pytest.approx(1.5)


def test_the_digest_tells_endpoints_apart_unless_an_identity_is_given() -> None:
    def digest(**settings: Any) -> str:
        return open_model({"kind": "openai", "name": "m", **settings}).digest

    here, there = {"base_url": "http://127.0.0.1:1/v1"}, {"base_url": "http://127.0.0.1:2/v1"}
    assert digest(**here) != digest(**there)
    assert digest(**here, identity="vllm m@abc") == digest(**there, identity="vllm m@abc")
    assert digest(**here) != digest(**here, extra={"top_p": 0.5})


def test_a_thousand_calls_against_a_misbehaving_endpoint_all_end_right_or_with_a_typed_error() -> None:
    """32 at a time; each attempt draws its fault from the call's own seeded plan, so the right end is known."""
    # A well-behaved reply may take seconds when the machine is busy; it must not count as one more timeout.
    calls, policy = 1000, RetryPolicy(attempts=5, timeout=6.0, deadline=90.0, first_wait=0.02, longest_wait=0.2)
    kinds = ["429", "500", "reset", "timeout", "truncated JSON", "empty choices"]
    answers = {kind: FAULTS[kind][0] for kind in kinds}
    answers |= {"429": refuse(429, {"retry-after": "1"}), "timeout": hang(6.5)}

    def plan(call: str) -> list[str]:
        rng = random.Random(call)
        if rng.random() < 0.03:
            return rng.choices(kinds, k=policy.attempts)
        length = rng.choices([0, 1, 2, 3, 4], weights=[50, 30, 12, 6, 2])[0]
        return rng.choices(kinds, weights=[3, 5, 5, 1, 5, 5], k=length)

    def misbehave(handler: Handler, body: dict[str, Any], attempt: int) -> None:
        faults = plan(body["messages"][-1]["content"])
        answer = answers[faults[attempt - 1]] if attempt <= len(faults) else behave
        answer(handler, body, attempt)

    def end(call: str) -> str | type[ModelError]:
        try:
            return model.chat([Message("user", call)], sampling=Sampling()).text
        except ModelError as error:
            return type(error)

    names = [f"call {i}" for i in range(calls)]
    with serving(misbehave) as server:
        model = client(server, retry=policy, concurrency=32)
        with ThreadPoolExecutor(32) as pool:
            ends = dict(zip(names, pool.map(end, names), strict=True))
        model.close()
        attempts = {name: len(server.attempts[name]) for name in names}
        gaps = {
            name: [later - earlier for earlier, later in pairwise(times)] for name, times in server.attempts.items()
        }

    for name in names:
        faults = plan(name)
        lost = len(faults) >= policy.attempts
        assert ends[name] == (FAULTS[faults[-1]][1] if lost else f"SELECT '{name}'"), (name, faults)
        assert attempts[name] == min(len(faults) + 1, policy.attempts), (name, faults)
        assert all(gap >= 1.0 for gap, fault in zip(gaps[name], faults, strict=False) if fault == "429"), name
    outcome = Counter("right" if isinstance(e, str) else e.__name__ for e in ends.values())
    assert outcome["right"] > 900
    assert outcome["ModelUnavailable"] > 0
    assert outcome["BadReply"] > 0
    print(json.dumps({"outcomes": outcome, "attempts": sum(attempts.values())}))
