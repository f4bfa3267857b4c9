"""Attacks the locks with random statements and watches canaries: files, sockets, locks, rows, time, memory, errors.

`python tests/fuzzing.py --engine mysql --statements 250000` runs it by hand and prints what it saw as JSON.
Statements are the corpus and plain queries, mutated with fragments that have been dangerous somewhere.
"""

import argparse
import json
import random
import re
import socket
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import engines
from attacking import statements as corpus
from memory import peak_megabytes, peak_megabytes_of_children
from sqlcrystal.databases import open_database
from sqlcrystal.types import Failure, Rows

TIMEOUT = 0.2
LATE = TIMEOUT + 1.0
ENGINES = ("sqlite", "postgres", "mysql", "duckdb")
QUERIES = """
SELECT id, name FROM team ORDER BY id
SELECT t.name, count(*) FROM team t JOIN player p ON p.team_id = t.id GROUP BY t.name HAVING count(*) > 1
WITH best AS (SELECT max(goals) AS g FROM player) SELECT name FROM player, best WHERE goals = best.g
SELECT name FROM team WHERE name LIKE '%a%' AND EXISTS (SELECT 1 FROM player WHERE team_id = team.id)
SELECT CASE WHEN goals > 2 THEN 'many' ELSE 'few' END, coalesce(name, '?'), round(avg(pay), 1) FROM player GROUP BY 1, 2
SELECT lower(name) || upper('x'), length(name) FROM team WHERE id IN (1, 2) UNION ALL SELECT 'a', 1
SELECT "name", 'it''s', 1.5e3, -7 FROM team LIMIT 2 OFFSET 1
""".strip().splitlines()
# One piece a line: what may stand for a value, for one that never ends, for a table, between two words, and anywhere.
VALUES = """
SLEEP(3)
BENCHMARK(9999999, MD5('a'))
GET_LOCK('fuzz', 1)
LOAD_FILE('EVIL')
pg_sleep(3)
(3).pg_sleep
('a'::text).pg_ls_dir
pg_advisory_lock(77)
pg_read_file('EVIL')
lo_export(1, 'EVIL')
lo_import('EVIL')
dblink('host=127.0.0.1 port=PORT', 'select 1')
query_to_xml('select pg_sleep(3)', true, true, '')
set_config('role', 'none', false)
nextval('s')
current_setting('server_version')
getenv('HOME')
load_extension('EVIL')
writefile('EVIL', 'x')
printf('%d', 7)
hex(zeroblob(99999))
length(randomblob(60000))
trim(' a ')
json_extract('x', '$')
json_extract('{"a": [1]}', '$.a')
(SELECT count(*) FROM information_schema.columns)
(SELECT max(goals) FROM player)
'it''s'
'a\\'
'\\'' , 1
E'\\''
e'a\\nb'
$$a'b$$
$t$ x $t$
U&'\\0041'
N'a'
x'4142'
b'101'
_utf8'a'
_latin1'é'
0x41
1e5
1.e5
.5
1_000
1--1
- -1
@a
@a := 1
@@version
?
:a
$1
"name"
`name`
[name]
CASE WHEN 1 = 1 THEN name ELSE 'x' END
CAST(id AS CHAR(10))
date '2020-01-01'
INTERVAL '1' DAY
ARRAY[1, 2]
{'a': 1}
[1, 2]
'x'.upper()
row_number() OVER ()
random()
now()
1 OPERATOR(pg_catalog.+) 2
'infinity'::timestamp
'24:00:00'::time
99999999999999999999999999999999999999
1e400
CHAR(0)
''
NULL
"""
BOMBS = """
printf('%.*c', 2000000000, 'x')
repeat('x', 100000000)
lpad('x', 99999999, 'y')
instr(hex(zeroblob(400000)), hex(zeroblob(200000)) || '1')
(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n)
(SELECT count(*) FROM information_schema.columns a, information_schema.columns b, information_schema.columns c)
(SELECT count(*) FROM generate_series(1, 100000000))
(SELECT count(*) FROM range(10000000000))
"""
BOMBS_IN = 500
TABLES = """
read_text('EVIL')
read_csv('http://127.0.0.1:PORT/x')
glob('*')
query('select 1')
pragma_table_info('team')
pragma_database_list
json_each('[1, 2]')
json_tree('{"a": 1}')
generate_series(1, 10)
range(10)
pg_sleep(3)
pg_ls_dir('.')
pg_authid
mysql.user
sqlite_master
information_schema.tables
duckdb_secrets()
duckdb_settings()
'EVIL'
"EVIL"
'http://127.0.0.1:PORT/x.csv'
(VALUES (1, 2)) v
(SELECT 1 AS id, 'a' AS name) s
team TABLESAMPLE SYSTEM (50)
team, player
team AS OF SYSTEM TIME '-1s'
unnest(ARRAY[1, 2])
LATERAL (SELECT 1) l
(DELETE FROM team RETURNING *) d
"""
GAPS = """
/* */
/* ' */
/* " */
/* ; */
/*/*/ */
/* /* */ */
/*! SLEEP(3) */
/*M! SLEEP(3) */
/*+ x */
-- ⏎
--⏎
-- '⏎
--x⏎
# ⏎
#⏎
{# #}
{% %}
⏎
⏎⏎
"""
ANYWHERE = """
'
"
`
[
]
(
)
;
,
.
::
->
\\
\\'
$$
e'
E'
U&
{{
}}
; DROP TABLE team
;DELETE FROM team
INTO OUTFILE 'EVIL'
INTO @a
INTO evil
FOR UPDATE
LOCK IN SHARE MODE
COPY team TO 'EVIL'
ATTACH 'EVIL' AS e
PRAGMA query_only=OFF
RETURNING *
EXPLAIN
EXPLAIN ANALYZE
DESCRIBE
SHOW TABLES
SUMMARIZE
SET @a=1
PROCEDURE analyse()
LIMIT 2
ORDER BY 1
WHERE 1 = 1
UNION ALL SELECT 1, 'a'
UNION SELECT 2
GROUP BY 1
CROSS JOIN player
COLLATE "C"
AS x
"""
ODD = ["\u00a0", "\u3000", "\u2003", "\u0085", "\u1680", "\u2028", "\u200b", "\ufeff"]
ODD += ["\x0b", "\x0c", "\x1f", "\x01", "\r", "\t", "é", "ſ", "İ", "\ud800", "\x00"]
_VALUE = re.compile(r"\b\d+\b|'[a-z%?]*'|\b(?:id|name|goals|pay|born)\b")
_TABLE = re.compile(r"\b(?:team|player|scorer)\b")


