"""Real HTTP servers for the model tests: one that answers, and one that misbehaves by a seeded plan."""

import json
import socket
import struct
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[["Handler", dict[str, Any], int], None]


class Handler(BaseHTTPRequestHandler):
    """Counts every attempt by the text of the last message, then does what the server's plan says."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: "Server"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        text = body["messages"][-1]["content"] if "messages" in body else json.dumps(body["input"])
        with self.server.lock:
            self.server.attempts[text].append(time.monotonic())
            self.server.bodies.append(body)
            self.server.headers.append(dict(self.headers))
            self.server.now += 1
            self.server.most = max(self.server.most, self.server.now)
            attempt = len(self.server.attempts[text])
        try:
            self.server.answer(self, body, attempt)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        finally:
            with self.server.lock:
                self.server.now -= 1

    def reply(self, status: int, content: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"content-type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        pass

    def finish(self) -> None:
        with suppress(OSError, ValueError):
            super().finish()


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, answer: Answer) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer = answer
        self.attempts: dict[str, list[float]] = defaultdict(list)
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.lock = threading.Lock()
        self.now = 0
        self.most = 0

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request: object, client_address: object) -> None:
        pass


@contextmanager
def serving(answer: Answer) -> Iterator[Server]:
    server = Server(answer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def completion(text: str | None, **choice: Any) -> bytes:
    return json.dumps(
        {
            "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop", **choice}],
            "usage": {"prompt_tokens": 7, "completion_tokens": 3},
        }
    ).encode()


def behave(handler: Handler, body: dict[str, Any], attempt: int) -> None:
    """Answer every chat with its last message in SQL, every embedding request with hashed vectors."""
    if handler.path.endswith("/embeddings"):
        data = [
            {"index": i, "embedding": [float(len(t)), float(t.count("a")), 1.0]} for i, t in enumerate(body["input"])
        ]
        handler.reply(200, json.dumps({"data": data[::-1]}).encode())
    else:
        handler.reply(200, completion(f"SELECT '{body['messages'][-1]['content']}'"))


# ── faults ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def refuse(status: int, headers: dict[str, str] | None = None) -> Answer:
    return lambda handler, body, attempt: handler.reply(status, b'{"error": "no"}', headers)


def reset(handler: Handler, body: dict[str, Any], attempt: int) -> None:
    handler.reset()


def hang(seconds: float) -> Answer:
    def answer(handler: Handler, body: dict[str, Any], attempt: int) -> None:
        time.sleep(seconds)
        handler.close_connection = True

    return answer


def truncate(handler: Handler, body: dict[str, Any], attempt: int) -> None:
    handler.reply(200, completion("SELECT 1")[:40])


def break_off(handler: Handler, body: dict[str, Any], attempt: int) -> None:
    handler.send_response(200)
    handler.send_header("content-length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"choices"')
    handler.close_connection = True


def no_choices(handler: Handler, body: dict[str, Any], attempt: int) -> None:
    handler.reply(200, b'{"choices": []}')


def say_nothing(handler: Handler, body: dict[str, Any], attempt: int) -> None:
    handler.reply(200, completion(None))


# ── replies in pieces ────────────────────────────────────────────────────────────────────────────────────────────────


def piece(text: str = "", **more: Any) -> bytes:
    """One event of a streamed reply."""
    choice = {"index": 0, "delta": {"content": text} if text else {}, "finish_reason": None}
    return b"data: " + json.dumps({"choices": [choice], **more}).encode() + b"\n\n"


END = (
    b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\n'
    b'data: {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}\n\ndata: [DONE]\n\n'
)


def stream(handler: Handler, *parts: bytes) -> None:
    """Send the parts of a reply one after the other, and close the connection after the last."""
    handler.send_response(200)
    handler.send_header("content-type", "text/event-stream")
    handler.send_header("connection", "close")
    handler.end_headers()
    for part in parts:
        handler.wfile.write(part)
        handler.wfile.flush()
    handler.close_connection = True
