"""Time that an answer spends outside: in the model and in the databases, which are nobody's overhead but theirs."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from time import perf_counter

from sqlcrystal.errors import ModelTimeout
from sqlcrystal.protocols import Database, LanguageModel
from sqlcrystal.solving.presentation import tables_of
from sqlcrystal.types import Completion, Execution, Message, Sampling, Table
from sqlcrystal.waiting import is_over

Watch = Callable[[str], AbstractContextManager[object]]


class Clock:
    """Seconds outside since it was started; of one thread."""

    def __init__(self) -> None:
        """Begin at zero."""
        self.seconds = 0.0


_running: ContextVar[Clock | None] = ContextVar("outside", default=None)
_watch: Watch = nullcontext


def watch_with(watch: Watch) -> None:
    """Enter this around everything outside from now on: a tracer's span, by name."""
    global _watch  # noqa: PLW0603
    _watch = watch


@contextmanager
def clocked() -> Iterator[Clock]:
    """Clock what this thread spends outside within the block."""
    clock = Clock()
    before = _running.set(clock)
    try:
        yield clock
    finally:
        _running.reset(before)


@contextmanager
def _outside(name: str) -> Iterator[None]:
    clock = _running.get()
    started = perf_counter()
    try:
        with _watch(name):
            yield
    finally:
        if clock is not None:
            clock.seconds += perf_counter() - started


class ClockedModel:
    """A model whose calls a running clock counts, waiting for one of its slots included."""

    def __init__(self, model: LanguageModel) -> None:
        """Be that model in everything else."""
        self.name, self.digest, self.slots = model.name, model.digest, model.slots
        self._model = model

    def chat(self, messages: Sequence[Message], *, sampling: Sampling) -> Completion:
        """Give the model's reply; no call is begun that nobody waits for."""
        if is_over():
            raise ModelTimeout(f"model {self.name}: the time for this answer is up")
        with _outside("model"):
            return self._model.chat(messages, sampling=sampling)

    def close(self) -> None:
        """Leave the model open: it is others' too."""


class ClockedDatabase:
    """A database whose work a running clock counts."""

    def __init__(self, database: Database) -> None:
        """Be that database in everything else."""
        self.name, self.dialect = database.name, database.dialect
        self._database = database

    def schema(self) -> str:
        """Tell what the database tells."""
        with _outside("schema"):
            return self._database.schema()

    def tables(self) -> Sequence[Table]:
        """Tell what the database tells, one by one."""
        with _outside("schema"):
            return tables_of(self._database)

    def fingerprint(self) -> str:
        """Give that of the schema."""
        with _outside("schema"):
            return self._database.fingerprint()

    def execute(self, sql: str, *, timeout: float = 30.0, max_rows: int = 100_000) -> Execution:
        """Give the statement's result; the engine's own time counts, reading the statement before that is ours."""
        with _watch("statement"):
            execution = self._database.execute(sql, timeout=timeout, max_rows=max_rows)
        if (clock := _running.get()) is not None:
            clock.seconds += execution.seconds
        return execution

    def close(self) -> None:
        """Close the database."""
        self._database.close()
