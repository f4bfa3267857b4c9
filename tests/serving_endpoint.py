"""A real HTTP endpoint that answers chats as a scripted model would."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from model_endpoints import Handler, Server, completion, serving
from sqlcrystal.models.scripted import Script, ScriptedModel
from sqlcrystal.types import Message, Sampling


@contextmanager
def scripted_endpoint(script: Script, *, key: str = "") -> Iterator[Server]:
    """Answer by a script; with a key, refuse who does not have it."""
    model = ScriptedModel(script)

    def answer(handler: Handler, body: dict[str, Any], _: int) -> None:
        if key and handler.headers.get("authorization") != f"Bearer {key}":
            handler.reply(401, b'{"error": "no such key"}')
            return
        messages = [Message(message["role"], message["content"]) for message in body["messages"]]
        handler.reply(200, completion(model.chat(messages, sampling=Sampling()).text))

    with serving(answer) as server:
        yield server


def model_at(server: Server) -> str:
    """How a command names the model behind an endpoint."""
    return f"{server.base_url}#scripted"


def snapshot(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, to see whether anything changed; SQLite's own working files do not count."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(("-shm", "-wal"))
    }
