"""A model spread over Ray workers answers as one; needs the ray extra, which the development environment leaves out."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from model_endpoints import Handler, completion, serving

from sqlcrystal.errors import ModelRejected
from sqlcrystal.types import Message, Sampling

pytest.importorskip("ray", reason="the ray extra is not installed")


def test_workers_answer_side_by_side_and_their_errors_come_back() -> None:
    from sqlcrystal.models.spread import RayModel

    def answer(handler: Handler, body: dict[str, Any], attempt: int) -> None:
        text = body["messages"][-1]["content"]
        handler.reply(400, b"no") if text == "bad" else handler.reply(200, completion(f"SELECT {text}"))

    with serving(answer) as server:
        model = RayModel(f"{server.base_url}#m", workers=2)
        try:
            with ThreadPoolExecutor(2) as pool:
                replies = pool.map(lambda n: model.chat([Message("user", str(n))], sampling=Sampling()), range(6))
                assert [reply.text for reply in replies] == [f"SELECT {n}" for n in range(6)]
            with pytest.raises(ModelRejected, match="HTTP 400"):
                model.chat([Message("user", "bad")], sampling=Sampling())
        finally:
            model.close()
