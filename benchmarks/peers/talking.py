"""A tool in a process of its own: asked a line at a time, ended when its time is up, and started again."""

import json
import os
import queue
import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from contestants import TOOLS, Contestant

SECRETS = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "LANGCHAIN_API_KEY", "LANGSMITH_API_KEY", "SQLCRYSTAL_API_KEY")
QUIET = {"ANONYMIZED_TELEMETRY": "False", "LANGCHAIN_TRACING_V2": "false", "DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1"}


class TimeIsUp(Exception):
    """The tool did not answer in time, or died."""


class Talking:
    """One process of a tool, which asks the model under a key of its own."""

    def __init__(
        self, contestant: Contestant, python: Path, *, base_url: str, key: str, model: str, log: Path, seconds: float
    ) -> None:
        """Start it."""
        self.key, self._seconds = key, seconds
        self.ended = False
        environment = {name: value for name, value in os.environ.items() if name not in SECRETS} | QUIET
        if contestant.environment:
            environment.pop("PYTHONPATH", None)
        with log.open("a") as errors:
            self._process = subprocess.Popen(
                [str(python), str(TOOLS / contestant.script), base_url, key, model, "wordllama", *contestant.arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=environment,
                cwd=log.parent,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin, self._process.stdout
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, args=[self._out], daemon=True)
        self._reader.start()

    def ask(self, do: str, **more: Any) -> dict[str, Any]:
        """Send one line and wait for its reply."""
        try:
            self._in.write(json.dumps({"do": do, **more}) + "\n")
            self._in.flush()
            line = self._lines.get(timeout=self._seconds)
        except queue.Empty:
            raise TimeIsUp(f"no answer within {self._seconds:g} s") from None
        except OSError as error:
            raise TimeIsUp(f"the tool ended: {error}") from None
        if not line:
            raise TimeIsUp("the tool ended; its log says why")
        reply: dict[str, Any] = json.loads(line)
        return reply

    def end(self) -> None:
        """End the process."""
        self.ended = True
        self._process.kill()
        self._reader.join()
        for pipe in (self._in, self._out):
            with suppress(OSError):  # a line that it did not take in
                pipe.close()
        self._process.wait()

    def _read(self, out: TextIO) -> None:
        for line in out:
            self._lines.put(line)
        self._lines.put("")
