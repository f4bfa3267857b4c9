"""Work ends when nobody waits for it any more: the model is not asked again, and the draft stays with its error."""

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from cardbox import HashingEmbedder
from model_endpoints import Handler, serving
from shop import WRONG, build, repairing
from sqlcrystal import Crystal
from sqlcrystal.errors import ModelTimeout
from sqlcrystal.models.local import _StreamedReply, free_cores
from sqlcrystal.models.openai import OpenAIModel, OpenAISettings
from sqlcrystal.models.scripted import Reply, ScriptedModel
from sqlcrystal.types import Message, Sampling
from sqlcrystal.waiting import Patience, patience_of, within

LONG = 600.0


def test_a_draft_stays_when_time_is_up_while_it_is_repaired(tmp_path: Path) -> None:
    stopped = threading.Event()

    def reply(messages: Sequence[Message], sampling: Sampling) -> Reply:
        stopped.set()
        return repairing(messages, sampling)

    model = ScriptedModel(reply)
    place = build(tmp_path / "shop.sqlite")
    with (
        Crystal.over(place, model=model, store=tmp_path / "team.db", embedder=HashingEmbedder()) as crystal,
        within(Patience(LONG, stopped)),
    ):
        answer = crystal.ask("How many hardware items are there?")
    assert (answer.sql, answer.repaired, answer.calls, len(model.prompts)) == (WRONG, False, 1, 1)


def test_no_call_is_begun_that_nobody_waits_for(tmp_path: Path) -> None:
    model = ScriptedModel(repairing)
    place = build(tmp_path / "shop.sqlite")
    with (
        Crystal.over(place, model=model, store=tmp_path / "team.db", embedder=HashingEmbedder()) as crystal,
        within(Patience(0)),
        pytest.raises(ModelTimeout, match="time for this answer is up"),
    ):
        crystal.ask("How many hardware items are there?")
    assert model.prompts == []


def test_the_embedded_model_ends_its_reply_at_the_next_token() -> None:
    stopped = threading.Event()
    with within(Patience(LONG, stopped)):
        reply = _StreamedReply(patience_of(LONG))
    piece = {"choices": [{"delta": {"content": "SELECT"}, "finish_reason": None}]}
    before = reply.receive(piece)
    stopped.set()
    assert (before, reply.receive(piece)) == (False, True)
    with pytest.raises(ModelTimeout):
        reply.completion("local")


def test_a_call_of_an_endpoint_ends_with_the_patience_of_those_who_wait() -> None:
    released = threading.Event()

    def late(handler: Handler, body: dict[str, object], number: int) -> None:
        released.wait(60)
        handler.reply(500, b"")

    with serving(late) as server:
        model = OpenAIModel(OpenAISettings(name="late", base_url=server.base_url))
        try:
            with within(Patience(3)), pytest.raises(ModelTimeout):
                model.chat([Message("user", "How many?")])
        finally:
            released.set()
            model.close()


@pytest.mark.parametrize(
    ("cores", "load", "threads"), [(2, 0.1, 2), (2, 1.0, 1), (2, 9.0, 1), (8, 2.7, 5), (1, 0.0, 1)]
)
def test_the_embedded_model_leaves_busy_cores_alone(cores: int, load: float, threads: int) -> None:
    assert free_cores(cores, load) == threads
