"""Attacks that others wrote, kept beside the project: canaries judge what they did, not what was answered."""

import importlib.util
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from canaries import Canaries, watching
from engines import Absent, Server, driver
from fuzzing import ENGINES, is_late, league
from servers import short_folder
from sqlcrystal.databases import open_database
from sqlcrystal.protocols import Database
from sqlcrystal.types import Failure, FailureKind

LIMIT = 1.0
LATE = LIMIT + 1.0
ENDS_AT_LAST = 600.0
"""So long may a function take on a busy machine that the server does not interrupt; the failure names it."""
WRITES_TO = "/tmp/aC_"
"""How the attack's own paths begin; they are aimed at the canaries' folder."""
SAFETY = Path(__file__).parents[2] / "docs" / "reference" / "safety.md"

pytestmark = pytest.mark.shared_data


def lines(folder: Path, name: str, engine: str) -> list[str]:
    """The statements of one file for one engine."""
    path = folder / "attacks" / name
    if not path.exists():
        pytest.skip("the attack is not beside this checkout")
    attacks = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [line["sql"] for line in attacks if line["engine"] == engine and "setup" not in line]


@pytest.fixture
def server(engine: str, tmp_path: Path) -> Iterator[Server]:
    """A league of its own, since MariaDB goes on with some statements for as long as the server lives."""
    try:
        with league(engine, tmp_path) as made:
            yield made
    except Absent as reason:
        pytest.skip(str(reason))


def wrong_with(database: Database, canaries: Canaries, sql: str) -> list[str]:
    """Everything that is wrong with what a statement did."""
    start = time.perf_counter()
    try:
        result = database.execute(sql, timeout=LIMIT)
        late = time.perf_counter() - start > LATE and is_late(database, sql, limit=LIMIT, late=LATE)
    except Exception as error:
        return [f"untyped {type(error).__name__}: {error}"]
    named = isinstance(result, Failure) and re.search(r"the server (?:still runs|may still run) it", result.message)
    heard = canaries.sung(ENDS_AT_LAST) if named else canaries.sung()
    return ["late"] * late + [f"told {name}" for name in canaries.told(result)] + heard


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", ["attacks.jsonl", "attacks-2.jsonl"])
def test_every_statement_is_refused_or_harmless_even_for_the_owner(
    engine: str, name: str, server: Server, shared_data: Path, record_property: Callable[[str, object], None]
) -> None:
    chosen = lines(shared_data, name, engine)
    record_property("tries", len(chosen))
    with short_folder("attack") as folder:
        folder.chmod(0o777)
        with watching(engine, server, folder) as canaries:
            database = open_database(server.owner, inspect=False, allow_privileged=True)
            wrong = {
                sql: harm
                for sql in chosen
                if (harm := wrong_with(database, canaries, sql.replace(WRITES_TO, f"{canaries.evil}-")))
            }
            for sql, harm in wrong.items():
                record_property("lost", f"{engine}: {harm}: {sql[:200]!a}")
            database.close()
            assert canaries.sung_at_all() == []
    assert wrong == {}


def test_a_statement_that_needs_something_made_for_it_is_refused(
    engine: str, server: Server, shared_data: Path
) -> None:
    path = shared_data / "attacks" / "attacks-2.jsonl"
    prepared = [
        line
        for line in map(json.loads, path.read_text(encoding="utf-8").splitlines())
        if line["engine"] == engine and "setup" in line
    ]
    owner = driver(engine, server)
    for line in prepared:
        owner.cursor().execute(line["setup"])
    owner.close()
    database = open_database(server.reader, inspect=False)
    results = {line["sql"]: database.execute(line["sql"]) for line in prepared}
    database.close()
    assert [sql for sql, result in results.items() if getattr(result, "kind", "") is not FailureKind.REFUSED] == []


