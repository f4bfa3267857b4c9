"""The pairs to judge in chunks for the workers: each of one database, none sharing a statement with another."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from sqlcrystal.databases.engines import locate
from sqlcrystal.scoring.tokens import sqlite_key

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
