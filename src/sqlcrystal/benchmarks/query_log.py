"""A benchmark's gold SQL as a team's query log: without its questions, and with a share that is wrong or stale.

Here gold is the input, as SQL of others is in service: what a log holds may be read by the source that starts from it.
Its questions, and all gold of held-out questions, stay here.
"""

import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path
from random import Random

from sqlglot import exp

from sqlcrystal.benchmarks.cases import Case
from sqlcrystal.databases.parsing import Unparsable, parse, written
from sqlcrystal.errors import DataError

STATEMENTS = 200
FILES = 4
SEED = 42
NOISE = (
    "SELECT 1",
    "BEGIN",
    "INSERT INTO audit (at) VALUES ('2024-01-01')",
    "SELECT value FROM settings_old WHERE api_key = 'sk-live-0123456789abcdefgh'",
    "SELECT TOP 10 [id] FROM [dbo].[events]",
)
"""Statements that no log is without, and nobody can learn from."""


def logged(case: Case, dialect: str, *, share: float = 0.0) -> str:
    """Give the query that a log holds for a case; of a share half are wrong, and half name a table that is gone."""
    lot = _lot(*case.question.key)
    if lot >= share:
        return case.sql
    return _stale(case.sql, dialect) if lot < share / 2 else _wrong(case, dialect)


def _lot(*parts: str) -> float:
    """Draw a number from 0 to 1 that depends on the question alone, so that a larger share only adds."""
    digest = hashlib.sha256("\0".join(("log", *parts)).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def _wrong(case: Case, dialect: str) -> str:
    """Give a query known to be wrong; without one, gold that lost its last condition; else one that is stale."""
    if case.wrong:
        return case.wrong[0]
    try:
        tree = parse(case.sql, dialect)
    except Unparsable:
        return case.sql
    where = tree.find(exp.Where)
    if where is None:
        return _stale(case.sql, dialect)
    condition = where.this
    if isinstance(condition, exp.And):
        condition.replace(condition.this)
    else:
        where.pop()
    return written(tree, dialect)


def _stale(sql: str, dialect: str) -> str:
    """Name a table as it was called before."""
    try:
        tree = parse(sql, dialect)
        table = tree.find(exp.Table)
        if table is not None:
            table.set("this", exp.to_identifier(f"{table.name}_before_2020"))
        return written(tree, dialect)
    except Unparsable:
        return sql


def write_database(location: str, folder: Path) -> str:
    """Copy a database that is a file into a folder, and tell its new place; a server's stays where it is."""
    file = Path(location)
    if not file.is_file():
        return location
    try:
        return str(shutil.copyfile(file, folder / file.name))
    except OSError as error:
        raise DataError(f"{folder}: cannot be written ({error.strerror})") from None


def write_log(cases: Sequence[Case], folder: Path, *, statements: int = STATEMENTS) -> int:
    """Write a log to learn with: every query at least once, some often, and what no log is without; returns how many.

    The same questions give the same files on every machine.
    """
    random = Random(SEED)
    queries = [case.sql.strip().rstrip(";") for case in cases]
    if not queries or len(queries) + len(NOISE) > statements:
        raise DataError(f"a log of {statements} statements needs from 1 to {statements - len(NOISE)} questions")
    often = [1 / place for place in range(1, len(queries) + 1)]
    random.shuffle(often)
    missing = statements - len(queries) - len(NOISE)
    ran = [*queries, *NOISE, *random.choices(queries, often, k=missing)]
    random.shuffle(ran)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(FILES):
            text = "".join(f"{sql};\n" for sql in ran[number::FILES])
            (folder / f"week-{number + 1}.sql").write_text(text, encoding="utf-8")
    except OSError as error:
        raise DataError(f"{folder}: cannot be written ({error.strerror})") from None
    return len(ran)
