"""What passes as plain without the parser would pass the guard, too: the quick way is never the more lenient one."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attacking import statements
from sqlcrystal.benchmarks.catalogue import load_benchmark
from sqlcrystal.databases import guard, open_database
from sqlcrystal.databases.plain import is_plain
from sqlcrystal.types import Failure, FailureKind, Rows

WORDS = """
select from where join on group by order limit union all values with as in and or not case when end insert into update
delete replace drop create attach pragma vacuum returning filter over window exists count sum max date strftime
load_extension readfile pragma_table_info sqlite_master dbstat edit printf team name t1 "team" "load_extension" `name`
[name] 'text' 'it''s' x'00' 1 2.5 ( ) , . ; * = < >= <> || - -- /* */ / + % é
"""
PIECES = [*WORDS.split(), "\n", "\x00"]


@given(st.lists(st.sampled_from(PIECES), max_size=14), st.sampled_from(["", "select ", "SELECT * FROM team "]))
def test_the_guard_refuses_nothing_that_is_plain(pieces: list[str], start: str) -> None:
    sql = start + " ".join(pieces)
    if is_plain(sql):
        verdict = guard.check(sql, "sqlite")
        assert verdict is None or verdict.kind is FailureKind.SYNTAX, verdict


def test_no_attack_that_the_guard_refuses_is_plain() -> None:
    plain = [sql for _, sql in statements("sqlite") if is_plain(sql)]
    assert [sql for sql in plain if guard.check(sql, "sqlite") is not None] == []


def test_nearly_every_query_of_the_bundled_benchmark_is_plain_and_passes_the_guard() -> None:
    queries = [sql for case in load_benchmark("quarry").cases for sql in (case.sql, *case.wrong)]
    plain = [sql for sql in queries if is_plain(sql)]
    assert len(plain) > 0.9 * len(queries)
    assert [sql for sql in plain if guard.check(sql, "sqlite") is not None] == []


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1; SELECT 2",
        "SELECT 1 -- remark",
        "SELECT 1 /* remark */",
        "SELECT load_extension('x')",
        "SELECT \"load_extension\"('x')",
        "SELECT [load_extension]('x')",
        "SELECT * FROM pragma_database_list",
        'SELECT * FROM "pragma_database_list"',
        "SELECT * FROM sqlite_dbpage",
        "WITH doomed AS (SELECT 1) DELETE FROM team",
        "SELECT * INTO evil FROM team",
        "SELECT x'00'",
        "SELECT naïve FROM team",
        "SELECT 1\x00",
        "PRAGMA user_version = 1",
        "",
        "SELECT " + "(" * 61 + "1" + ")" * 61,
        "SELECT * FROM team " + "JOIN team " * 11,
        "SELECT " + "date(" * 6 + "1" + ")" * 6,
    ],
    ids=lambda sql: ascii(sql)[:40],
)
def test_what_is_less_than_plain_is_left_to_the_guard(sql: str) -> None:
    assert not is_plain(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM team",
        "select T1.name, sum(T2.goals) from team as T1 join player as T2 on T1.id = T2.team group by T1.name;",
        "SELECT `name` FROM [team] WHERE \"id\" IN (1, 2) AND name LIKE 'it''s%' ORDER BY id DESC LIMIT 3",
        "SELECT max(id) * 100.0 / (SELECT count(*) FROM team) FROM team WHERE name <> '-- no remark; none'",
    ],
)
def test_an_everyday_query_is_plain(sql: str) -> None:
    assert is_plain(sql)


def test_a_plain_statement_that_sqlite_cannot_read_fails_in_the_guards_words_except_in_scoring(
    tmp_path: Path,
) -> None:
    file = tmp_path / "team.sqlite"
    file.touch()
    sql = "SELECT count(* FROM team"
    assert is_plain(sql)
    full, terse = (open_database(str(file), terse=terse) for terse in (False, True))
    failures = [full.execute(sql), terse.execute(sql)]
    assert isinstance(full.execute("SELECT 1"), Rows)
    full.close()
    terse.close()
    assert [failure.kind for failure in failures if isinstance(failure, Failure)] == [FailureKind.SYNTAX] * 2
    assert failures[0] == guard.check(sql, "sqlite")
