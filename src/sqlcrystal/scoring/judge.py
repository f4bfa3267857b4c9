"""Judges many predictions at once: each SQL runs once per database, in parallel chunks, behind the guard."""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TypeAlias

from sqlcrystal.databases import open_database
from sqlcrystal.databases.engines import locate, title_of
from sqlcrystal.errors import DatabaseError, DataError
from sqlcrystal.protocols import Database
from sqlcrystal.scoring.cache import GoldCache
from sqlcrystal.scoring.verdicts import Judgement, Kind, compare, rule_named, sqlite_key
from sqlcrystal.scoring.workers import run_chunks
from sqlcrystal.types import Execution, Failure, FailureKind, Rows

_SMALL = 16
"""Tasks in a part of a database that is too much for one worker."""
_CHUNKS_PER_JOB = 4
_BYTES_OF_A_TASK = 2**18
"""Scanning so much of a file takes about as long as checking and preparing a statement."""


class PredictedPair(NamedTuple):
    """A prediction to judge against gold, both as the rule executes them."""

    database: str
    gold: str
    predicted: str


Task: TypeAlias = tuple[int, PredictedPair]
"""A pair with its place among all."""
Chunk: TypeAlias = tuple[str, list[Task]]
"""A database with tasks on it."""


def chunks_of(places: Mapping[PredictedPair, int], locations: Mapping[str, str], jobs: int) -> list[Chunk]:
    """The tasks in chunks, the costliest first, so that the workers end together.

    A database stays whole, so that one worker opens it, unless it is more than a small part of a worker's share.
    """
    whole: dict[str, list[Task]] = {}
    for pair, place in places.items():
        whole.setdefault(pair.database, []).append((place, pair))
    cost = {database: _cost_of_a_task(locations[database]) for database in whole}
    largest = sum(cost[database] * len(tasks) for database, tasks in whole.items()) / (jobs * _CHUNKS_PER_JOB)
    chunks: list[Chunk] = []
    for database, tasks in whole.items():
        fits = cost[database] * len(tasks) <= largest or len(tasks) <= _SMALL
        parts = [tasks] if fits else _parts(tasks, keying(locations[database]))
        chunks += [(database, part) for part in parts]
    return sorted(chunks, key=lambda chunk: -cost[chunk[0]] * len(chunk[1]))


def keying(location: str) -> Callable[[str], str]:
    """Gives statements on one database keys that they share only if their rows are the same."""
    return sqlite_key if sqlite_file(location) else str


def sqlite_file(location: str) -> Path | None:
    """The file that holds all of a database, if there is one."""
    engine, path = locate(location)
    return path if engine.content_is_its_file else None


def _cost_of_a_task(location: str) -> float:
    path = sqlite_file(location)
    return 1.0 + (path.stat().st_size / _BYTES_OF_A_TASK if path and path.is_file() else 0.0)


def _parts(tasks: Sequence[Task], key_of: Callable[[str], str]) -> Iterator[list[Task]]:
    """A database's tasks in small parts that share no statement; what one statement ties stays together."""
    leader: dict[str, str] = {}

    def find(node: str) -> str:
        while (above := leader.setdefault(node, node)) != node:
            leader[node] = leader[above]
            node = leader[node]
        return node

    for _, pair in tasks:
        leader[find(key_of(pair.predicted))] = find(key_of(pair.gold))
    tied: dict[str, list[Task]] = {}
    for task in tasks:
        tied.setdefault(find(key_of(task[1].gold)), []).append(task)
    part: list[Task] = []
    for members in tied.values():
        if part and len(part) + len(members) > _SMALL:
            yield part
            part = []
        part = part + members
    yield part


TIMEOUT = 30.0
MAX_ROWS = 1_000_000
_KINDS = {kind.value: kind for kind in Kind}
_BROKEN_FILE = re.compile("malformed|not a database")


OnProgress: TypeAlias = Callable[[int, int], None]
_Result: TypeAlias = list[tuple[int, str, float, str]]
"""The place of each pair and its judgement's fields, as they travel between processes."""


def judge(
    pairs: Sequence[PredictedPair],
    locations: Mapping[str, str],
    *,
    rule: str,
    jobs: int | None = None,
    timeout: float = TIMEOUT,
    max_rows: int = MAX_ROWS,
    cache: GoldCache | None = None,
    on_progress: OnProgress | None = None,
) -> list[Judgement]:
    """One verdict per pair, in order; `cache` keeps gold results for the next run."""
    rule_named(rule)
    jobs = jobs or available_cores()
    places = {pair: place for place, pair in enumerate(dict.fromkeys(pairs))}
    chunks = chunks_of(places, locations, jobs)
    check_files({database: locations[database] for database, _ in chunks})
    digests = _digests(chunks, locations, cache)
    verdicts: dict[int, Judgement] = {}

    def collect(result: _Result) -> None:
        for place, kind, seconds, message in result:
            verdicts[place] = Judgement(_KINDS[kind], seconds, message)
        if on_progress:
            on_progress(len(verdicts), len(places))

    def start() -> None:
        if on_progress:
            on_progress(0, len(places))

    @contextmanager
    def open_worker() -> Iterator[Callable[[Chunk], _Result]]:
        judge_ = _Judge(locations, digests, cache, rule=rule, timeout=timeout, max_rows=max_rows)
        try:
            yield judge_
        finally:
            judge_.close()

    run_chunks(open_worker, chunks, jobs=jobs, on_start=start, on_result=collect)
    return [verdicts[places[pair]] for pair in pairs]


