"""The line before a database: shared fairly, left with its client, stood in by all SQL; and those who send slowly."""

import asyncio
import json
import select
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from running_service import Service, replying, serving
from sqlcrystal.interfaces.server.errors import Busy, Stopped
from sqlcrystal.interfaces.server.settings import ServerSettings
from sqlcrystal.interfaces.server.visits import Visit
from sqlcrystal.interfaces.server.work import Queue
from sqlcrystal.types import Message, Sampling

PATIENCE = 20.0


# ── whose turn it is ─────────────────────────────────────────────────────────────────────────────────────────────────


def visit(token: str) -> Visit:
    made = Visit()
    made.token = token
    return made


def order_of_work(arrivals: Sequence[str], *, size: int = 50) -> tuple[list[str], list[str]]:
    """Let so many arrive while one is at work; in which order they get their turns, and who is turned away."""

    async def played() -> tuple[list[str], list[str]]:
        queue = Queue("shop", concurrency=1, size=size)
        first = await queue.enter(visit("first"), lambda _: None)
        done: list[str] = []
        refused: list[str] = []

        async def one(name: str) -> None:
            try:
                place = await queue.enter(visit(name[0]), lambda _: None)
            except Busy:
                refused.append(name)
                return
            done.append(name)
            queue.leave(place)

        tasks = []
        for name in arrivals:
            tasks.append(asyncio.create_task(one(name)))
            await asyncio.sleep(0)
        queue.leave(first)
        await asyncio.gather(*tasks)
        assert (queue.running, queue.waiting) == (0, 0)
        return done, sorted(refused)

    return asyncio.run(played())


@pytest.mark.parametrize(
    ("arrivals", "size", "turns", "refused"),
    [
        ("a1 a2 a3", 50, "a1 a2 a3", ""),
        ("a1 a2 a3 b1", 50, "a1 b1 a2 a3", ""),
        ("a1 a2 a3 b1 c1 b2", 50, "a1 b1 c1 a2 b2 a3", ""),
        ("a1 a2 a3 b1", 3, "a1 b1 a2", "a3"),  # a full line turns away the newest of the one with the most
        ("a1 a2 a3 b1 b2", 3, "a1 b1 a2", "a3 b2"),
        ("a1 a2 a3", 2, "a1 a2", "a3"),
    ],
)
def test_tokens_take_turns_and_none_fills_the_line_alone(arrivals: str, size: int, turns: str, refused: str) -> None:
    assert order_of_work(arrivals.split(), size=size) == (turns.split(), refused.split())


def test_whose_client_leaves_loses_their_place_and_everybody_moves_up() -> None:
    class Leaving(Visit):
        def __init__(self) -> None:
            super().__init__()
            self.left = asyncio.Event()

        async def gone(self) -> None:
            await self.left.wait()

    async def played() -> tuple[list[int], int]:
        queue, ahead, leaving = Queue("shop", concurrency=1, size=9), [0], Leaving()
        first = await queue.enter(Visit(), lambda _: None)
        impatient = asyncio.create_task(queue.enter(leaving, lambda _: None))
        await asyncio.sleep(0)
        patient = asyncio.create_task(queue.enter(Visit(), ahead.append))
        await asyncio.sleep(0)
        leaving.left.set()
        with pytest.raises(Stopped):
            await impatient
        queue.leave(first)
        queue.leave(await patient)
        return ahead, queue.running

    assert asyncio.run(played()) == ([0, 2, 1], 0)


# ── a whole service ──────────────────────────────────────────────────────────────────────────────────────────────────


class Slow:
    """Replies when it is told to; remembers what it was asked."""

    def __init__(self) -> None:
        self.may_go = threading.Event()
        self.asked: list[str] = []

    def __call__(self, messages: Sequence[Message], sampling: Sampling) -> str:
        self.asked.append(messages[-1].content)
        assert self.may_go.wait(PATIENCE)
        return replying(messages, sampling)


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[tuple[Service, Slow]]:
    model = Slow()
    settings = ServerSettings(concurrency=1, queue_size=5, requests_per_minute=100_000)
    with serving(tmp_path, settings=settings, script=model) as service:
        yield service, model
        model.may_go.set()


def in_line(service: Service, count: int) -> None:
    """Wait until so many wait in the line of the shop."""
    ends = time.monotonic() + PATIENCE
    with service.client() as client:
        while f'sqlcrystal_answers_waiting{{database="shop"}} {count}.0' not in client.get("/metrics").text:
            assert time.monotonic() < ends, client.get("/metrics").text
            time.sleep(0.02)


