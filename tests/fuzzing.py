"""Attacks the locks with random statements while canaries watch, and takes the time, memory and errors of each.

`python tests/fuzzing.py --statements 250000 --progress FILE` runs a million over four engines, in chunks with seeds of
their own; started again with the same file, it goes on after the chunks that are in it. Statements are the corpus and
plain queries, mutated with fragments that have been dangerous somewhere.
"""

import argparse
import json
import os
import random
import re
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import engines
from attacking import statements as corpus
from canaries import Canaries, watching
from engines import Server
from memory import peak_megabytes, peak_megabytes_of_children
from servers import short_folder
from sqlcrystal.databases import open_database
from sqlcrystal.protocols import Database
from sqlcrystal.types import Failure

TIMEOUT = 0.2
LATE = TIMEOUT + 1.0
AGAIN = 3
"""A statement that was late on a busy machine is run again; it is late when it is late so many times."""
WATCHED, WATCHED_WELL = 100, 5000
"""After so many statements the canaries are asked."""
CHUNK = 25_000
ENGINES = ("sqlite", "postgres", "mysql", "duckdb")
FRAGMENTS = tomllib.loads(Path(__file__).with_name("fragments.toml").read_text(encoding="utf-8"))
BOMBS_IN = 500
ODD = ["\u00a0", "\u3000", "\u2003", "\u0085", "\u1680", "\u2028", "\u200b", "\ufeff"]
ODD += ["\x0b", "\x0c", "\x1f", "\x01", "\r", "\t", "é", "ſ", "İ", "\ud800", "\x00"]
_VALUE = re.compile(r"\b\d+\b|'[a-z%?]*'|\b(?:id|name|goals|pay|born)\b")
_TABLE = re.compile(r"\b(?:team|player|scorer)\b")


def _pieces(name: str, canaries: Canaries) -> list[str]:
    """One kind of fragment, aimed at these canaries."""
    places = {
        "EVIL": canaries.evil,
        "PROGRAM'": f"{canaries.program}'",
        "SECRET": canaries.secret,
        "PORT": canaries.port,
    }
    text = str(FRAGMENTS[name])
    for word, place in places.items():
        text = text.replace(word, str(place))
    return [line.replace("⏎", "\n") for line in text.strip("\n").split("\n")]


class Fuzzer:
    """Makes statements for one engine from a seed."""

    def __init__(self, engine: str, seed: int, canaries: Canaries) -> None:
        self._draw = random.Random(f"{engine}/{seed}")
        attacks = [sql for family, sql in corpus(engine, str(canaries.evil)) if family != "bombs"]
        self._seeds = [*_pieces("queries", canaries) * 12, *attacks]
        pieces = {name: _pieces(name, canaries) for name in ("values", "tables", "bombs", "gaps", "anywhere")}
        self._values, self._tables, self._bombs = pieces["values"], pieces["tables"], pieces["bombs"]
        self._gaps, self._anywhere = pieces["gaps"] + ODD, pieces["anywhere"] + ODD
        self._changes = [self._value] * 8 + [self._gap] * 5 + [self._table] * 2
        self._changes += [self._insert, self._insert, self._insert, self._cut, self._splice, self._double]

    def statement(self) -> str:
        """A statement with one to five changes."""
        text = self._draw.choice(self._seeds)
        for _ in range(self._draw.choice((1, 1, 1, 2, 2, 3, 5))):
            text = self._draw.choice(self._changes)(text)
        return text[:4000]

    def _value(self, text: str) -> str:
        bomb = self._draw.randrange(BOMBS_IN) == 0  # each costs a second and a process
        return self._replaced(text, _VALUE, self._bombs if bomb else self._values)

    def _table(self, text: str) -> str:
        return self._replaced(text, _TABLE, self._tables)

    def _replaced(self, text: str, pattern: re.Pattern[str], pieces: list[str]) -> str:
        matches = list(pattern.finditer(text))
        if not matches:
            return text
        match = self._draw.choice(matches)
        return text[: match.start()] + self._draw.choice(pieces) + text[match.end() :]

    def _gap(self, text: str) -> str:
        places = [index for index, character in enumerate(text) if character in " (),"] or [0]
        at = self._draw.choice(places)
        return text[:at] + self._draw.choice(("", " ")) + self._draw.choice(self._gaps) + text[at:]

    def _place(self, text: str) -> int:
        """Mostly between two words."""
        if self._draw.random() < 0.7:
            return self._draw.choice([index for index, character in enumerate(text) if character in " (),"] or [0])
        return self._draw.randrange(len(text) + 1)

    def _insert(self, text: str) -> str:
        at = self._place(text)
        glue = self._draw.choice(("", " "))
        return text[:at] + glue + self._draw.choice(self._anywhere) + glue + text[at:]

    def _cut(self, text: str) -> str:
        at, to = sorted((self._place(text), self._place(text)))
        return text[:at] + text[min(to, at + 12) :]

    def _splice(self, text: str) -> str:
        other = self._draw.choice(self._seeds)
        return text[: self._place(text)] + other[self._place(other) :]

    def _double(self, text: str) -> str:
        at, to = sorted((self._place(text), self._place(text)))
        return text[:to] + text[at:to] * self._draw.choice((1, 1, 8)) + text[to:]


