"""Running commands as a user does, in this process: their exit code, what they print, and what they complain of."""

import json
import sys
from typing import Any, NamedTuple

import pytest


class Done(NamedTuple):
    """A command that ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """What --json printed."""
        return json.loads(self.out)


def run_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: object) -> Done:
    """Run `sqlcrystal …`."""
    from sqlcrystal.interfaces.cli.app import main

    monkeypatch.setattr(sys, "argv", ["sqlcrystal", *map(str, arguments)])
    capsys.readouterr()
    try:
        main()
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    printed = capsys.readouterr()
    return Done(code, printed.out, printed.err)