def test_no_more_than_a_fiftieth_of_legitimate_statements_is_refused_and_each_is_named(
    shared_data: Path, request: pytest.FixtureRequest
) -> None:
    kinds: Counter[str] = Counter()
    refused = []
    for engine in ENGINES:
        database = open_database(request.getfixturevalue(f"{engine}_url"))
        for sql in lines(shared_data, "legitimate.jsonl", engine):
            result = database.execute(sql)
            kinds[result.kind if isinstance(result, Failure) else "rows"] += 1
            if isinstance(result, Failure) and result.kind is FailureKind.REFUSED:
                refused.append(sql)
        database.close()
    assert len(refused) <= kinds.total() / 50
    assert [sql for sql in refused if f"`{sql}`" not in SAFETY.read_text(encoding="utf-8")] == []


TYPES = {
    "sqlite": ("TEXT", "TIMESTAMP"),
    "postgres": ("JSONB", "TIMESTAMP"),
    "mysql": ("JSON", "DATETIME"),
    "duckdb": ("JSON", "TIMESTAMP"),
}
FULL_TEXT = """
CREATE VIRTUAL TABLE docs USING fts5(title, body);
INSERT INTO docs SELECT name, name || ' ' || category || ' red bolt tea' FROM product;
CREATE VIRTUAL TABLE docs_v USING fts5vocab(docs, 'row');
CREATE VIRTUAL TABLE old USING fts4(body);
INSERT INTO old SELECT name FROM product;
CREATE VIRTUAL TABLE box USING rtree(id, minX, maxX);
INSERT INTO box VALUES (1, 1, 2)
"""


def stock_the_shop(engine: str, server: Server, folder: Path) -> None:
    """Make the tables that the legitimate statements are written over."""
    found = importlib.util.spec_from_file_location("shop_data", folder / "attacks" / "shop_data.py")
    assert found is not None
    assert found.loader is not None
    data: Any = importlib.util.module_from_spec(found)
    found.loader.exec_module(data)
    document, moment = TYPES[engine]
    connection = driver(engine, server)
    cursor = connection.cursor()
    mark = "%s" if engine in {"postgres", "mysql"} else "?"
    for table, rows in data.rows().items():
        cursor.execute(f"CREATE TABLE {table} ({data.DDL[table].format(J=document, T=moment)})")
        as_text = engine == "sqlite"
        kept = [[str(cell) if as_text and hasattr(cell, "year") else cell for cell in row] for row in rows]
        cursor.executemany(f"INSERT INTO {table} VALUES ({', '.join([mark] * len(rows[0]))})", kept)
    if engine == "sqlite":
        connection.executescript(FULL_TEXT)
    if engine == "mysql":
        cursor.execute("CREATE TABLE hist (id INTEGER, v INTEGER) WITH SYSTEM VERSIONING")
        cursor.execute("INSERT INTO hist VALUES (1, 2)")
    connection.close()


def labels(connection: Any, sql: str) -> list[str] | None:
    """How the bare driver names the columns; None where it cannot run the statement."""
    cursor = connection.cursor()
    try:
        cursor.execute(sql)
        return [column[0] for column in cursor.description]
    except Exception:
        return None


@pytest.mark.timeout(600)
def test_legitimate_statements_run_and_their_columns_have_the_names_that_the_engine_gives(
    engine: str, server: Server, shared_data: Path
) -> None:
    stock_the_shop(engine, server, shared_data)
    chosen = [*lines(shared_data, "legitimate-2.jsonl", engine)]
    chosen += lines(shared_data, "legitimate-2.jsonl", "sqlite-fts") if engine == "sqlite" else []
    bare = driver(engine, server)
    named = {sql: labels(bare, sql) for sql in chosen}
    bare.close()
    database = open_database(server.owner, allow_privileged=True)
    results = {sql: database.execute(sql) for sql in chosen}
    database.close()
    failed = {sql: result for sql, result in results.items() if isinstance(result, Failure) and named[sql]}
    told = SAFETY.read_text(encoding="utf-8")
    assert sum(names is None for names in named.values()) <= 2
    assert {sql: failure.message for sql, failure in failed.items() if f"`{sql}`" not in told} == {}
    assert len(failed) <= len(chosen) / 100
    others = {sql: result.columns for sql, result in results.items() if not isinstance(result, Failure)}
    assert {sql: columns for sql, columns in others.items() if named[sql] and list(columns) != named[sql]} == {}