@contextmanager
def league(engine: str, folder: Path) -> Iterator[Server]:
    """The engine's league, for a reader and for its owner."""
    makers: dict[str, Callable[[Path], str]] = {"sqlite": engines.make_sqlite, "duckdb": engines.make_duckdb}
    if engine in makers:
        url = makers[engine](folder / f"league.{engine}")
        yield Server(url, url, folder, os.getpid())
        return
    with engines.postgres() if engine == "postgres" else engines.mariadb() as server:
        yield server


class Fuzzing:
    """One run of so many statements: what came of them, and everything that should not have happened."""

    def __init__(self, engine: str, server: Server, canaries: Canaries, *, seed: int, owner: bool) -> None:
        """As the owner, only the guard stands before a server's files."""
        self.kinds: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.slowest = 0.0
        self._url = server.owner if owner else server.reader
        self._owner = owner
        self._fuzzer = Fuzzer(engine, seed, canaries)
        self._canaries = canaries

    def run(self, count: int) -> None:
        """Until the count is full or a canary has sung: after that nothing more is to be learnt."""
        database = self._open()
        for number in range(1, count + 1):
            if not self._one(database, self._fuzzer.statement()):
                database.close()
                database = self._open()
            well = number % WATCHED_WELL == 0 or number == count
            if number % WATCHED and not well:
                continue
            if heard := self._canaries.sung_at_all() if well else self._canaries.sung():
                self.wrong.append(f"{heard} within the {WATCHED_WELL if well else WATCHED} statements before {number}")
                break
        database.close()

    def _open(self) -> Database:
        return open_database(self._url, allow_privileged=self._owner)

    def _one(self, database: Database, sql: str) -> bool:
        """Whether the statement ended as every statement shall: typed, in time, and telling no secret."""
        start = time.perf_counter()
        try:
            result = database.execute(sql, timeout=TIMEOUT, max_rows=50)
            seconds = time.perf_counter() - start
            if seconds > LATE and is_late(database, sql, limit=TIMEOUT, late=LATE):
                self.wrong.append(f"{seconds:.1f} s: {sql!r}")
        except Exception as error:
            self.wrong.append(f"untyped {type(error).__name__}: {error}: {sql!r}")
            return False
        if told := self._canaries.told(result):
            self.wrong.append(f"told {told}: {sql!r}")
        self.slowest = max(self.slowest, seconds)
        self.kinds[result.kind if isinstance(result, Failure) else "rows"] += 1
        return True


def is_late(database: Database, sql: str, *, limit: float, late: float) -> bool:
    """Whether the statement is late whenever it is run: other work on the machine can make it so once."""
    for _ in range(AGAIN):
        database.execute("SELECT 1")  # so that a process or connection is there, if the last one had to be ended
        start = time.perf_counter()
        database.execute(sql, timeout=limit, max_rows=50)
        if time.perf_counter() - start <= late:
            return False
    return True


def fuzz(engine: str, server: Server, count: int, seed: int, *, owner: bool = False) -> dict[str, Any]:
    """Run so many statements; everything that should not have happened, with the statement it happened to."""
    before = peak_megabytes(), peak_megabytes_of_children()
    with short_folder("fuzz") as folder:
        folder.chmod(0o777)
        with watching(engine, server, folder) as canaries:
            fuzzing = Fuzzing(engine, server, canaries, seed=seed, owner=owner)
            fuzzing.run(count)
    return {
        "engine": engine,
        "statements": fuzzing.kinds.total(),
        "seed": seed,
        "owner": owner,
        "kinds": dict(fuzzing.kinds),
        "wrong": fuzzing.wrong,
        "slowest": round(fuzzing.slowest, 2),
        "megabytes": [peak_megabytes() - before[0], peak_megabytes_of_children() - before[1]],
    }


def main() -> int:
    """Fuzz by hand; every second chunk as the owner of the database. Exit code 1 when any was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=ENGINES, action="append")
    parser.add_argument("--statements", type=int, default=250_000, help="for each engine")
    parser.add_argument("--seed", type=int, default=0, help="of the first chunk")
    parser.add_argument("--progress", type=Path, default=Path("fuzzing.jsonl"), help="one line for each chunk")
    chosen = parser.parse_args()
    chosen.progress.parent.mkdir(parents=True, exist_ok=True)
    lines = chosen.progress.read_text(encoding="utf-8").splitlines() if chosen.progress.exists() else []
    reports = [json.loads(line) for line in lines]
    done = {(report["engine"], report["seed"]) for report in reports}
    for engine in chosen.engine or ENGINES:
        seeds = range(chosen.seed, chosen.seed + -(-chosen.statements // CHUNK))
        with short_folder("league") as folder, league(engine, folder) as server:
            for seed in (seed for seed in seeds if (engine, seed) not in done):
                start = time.monotonic()
                report = fuzz(engine, server, min(CHUNK, chosen.statements), seed, owner=seed % 2 == 1)
                report["seconds"] = round(time.monotonic() - start)
                with chosen.progress.open("a", encoding="utf-8") as progress:
                    print(json.dumps(report), file=progress)
                print(f"{engine} {seed}: {report['statements']} statements, {len(report['wrong'])} wrong", flush=True)
                reports.append(report)
    wrong = [f"{report['engine']} {report['seed']}: {what}" for report in reports for what in report["wrong"]]
    print(*wrong, f"{sum(report['statements'] for report in reports):,} statements, {len(wrong)} wrong", sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