def available_cores() -> int:
    """Tell how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_files(locations: Mapping[str, str]) -> None:
    """Find a missing, empty or foreign file before anything runs."""
    for database, location in locations.items():
        path = sqlite_file(location)
        if path is None:
            continue
        try:
            with path.open("rb") as stream:
                start = stream.read(16)
        except OSError as error:
            raise DataError(f"database {database}: {path} cannot be read ({error.strerror})") from None
        engine, _ = locate(location)
        if not start.startswith(engine.file_begins):
            what = "is empty" if not start else f"is not a {title_of(engine.name)} database"
            raise DataError(f"database {database}: {path} {what}")


class Databases:
    """Databases opened on first use, closed together; a corrupt file is the user's to mend, not a wrong answer."""

    def __init__(self, locations: Mapping[str, str], *, terse: bool = False) -> None:
        self._locations = locations
        self._terse = terse
        self._open: dict[str, Database] = {}

    def execute(self, database: str, sql: str, *, timeout: float, max_rows: int) -> Execution:
        """Run one statement; an empty one is an error of its own."""
        if not sql.strip():
            return Failure(FailureKind.SYNTAX, "there is no SQL")
        if database not in self._open:
            location = self._locations[database]
            self._open[database] = open_database(location, name=database, inspect=False, terse=self._terse)
        try:
            return self._open[database].execute(sql, timeout=timeout, max_rows=max_rows)
        except DatabaseError as error:
            if _BROKEN_FILE.search(str(error)) and (path := sqlite_file(self._locations[database])):
                raise DataError(f"database {database}: {path} is damaged ({error})") from None
            raise

    def close(self) -> None:
        """Close every database."""
        for database in self._open.values():
            database.close()


class _Judge:
    """One worker's hands: its databases, and the executions of the chunk it works on."""

    def __init__(
        self,
        locations: Mapping[str, str],
        digests: Mapping[str, str],
        cache: GoldCache | None,
        *,
        rule: str,
        timeout: float,
        max_rows: int,
    ) -> None:
        self._locations = locations
        self._databases = Databases(locations, terse=True)
        self._digests = digests
        self._cache = cache
        self._rule = rule
        self._timeout = timeout
        self._max_rows = max_rows

    def __call__(self, chunk: Chunk) -> _Result:
        """Judge a chunk; it holds every pair that shares any SQL with it, so nothing runs twice."""
        database, tasks = chunk
        key_of = keying(self._locations[database])
        keyed = [(place, pair, key_of(pair.gold), key_of(pair.predicted)) for place, pair in tasks]
        golds = {gold for _, _, gold, _ in keyed}
        waiting = Counter(key for _, _, gold, predicted in keyed for key in {gold, predicted})
        executions: dict[str, Execution] = {}
        verdicts = []
        for place, pair, gold, predicted in keyed:
            for key, sql in ((gold, pair.gold), (predicted, pair.predicted)):
                if key not in executions:  # a prediction may be another pair's gold, whose rows may be in the cache
                    is_gold = key in golds
                    executions[key] = (
                        self._execute_gold(database, sql, key) if is_gold else self._execute(database, sql)
                    )
            judged = compare(executions[gold], executions[predicted], self._rule, gold_sql=pair.gold)
            verdicts.append((place, judged.kind.value, judged.seconds, judged.message))
            for key in {gold, predicted}:
                waiting[key] -= 1
                if not waiting[key]:
                    del executions[key]  # large results of a whole database would fill the memory
        return verdicts

    def _execute(self, database: str, sql: str) -> Execution:
        return self._databases.execute(database, sql, timeout=self._timeout, max_rows=self._max_rows)

    def _execute_gold(self, database: str, sql: str, key: str) -> Execution:
        digest = self._digests.get(database)
        if self._cache is None or digest is None:
            return self._execute(database, sql)
        cached = self._cache.get(digest, key)
        if cached is not None and len(cached.rows) <= self._max_rows:
            return cached
        execution = self._execute(database, sql)
        if isinstance(execution, Rows):
            self._cache.put(digest, key, execution)
        return execution

    def close(self) -> None:
        """Keep what was learned and let go of the databases."""
        if self._cache is not None:
            self._cache.flush()
        self._databases.close()


def _digests(chunks: Sequence[Chunk], locations: Mapping[str, str], cache: GoldCache | None) -> dict[str, str]:
    """The content digest of every database that is a SQLite file."""
    if cache is None:
        return {}
    files = {database: sqlite_file(locations[database]) for database, _ in chunks}
    return {database: cache.digest_of(path) for database, path in files.items() if path is not None}
