"""What is SQLite's own: files of every condition, text that is not UTF-8, blobs, the schema as stored, speed."""

import hashlib
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from sqlcrystal.databases import guard, open_database
from sqlcrystal.errors import ConfigError, DatabaseError, DataError
from sqlcrystal.protocols import Database
from sqlcrystal.types import Failure, FailureKind, Rows

Make = Callable[..., Any]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Makes a SQLite file of a script and opens it read-only."""
    opened: list[Database] = []

    def build(script: str, name: str = "a") -> Database:
        path = tmp_path / f"{name}.sqlite"
        connection = sqlite3.connect(path)
        connection.executescript(script)
        connection.commit()
        connection.close()
        opened.append(open_database(str(path)))
        return opened[-1]

    yield build
    for database in opened:
        database.close()


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file") as caught:
        open_database(str(tmp_path / "none.sqlite"))
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "none.sqlite").exists()


def test_a_file_that_is_no_database_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "b.sqlite").write_bytes(b"this is not a database, only some text" * 100)
    with pytest.raises(DataError, match="not a database"):
        open_database(f"sqlite:///{tmp_path}/b.sqlite")


def test_an_unknown_scheme_names_the_choices() -> None:
    with pytest.raises(ConfigError, match=r"'oracle'.*duckdb.*mysql.*postgresql.*sqlite"):
        open_database("oracle://a/b")


def test_a_server_nobody_runs_is_one_line() -> None:
    with pytest.raises(DatabaseError, match="cannot connect") as caught:
        open_database("postgresql://nobody@127.0.0.1:1/none")
    assert "\n" not in str(caught.value)


def test_text_that_is_not_utf8_is_read_with_replacements(make: Make) -> None:
    database = make("CREATE TABLE t (a TEXT); INSERT INTO t VALUES (CAST(x'41ff42' AS TEXT)), ('é')")
    assert database.execute("SELECT a FROM t").rows == (("A\ufffdB",), ("é",))
    assert database.execute("SELECT 'é'").rows == (("é",),)


def test_a_blob_becomes_hexadecimal_text(make: Make) -> None:
    assert make("").execute("SELECT x'00ff', 1.5, NULL").rows == (("x'00ff'", 1.5, None),)


def test_the_schema_is_the_stored_text_in_creation_order(make: Make) -> None:
    database = make(
        "CREATE TABLE z (a INT,\n\n  b TEXT);CREATE TABLE a (c INT REFERENCES z (a));CREATE INDEX i ON z (b)"
    )
    assert database.schema() == "CREATE TABLE z (a INT,\n  b TEXT);\n\nCREATE TABLE a (c INT REFERENCES z (a));"


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE t ADD COLUMN c INT",
        "ALTER TABLE t RENAME COLUMN b TO c",
        "CREATE TABLE u (a INT)",
        "DROP TABLE t; CREATE TABLE t (a INT PRIMARY KEY, b INT)",
        "DROP TABLE t; CREATE TABLE t (a INT, b TEXT)",
        "CREATE VIEW v AS SELECT a FROM t",
    ],
)
def test_the_fingerprint_changes_with_the_schema(make: Make, change: str) -> None:
    before = "CREATE TABLE t (a INT PRIMARY KEY, b TEXT);"
    assert make(before, "one").fingerprint() != make(before + change, "two").fingerprint()


def test_the_fingerprint_ignores_data_layout_and_indexes(make: Make) -> None:
    first = make("CREATE TABLE t (a INT, b TEXT)", "one")
    two = make("CREATE TABLE t (a INT,\n   b TEXT); CREATE INDEX i ON t (b); INSERT INTO t VALUES (1, 'x')", "two")
    assert first.fingerprint() == two.fingerprint()


def test_an_interrupt_hits_only_the_statement_that_is_late(make: Make) -> None:
    database = make("CREATE TABLE t (a INT)")
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"

    def ask(number: int) -> str:
        late = number % 4 == 0
        result = database.execute(endless, timeout=0.2) if late else database.execute(f"SELECT {number}")
        return result.kind if isinstance(result, Failure) else str(result.rows[0][0])

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(ask, range(40)))
    assert answers == [FailureKind.TIMEOUT if n % 4 == 0 else str(n) for n in range(40)]


def test_a_statement_slower_than_the_fuse_still_gets_its_answer(make: Make) -> None:
    database = make("CREATE TABLE t (a INT)")
    slow = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 3000000) SELECT count(*), max(i) FROM n"
    )
    result = database.execute(slow)
    assert result.rows == ((3_000_000, 3_000_000),)
    assert isinstance(database._run("PRAGMA temp_store = MEMORY", 1.0, 1), Failure)


def test_closing_ends_the_service(make: Make) -> None:
    database = make("")
    database.close()
    with pytest.raises(DatabaseError, match="closed"):
        database.execute("SELECT 1")


@pytest.mark.shared_data
def test_every_spider_gold_runs_as_bare_sqlite_runs_it(shared_data: Path) -> None:
    import json

    cases = json.loads((shared_data / "spider" / "dev.json").read_text())
    databases: dict[str, Database] = {}
    hashes: dict[Path, str] = {}
    for case in cases:
        path = shared_data / "spider" / "database" / case["db_id"] / f"{case['db_id']}.sqlite"
        hashes.setdefault(path, hashlib.sha256(path.read_bytes()).hexdigest())
        database = databases.setdefault(case["db_id"], open_database(str(path)))
        result = database.execute(case["query"])
        assert isinstance(result, Rows), (case["query"], result)
    assert len(cases) == 1034
    for path, before in hashes.items():
        assert hashlib.sha256(path.read_bytes()).hexdigest() == before
    for database in databases.values():
        database.close()


@pytest.mark.shared_data
def test_the_guard_lets_every_bird_gold_pass(shared_data: Path) -> None:
    import json

    golds = [case["SQL"] for case in json.loads((shared_data / "bird" / "dev.json").read_text())]
    assert [sql for sql in golds if guard.check(sql, "sqlite")] == []
    golds = [case["SQL"] for case in json.loads((shared_data / "bird" / "mini_dev_postgresql.json").read_text())]
    assert [sql for sql in golds if guard.check(sql, "postgres")] == []


def test_sqlite_opens_where_the_system_has_neither_fork_nor_resource_limits(tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "a.sqlite").close()
    script = (
        "import os, sys; del os.fork, os.register_at_fork; sys.modules['resource'] = sys.modules['fcntl'] = None\n"
        "from sqlcrystal.databases import open_database\n"
        "print(open_database(sys.argv[1]).execute('SELECT 7').rows)"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "a.sqlite")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "((7,),)\n"