class Fuzzer:
    """Makes statements for one engine from a seed."""

    def __init__(self, engine: str, seed: int, *, evil: str, port: int) -> None:
        self._draw = random.Random(f"{engine}/{seed}")
        self._seeds = [*QUERIES * 12, *(sql for family, sql in corpus(engine, evil) if family != "bombs")]

        def pieces(text: str) -> list[str]:
            filled = text.replace("EVIL", evil).replace("PORT", str(port)).strip()
            return [line.replace("⏎", "\n").replace("\\\\", "\\") for line in filled.splitlines()]

        self._values, self._tables, self._bombs = pieces(VALUES), pieces(TABLES), pieces(BOMBS)
        self._gaps, self._anywhere = pieces(GAPS) + ODD, pieces(ANYWHERE) + ODD
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
        found = list(pattern.finditer(text))
        if not found:
            return text
        match = self._draw.choice(found)
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


class Canaries:
    """What must not happen, looked at from outside the locks."""

    def __init__(self, engine: str, owner: str, folder: Path) -> None:
        self.evil = folder / "evil"
        self._owner = owner
        self._engine = engine
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.connections = 0
        threading.Thread(target=self._listen, daemon=True).start()
        self._before = self._content()

    def _listen(self) -> None:
        with suppress(OSError):
            while True:
                self._listener.accept()[0].close()
                self.connections += 1

    def sung(self) -> list[str]:
        """Which of them sang."""
        heard = []
        if list(self.evil.parent.glob("evil*")):
            heard.append("a file was written")
        if self.connections:
            heard.append("a connection was made")
        if self._content() != self._before:
            heard.append("rows or schema changed")
        if self._engine == "postgres" and self._asked("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") != 0:
            heard.append("a lock is held")
        if self._engine == "mysql" and self._asked("SELECT IS_FREE_LOCK('fuzz')") != 1:
            heard.append("a lock is held")
        return heard

    def _asked(self, sql: str) -> Any:
        database: Any = open_database(self._owner, allow_privileged=True)
        result = database._run(sql, 30.0, 10)
        database.close()
        return result.rows[0][0]

    def _content(self) -> str:
        database = open_database(self._owner, allow_privileged=True)
        tables = [database.execute(f"SELECT * FROM {name} ORDER BY 1") for name in ("team", "player", "scorer")]
        schema = database.schema()
        database.close()
        return repr([result.rows if isinstance(result, Rows) else result for result in tables]) + schema

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()


