"""The one place where the stages meet: answer() serves a question, learn() turns an attempt into a card or a reason."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from msgspec import Struct

from sqlcrystal.admission import Ungated
from sqlcrystal.protocols import Bank, Check, Database, Retriever, Solver, Source, Verifier, Writer
from sqlcrystal.types import (
    Admitted,
    Attempt,
    Card,
    CardId,
    Episode,
    Execution,
    Question,
    Rejected,
    Retrieved,
    Round,
)

Keep: TypeAlias = Callable[[Card, Episode], object]
"""Where a new card goes, with the episode it came from: a bank's `add`."""


class Answer(Struct, frozen=True, kw_only=True):
    """An attempt, the cards that were in its prompt, and what its SQL returned."""

    attempt: Attempt
    retrieved: tuple[Retrieved, ...]
    execution: Execution | None


class Learned(Struct, frozen=True, kw_only=True):
    """All that came of one attempt: every round, the verdict, and the card if there is one."""

    attempt: Attempt
    right_at_once: bool
    rounds: tuple[Round, ...] = ()
    verdict: Admitted | Rejected | None = None
    card: Card | None = None


def answer(
    question: Question,
    *,
    solver: Solver,
    database: Database,
    retriever: Retriever,
    bank: Bank,
    k: int = 5,
    exclude: CardId | frozenset[CardId] | None = None,
) -> Answer:
    """Retrieve, solve, execute."""
    retrieved = tuple(retriever.retrieve(question, bank, k=k, exclude=exclude))
    attempt = solver.solve(question, [found.card for found in retrieved])
    execution = None if attempt.sql is None else database.execute(attempt.sql)
    return Answer(attempt=attempt, retrieved=retrieved, execution=execution)


def learn(attempt: Attempt, *, source: Source, check: Check, verifier: Verifier, writer: Writer, keep: Keep) -> Learned:
    """Acquire, verify, write, bank; the paper's algorithm for one question."""
    gate = Gate(attempt, check, accept_any=isinstance(verifier, Ungated))
    rounds: list[Round] = []
    episode = source.acquire(attempt, gate, watch=rounds.append) or spent(attempt, source.name, rounds)
    verdict = verifier.verify(episode) if episode is not None else None
    card = None
    if isinstance(verdict, Admitted):
        card = writer.write(verdict)
        keep(card, verdict.episode)
    return Learned(attempt=attempt, right_at_once=gate.right_at_once, rounds=tuple(rounds), verdict=verdict, card=card)


def collect(
    questions: Iterable[Question],
    *,
    solver: Solver,
    source: Source,
    check: Callable[[Question], Check],
    verifier: Verifier,
    writer: Writer,
    keep: Keep,
    passes: int = 1,
    recall: Callable[[Question], Sequence[Card]] = lambda _: (),
) -> Iterator[Learned]:
    """Learn from a stream of questions; a further pass takes up what is still wrong, with what memory recalls of it."""
    waiting = list(questions)
    for number in range(passes):
        missed = []
        for question in waiting:
            attempt = solver.solve(question, recall(question) if number else ())
            learned = learn(attempt, source=source, check=check(question), verifier=verifier, writer=writer, keep=keep)
            if not learned.right_at_once and learned.card is None:
                missed.append(question)
            yield learned
        waiting = missed


class Gate:
    """The check a source is given; it asks about the first attempt once, so that all arms repair the same questions.

    Without verification the first attempt still decides whether repair is due, and then any candidate is accepted:
    that is how the paper's ungated arm stores the first vote-elected candidate.
    """

    def __init__(self, attempt: Attempt, check: Check, *, accept_any: bool) -> None:
        self.right_at_once = attempt.sql is not None and check(attempt.sql)
        self._check = check
        self._accept_any = accept_any
        self._first_is_due = attempt.sql is not None

    def __call__(self, sql: str) -> bool:
        """The bit: first for the first attempt, then for every candidate."""
        if self._first_is_due:
            self._first_is_due = False
            return self.right_at_once
        return self._accept_any or self._check(sql)


def spent(attempt: Attempt, source: str, rounds: Sequence[Round]) -> Episode | None:
    """The last candidate of a budget that was used up: for the verifier to turn away, or for its noise to let in."""
    last = next((r.sql for r in reversed(rounds) if r.sql is not None), None)
    return None if last is None else Episode(attempt=attempt, source=source, sql=last, rounds=tuple(rounds))