def asking(service: Service, question: str, *, streamed: bool) -> bytes:
    """Write a whole request down, so that its client can leave when it likes."""
    body = json.dumps({"question": question, "database": "shop"}).encode()
    headers = {"Host": "x", "Authorization": f"Bearer {service.tokens['owner']}", "Content-Type": "application/json"}
    headers |= {"Content-Length": str(len(body))} | ({"Accept": "text/event-stream"} if streamed else {})
    lines = ["POST /api/ask HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


@pytest.mark.parametrize("streamed", [False, True])
def test_queued_work_of_a_client_that_left_is_dropped(slow: tuple[Service, Slow], streamed: bool) -> None:
    service, model = slow
    first = threading.Thread(target=service.ask, args=["What is the first?"])
    first.start()
    ends = time.monotonic() + PATIENCE
    while not model.asked and time.monotonic() < ends:
        time.sleep(0.01)
    left = connected(service, asking(service, "What did the one who left want?", streamed=streamed))
    in_line(service, 1)
    left.close()
    in_line(service, 0)
    model.may_go.set()
    first.join(PATIENCE)
    service.ask("What is the last?")
    assert not [text for text in model.asked if "who left" in text]


def test_paging_stands_in_the_line_like_all_sql(slow: tuple[Service, Slow]) -> None:
    service, model = slow
    model.may_go.set()
    many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 250) SELECT i FROM n"
    answer = service.ask()
    assert service.post(f"/api/answers/{answer['id']}/correct", json={"sql": many}).status_code == 200
    model.may_go.clear()
    busy = threading.Thread(target=service.ask, args=["What is the price of every item?"])
    busy.start()
    page: list[httpx.Response] = []
    with service.client() as client:
        client.headers["Accept"] = "text/html"
        reading = threading.Thread(target=lambda: page.append(client.get(f"/a/{answer['id']}", params={"page": 3})))
        reading.start()
        in_line(service, 1)
        assert not page
        model.may_go.set()
        reading.join(PATIENCE)
    busy.join(PATIENCE)
    assert ">250<" in page[0].text


# ── who sends slowly, or nothing ─────────────────────────────────────────────────────────────────────────────────────


def connected(service: Service, sent: bytes) -> socket.socket:
    host, port = urlsplit(service.url).netloc.split(":")
    connection = socket.create_connection((host, int(port)), timeout=PATIENCE)
    connection.sendall(sent)
    return connection


def is_closed(connection: socket.socket) -> bool:
    """Tell whether the server hung up without a reply."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET /health HTTP/1.1\r\nHost: x\r\nX-Slow: ",
        b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        b"Content-Length: 100\r\n\r\ntoken=",
    ],
    ids=["nothing", "half a header", "half a body"],
)
def test_a_connection_has_so_long_for_a_whole_request(tmp_path: Path, sent: bytes) -> None:
    with serving(tmp_path, settings=ServerSettings(request_seconds=1)) as service:
        connection = connected(service, sent)
        stopped = threading.Event()

        def drip() -> None:
            with suppress(OSError):
                while sent and not stopped.wait(0.1):
                    connection.sendall(b"a")

        dripping = threading.Thread(target=drip)
        dripping.start()
        try:
            assert is_closed(connection)
        finally:
            stopped.set()
            dripping.join()
            connection.close()


def test_half_open_connections_keep_nobody_out(tmp_path: Path) -> None:
    with serving(tmp_path, settings=ServerSettings(idle_connections=5, request_seconds=600)) as service:
        held = [connected(service, b"GET /health HTTP/1.1\r\nX-Slow: ") for _ in range(30)]
        closed: set[socket.socket] = set()
        ends = time.monotonic() + PATIENCE
        while len(closed) < 25 and time.monotonic() < ends:
            readable, _, _ = select.select([each for each in held if each not in closed], [], [], PATIENCE)
            closed |= {each for each in readable if is_closed(each)}
        with service.client("") as client:
            assert client.get("/health").status_code == 200
        for connection in held:
            connection.close()
    assert len(closed) == 25


def test_work_may_take_longer_than_the_sending_of_a_request(tmp_path: Path) -> None:
    model = Slow()
    with serving(tmp_path, settings=ServerSettings(request_seconds=1), script=model) as service:
        threading.Timer(2.5, model.may_go.set).start()
        assert service.ask()["sql"]