@contextmanager
def league(engine: str, folder: Path) -> Iterator[tuple[str, str]]:
    """The engine's league, for a reader and for its owner."""
    makers: dict[str, Callable[[Path], str]] = {"sqlite": engines.make_sqlite, "duckdb": engines.make_duckdb}
    if engine in makers:
        url = makers[engine](folder / f"league.{engine}")
        yield url, url
        return
    with engines.postgres() if engine == "postgres" else engines.mariadb() as server:
        yield server.reader, server.owner


def fuzz(engine: str, reader: str, owner: str, count: int, seed: int, folder: Path) -> dict[str, Any]:
    """Run so many statements; everything that should not have happened, with the statement it happened to."""
    canaries = Canaries(engine, owner, folder)
    fuzzer = Fuzzer(engine, seed, evil=str(canaries.evil), port=canaries.port)
    kinds: Counter[str] = Counter()
    wrong: list[str] = []
    slowest = 0.0
    database = open_database(reader)
    try:
        for number in range(count):
            sql = fuzzer.statement()
            start, worked = time.perf_counter(), time.process_time()
            try:
                result = database.execute(sql, timeout=TIMEOUT, max_rows=50)
            except Exception as error:
                wrong.append(f"untyped {type(error).__name__}: {error}: {sql!r}")
                database.close()
                database = open_database(reader)
                continue
            seconds = time.perf_counter() - start
            # On a busy machine the clock runs while others work: a statement is late if the work was long as well.
            if seconds > LATE and (time.process_time() - worked > LATE or seconds > 10 * LATE):
                wrong.append(f"{seconds:.1f} s: {sql!r}")
            slowest = max(slowest, seconds)
            kinds[result.kind if isinstance(result, Failure) else "rows"] += 1
            if number % 5000 == 4999 and (heard := canaries.sung()):
                wrong.append(f"{heard} within the 5,000 statements before {number}")
                break
        wrong += [f"{heard} at the end" for heard in canaries.sung()]
    finally:
        database.close()
        canaries.close()
    return {
        "engine": engine,
        "statements": count,
        "seed": seed,
        "kinds": dict(kinds),
        "wrong": wrong,
        "slowest": round(slowest, 2),
        "megabytes": [peak_megabytes(), peak_megabytes_of_children()],
    }


def main() -> None:
    """Fuzz by hand."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=ENGINES, action="append")
    parser.add_argument("--statements", type=int, default=250_000)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    for engine in chosen.engine or ENGINES:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sc-fuzz-")))
            folder.chmod(0o777)
            reader, owner = stack.enter_context(league(engine, folder))
            print(json.dumps(fuzz(engine, reader, owner, chosen.statements, chosen.seed, folder)), flush=True)


if __name__ == "__main__":
    main()
