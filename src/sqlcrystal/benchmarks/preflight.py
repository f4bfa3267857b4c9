"""Gold as prediction: does a benchmark's own SQL run, return rows, and finish soon enough?"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import asdict

from sqlcrystal.benchmarks.cases import Benchmark, Case
from sqlcrystal.scoring.judge import MAX_ROWS, TIMEOUT, Databases, OnProgress, available_cores, check_files
from sqlcrystal.scoring.verdicts import DEFAULT_RULE, compare
from sqlcrystal.scoring.workers import run_chunks
from sqlcrystal.types import Failure, FailureKind

SLOW_SECONDS = 1.0
_CHUNK = 16


class GoldState(Struct, frozen=True, kw_only=True):
    """The behaviour of one gold; `equal_wrong` counts kept wrong queries that it cannot be told from."""

    question_id: str
    database: str
    outcome: str
    """executed, empty (no row), zero (nothing but NULL and zero), error or timeout"""
    seconds: float
    message: str = ""
    wrong: int = 0
    equal_wrong: int = 0


class DatabaseCheck(Struct, frozen=True, kw_only=True):
    """The behaviour of one database's golds; those that return nothing, or slowly, are among the executed."""

    questions: int
    executed: int
    empty: int
    zero: int
    error: int
    timeout: int
    slow: int
    equal_wrong: int = 0


class Preflight(Struct, frozen=True, kw_only=True):
    """The behaviour of a benchmark's golds, overall and per database, and every one that needs a look."""

    benchmark: str
    questions: int
    executed: int
    empty: int
    zero: int
    error: int
    timeout: int
    slow: int
    wrong: int
    equal_wrong: int
    by_database: dict[str, DatabaseCheck]
    findings: tuple[GoldState, ...]
    missing_databases: tuple[str, ...] = ()


_Chunk: TypeAlias = tuple[str, Sequence[tuple[int, Case]]]


def check_benchmark(
    benchmark: Benchmark,
    *,
    jobs: int | None = None,
    timeout: float = TIMEOUT,
    max_rows: int = MAX_ROWS,
    on_progress: OnProgress | None = None,
) -> Preflight:
    """Execute every gold, and every kept wrong query, on databases that are all there; nothing is cached."""
    check_files({name: benchmark.locations[name] for name in benchmark.databases})
    states: dict[int, GoldState] = {}
    chunks = _chunks(benchmark)

    def collect(result: list[tuple[int, dict[str, Any]]]) -> None:
        states.update((place, GoldState(**fields)) for place, fields in result)
        if on_progress:
            on_progress(len(states), len(benchmark.cases))

    @contextmanager
    def open_worker() -> Iterator[Callable[[_Chunk], list[tuple[int, dict[str, Any]]]]]:
        databases = Databases(benchmark.locations)
        try:
            yield lambda chunk: [
                (place, asdict(_state(case, databases, timeout, max_rows))) for place, case in chunk[1]
            ]
        finally:
            databases.close()

    def start() -> None:
        if on_progress:
            on_progress(0, len(benchmark.cases))

    run_chunks(open_worker, chunks, jobs=jobs or available_cores(), on_start=start, on_result=collect)
    return _summary(benchmark, [states[place] for place in range(len(benchmark.cases))])


def _state(case: Case, databases: Databases, timeout: float, max_rows: int) -> GoldState:
    database = case.question.database
    gold = databases.execute(database, case.sql, timeout=timeout, max_rows=max_rows)
    if isinstance(gold, Failure):
        outcome, message = ("timeout" if gold.kind is FailureKind.TIMEOUT else "error"), f"{gold.kind}: {gold.message}"
    else:
        says_something = any(cell not in (None, 0) for row in gold.rows for cell in row)
        outcome, message = ("executed" if says_something else "zero" if gold.rows else "empty"), ""
    equal = 0
    for sql in case.wrong:
        other = databases.execute(database, sql, timeout=timeout, max_rows=max_rows)
        equal += compare(gold, other, DEFAULT_RULE).correct
    return GoldState(
        question_id=case.question.id,
        database=database,
        outcome=outcome,
        seconds=round(gold.seconds, 6),
        message=message,
        wrong=len(case.wrong),
        equal_wrong=equal,
    )


def _summary(benchmark: Benchmark, states: Sequence[GoldState]) -> Preflight:
    by_database = {name: _count([state for state in states if state.database == name]) for name in benchmark.databases}
    total = _count(states)
    return Preflight(
        benchmark=benchmark.name,
        questions=total.questions,
        executed=total.executed,
        empty=total.empty,
        zero=total.zero,
        error=total.error,
        timeout=total.timeout,
        slow=total.slow,
        wrong=sum(state.wrong for state in states),
        equal_wrong=total.equal_wrong,
        by_database=by_database,
        findings=tuple(
            state
            for state in states
            if state.outcome != "executed" or state.seconds > SLOW_SECONDS or state.equal_wrong
        ),
    )


def _count(states: Sequence[GoldState]) -> DatabaseCheck:
    outcomes = [state.outcome for state in states]
    return DatabaseCheck(
        questions=len(states),
        executed=sum(outcomes.count(outcome) for outcome in ("executed", "empty", "zero")),
        empty=outcomes.count("empty"),
        zero=outcomes.count("zero"),
        error=outcomes.count("error"),
        timeout=outcomes.count("timeout"),
        slow=sum(state.seconds > SLOW_SECONDS for state in states),
        equal_wrong=sum(state.equal_wrong for state in states),
    )


def _chunks(benchmark: Benchmark) -> list[_Chunk]:
    places: dict[str, list[tuple[int, Case]]] = {}
    for place, case in enumerate(benchmark.cases):
        places.setdefault(case.question.database, []).append((place, case))
    return [
        (name, members[start : start + _CHUNK])
        for name, members in places.items()
        for start in range(0, len(members), _CHUNK)
    ]
