"""`sqlcrystal` alone: a prompt for asking, confirming and correcting in turn, with history."""

import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sqlcrystal.errors import Contradicted, SqlcrystalError
from sqlcrystal.escaping import visible
from sqlcrystal.interfaces.cli.ask import (
    Typed,
    answer_lines,
    correction_lines,
    rejection_lines,
    ruling_lines,
    trace_lines,
)
from sqlcrystal.interfaces.cli.options import opened_crystal, ready_model
from sqlcrystal.interfaces.cli.output import tell, tell_step

if TYPE_CHECKING:
    from sqlcrystal.serving import Crystal, ServedAnswer

ANYWAY = "anyway"
PICKS = ("1", "2")
HELP = """\
Ask in words; a question after an answer may go on from it ("and in 2012?"). Of the last answer:
  /yes [anyway]   it is right: bank it         /no [NOTE]   it is wrong: propose another
  /sql SELECT …   the right SQL: bank it       /trace       what was tried
  1 or 2          which of two readings was meant
Else: /new (another topic)   /db NAME, FILE or URL   /queue   /help   /quit"""
WORDS = Typed(
    confirm="/yes", reject="/no [NOTE] or /sql SELECT …", correct="/sql SELECT …", take="/yes {}", pick="1 or 2"
)
"""The words that are typed here after an answer."""
ALSO = {"help": "/help", "?": "/help", "quit": "/quit", "exit": "/quit"}
"""Words that nobody means as a question."""


def prompt_loop() -> None:
    """Read lines until the end of input or /quit."""
    with opened_crystal(None) as (crystal, _):
        ready_model(crystal.model_spec)
        loop = Loop(crystal)
        with _history(loop):
            print(HELP)
            while loop.running:
                try:
                    line = input(f"{loop.database or 'sqlcrystal'}> ")
                except (EOFError, KeyboardInterrupt):
                    print()
                    return
                loop.take(line)


class Loop:
    """The state of a prompt between two lines: the database, the last answer, and a proposal to decide on."""

    def __init__(self, crystal: "Crystal") -> None:
        self.crystal = crystal
        names = crystal.database_names()
        self.database = names[0] if len(names) == 1 else None
        self.answer: ServedAnswer | None = None
        self.proposal: str | None = None
        self.running = True
        self.commands: dict[str, Callable[[str], Iterable[str]]] = {
            "/yes": self.confirm,
            "/no": self.reject,
            "/sql": self.correct,
            "/trace": lambda _: trace_lines(self._last()),
            "/new": self.begin,
            "/db": self.choose,
            "/queue": self.queue,
            "/help": lambda _: [HELP],
            "/quit": self.quit,
        }

    def take(self, line: str) -> None:
        """Take one line, a command or a question; an error is a line, and the loop goes on."""
        words = line.strip()
        if not words:
            return
        command, _, rest = ALSO.get(words.casefold(), words).partition(" ")
        try:
            if words in PICKS and self.answer is not None and self.answer.readings:
                lines = self.pick(int(words))
            elif not command.startswith("/"):
                lines = self.ask(words)
            elif command in self.commands:
                lines = self.commands[command](rest.strip())
            else:
                lines = [f"{visible(command)}: no such command; choose from {', '.join(self.commands)}"]
            for text in lines:
                print(text)
        except SqlcrystalError as error:
            print(visible(error.line), file=sys.stderr)
        except KeyboardInterrupt:
            print("given up", file=sys.stderr)

    def ask(self, question: str) -> Iterable[str]:
        """Answer, as a question after the last one, and remember the answer for a verdict."""
        tell("reading the question" if self.answer else "looking for cards")
        try:
            answer = self.crystal.ask(
                question, self.database, follow=self.proposal or self.answer or "", on_event=tell_step
            )
        finally:
            tell("")
        self.answer, self.proposal, self.database = answer, None, answer.database
        yield from answer_lines(answer, prices=self.crystal.prices, typed=WORDS)

    def confirm(self, words: str) -> Iterable[str]:
        """Vouch for the one that is named, the proposal, or else the last answer; `anyway` against a near card too."""
        name = words.removesuffix(ANYWAY).strip()
        try:
            ruling = self.crystal.confirm(name or self.proposal or self._last(), anyway=words != name)
        except Contradicted as doubt:
            return [f"{visible(str(doubt))}: {' '.join(filter(None, ('/yes', name, ANYWAY)))}"]
        return ruling_lines(ruling)

    def pick(self, reading: int) -> Iterable[str]:
        """Say which of the last answer's two readings was meant."""
        try:
            return ruling_lines(self.crystal.pick(self._last(), reading))
        except Contradicted as doubt:
            name = self._last().id if reading == 1 else ""
            return [f"{visible(str(doubt))}: /yes {name or 'ID of the second reading'} {ANYWAY}"]

    def begin(self, question: str) -> Iterable[str]:
        """Leave the conversation, and ask the first question of another if it is given."""
        self.answer = self.proposal = None
        return self.ask(question) if question else ["a new topic"]

    def reject(self, note: str) -> Iterable[str]:
        """Let a repair propose another."""
        answer = self._last()
        tell("looking for a repair")
        try:
            rejection = self.crystal.reject(answer, note=note)
        finally:
            tell("")
        self.proposal = rejection.proposal.id if rejection.proposal is not None else None
        return rejection_lines(rejection, repair=True, typed=WORDS)

    def correct(self, sql: str) -> Iterable[str]:
        """Bank the user's own SQL."""
        return correction_lines(self.crystal.correct(self.proposal or self._last(), sql))

    def choose(self, name: str) -> Iterable[str]:
        """Go on with another database."""
        self.database = self.crystal.database(name or None)
        self.answer = self.proposal = None
        return [f"asking {self.database}"]

    def queue(self, _: str) -> Iterable[str]:
        """List what waits for a verdict."""
        for waiting in self.crystal.queue(self.database, limit=10):
            why = "judge it: chosen for the audit" if waiting.audit else f"asked {waiting.asked}"
            yield f"{waiting.id}  {why}  {visible(waiting.question)}"

    def quit(self, _: str) -> Iterable[str]:
        """Leave."""
        self.running = False
        return []

    def _last(self) -> "ServedAnswer":
        if self.answer is None:
            raise SqlcrystalError("there is no answer yet; ask first")
        return self.answer


class _history:  # noqa: N801
    """Lines of earlier sessions under the arrow keys; the standard library's readline is enough for a prompt."""

    def __init__(self, loop: Loop) -> None:
        self._commands = list(loop.commands)

    def __enter__(self) -> None:
        with suppress(ImportError, OSError):  # no readline on Windows, no file yet
            import readline

            readline.set_completer(
                lambda text, state: [*(command for command in self._commands if command.startswith(text)), None][state]
            )
            readline.set_completer_delims(" ")
            readline.parse_and_bind("tab: complete")
            readline.read_history_file(_history_file())

    def __exit__(self, *_: object) -> None:
        with suppress(ImportError, OSError):
            import readline

            file = _history_file()
            file.parent.mkdir(parents=True, exist_ok=True)
            readline.set_history_length(1000)
            readline.write_history_file(file)
            file.chmod(0o600)


def _history_file() -> Path:
    from sqlcrystal.models.catalogue import cache_root

    return cache_root() / "history"
