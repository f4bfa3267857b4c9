"""What the server says of its own time: a request's, without its turn in line, the model and the databases."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from running_service import Service, replying, serving
from sqlcrystal.interfaces.server.settings import ServerSettings
from sqlcrystal.types import Message, Sampling

THINKING = 0.6


def slowly(messages: Sequence[Message], sampling: Sampling) -> str:
    time.sleep(THINKING)
    return replying(messages, sampling)


def measured(service: Service, name: str, route: str) -> float:
    with service.client() as client:
        lines = client.get("/metrics").text.splitlines()
    return next((float(line.split()[-1]) for line in lines if line.startswith(f'{name}{{route="{route}"}}')), 0.0)


def test_the_model_is_not_the_servers_own_time_and_neither_is_the_line(tmp_path: Path) -> None:
    settings = ServerSettings(requests_per_minute=1_000_000, concurrency=1)
    with serving(tmp_path, script=slowly, settings=settings) as service:
        with (
            httpx.Client(base_url=service.url, headers=_bearer(service), timeout=60) as client,
            ThreadPoolExecutor() as both,
        ):
            asked = {"question": "What is the price of every item?", "database": "shop"}
            whole_answer = both.submit(client.post, "/api/ask", json=asked)
            streamed = both.submit(client.post, "/api/ask", json=asked, headers={"Accept": "text/event-stream"})
            assert "event: done" in streamed.result().text
            client.post(f"/api/answers/{whole_answer.result().json()['id']}/confirm", json={})
        counted = measured(service, "sqlcrystal_overhead_seconds_count", "/api/ask")
        own = measured(service, "sqlcrystal_overhead_seconds_sum", "/api/ask")
        whole = measured(service, "sqlcrystal_request_seconds_sum", "/api/ask")
        confirming = "/api/answers/{answer_id}/confirm"
        assert measured(service, "sqlcrystal_overhead_seconds_sum", confirming) == measured(
            service, "sqlcrystal_request_seconds_sum", confirming
        )
    assert counted == 2
    # One of the two thinks while the other waits for its turn, which comes a little later on a busy machine.
    assert 0 < own <= whole - 2.5 * THINKING


def _bearer(service: Service) -> dict[str, str]:
    return {"Authorization": f"Bearer {service.tokens['owner']}"}
