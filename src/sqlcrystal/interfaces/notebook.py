"""The notebook magic `%%ask`: `%load_ext sqlcrystal.interfaces.notebook`, then a question in a cell.

IPython is not imported: it hands itself over when it loads the extension.
"""

import argparse
import shlex
from typing import Any, NoReturn

from sqlcrystal.errors import UserError
from sqlcrystal.serving import Crystal, ServedAnswer
from sqlcrystal.serving.opening import open_crystal

USAGE = "%%ask [--db NAME, FILE or URL] [--model NAME] [--store PLACE] [--follow ID or last] [--into NAME]"


class _Line(argparse.ArgumentParser):
    """The options behind %%ask; a mistake is an error of ours and does not end the kernel."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong in one line."""
        raise UserError(f"{message}; {USAGE}")


class Asking:
    """The magics of one notebook: they share what they open until a cell names something else."""

    def __init__(self, shell: Any) -> None:
        """Open nothing yet; the shell takes the variables that `--into` names."""
        self._shell = shell
        self._opened: tuple[tuple[str | None, ...], Crystal, str | None] | None = None
        self._line = _Line(prog="%%ask", add_help=False)
        for option in ("--db", "--model", "--store", "--follow", "--into"):
            self._line.add_argument(option)

    def ask(self, line: str, cell: str | None = None) -> ServedAnswer:
        """Answer the cell's question, or without a cell the line's; the notebook shows the answer as a table."""
        options, words = self._line.parse_known_args(_words(line))
        crystal, database = self._crystal(options.db, options.model, vars(options)["store"])
        question = cell if cell is not None and cell.strip() else " ".join(words)
        if cell is not None and cell.strip() and words:
            raise UserError(f"{words[0]!r}: not an option; {USAGE}")
        answer = crystal.ask(question, database, follow=options.follow or "")
        if options.into:
            self._shell.push({options.into: answer})
        return answer

    def right(self, line: str) -> Any:
        """Vouch for an answer or a proposal, by default for the last answer."""
        return self._crystal(None, None, None)[0].confirm(line.strip() or "last")

    def wrong(self, line: str) -> Any:
        """Reject the last answer, with a note; a repair proposes another."""
        return self._crystal(None, None, None)[0].reject("last", note=line.strip())

    def pick(self, line: str) -> Any:
        """Say which reading of the last answer was meant, 1 or 2."""
        if line.strip() not in ("1", "2"):
            raise UserError("%pick: say which, 1 or 2")
        return self._crystal(None, None, None)[0].pick("last", int(line))

    def close(self) -> None:
        """Close what was opened."""
        if self._opened is not None:
            self._opened[1].close()
            self._opened = None

    def _crystal(self, db: str | None, model: str | None, store: str | None) -> tuple[Crystal, str | None]:
        wanted = (db, model, store)
        if self._opened is None or (any(wanted) and self._opened[0] != wanted):
            self.close()
            self._opened = (wanted, *open_crystal(db=db, model=model, store=store))
        return self._opened[1:]


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise UserError(f"{error}; {USAGE}") from None


def load_ipython_extension(shell: Any) -> None:
    """Add the magics: %%ask and %ask, %right, %wrong, %pick."""
    asking = Asking(shell)
    shell.register_magic_function(asking.ask, "line_cell", "ask")
    shell.register_magic_function(asking.right, "line", "right")
    shell.register_magic_function(asking.wrong, "line", "wrong")
    shell.register_magic_function(asking.pick, "line", "pick")
    shell.sqlcrystal = asking


def unload_ipython_extension(shell: Any) -> None:
    """Close what the magics opened."""
    shell.sqlcrystal.close()
