"""One way to read what a model or a user wrote: within limits, in time, with one kind of failure."""

import re
from pathlib import Path

import pytest
from sqlglot import exp

from sqlcrystal.acquisition.revision import Suspects, cap, suspects
from sqlcrystal.databases import parsing
from sqlcrystal.databases.parsing import Unparsable, parse, parse_all
from sqlcrystal.measurement.attribution import template
from sqlcrystal.types import FailureKind
from sqlcrystal.writing import diff

DIALECTS = ("sqlite", "postgres", "mysql", "duckdb")
SOURCE = Path(parsing.__file__).parents[1]
TOO_MUCH = {
    "500 parentheses": f"SELECT {'(' * 500}1{')' * 500}",
    "20 bare joins": f"SELECT 1 FROM {' JOIN '.join(f't{number}' for number in range(21))}",
    "a long text": f"SELECT '{'x' * 300_000}'",
    "a clause that overflows the parser's stack": f"SELECT 1 {'FROM ' * 20_000}",
    "types inside one another": f"SELECT {'ARRAY<' * 20_000}",
    "a sum of a hundred thousand": f"SELECT 1{'+1' * 60_000}",
}
EXPONENTIAL = {
    "postgres": f"SELECT {'DATERANGE LIMIT f( ' * 18}",
    "duckdb": f"SELECT {'INT LIMIT f( ' * 18}",
    "mysql": f"SELECT {'f( END LIMIT ' * 18}",
    "sqlite": f"SELECT a FROM t WHERE {'TINYBLOB * NUMERIC LIMIT f( ' * 18}",
}
NOT_SQL = ("SELECT name -> FROM team", "SELECT 'open", "SELEC 1 FRM", "", ";", "/* only a remark */", "SELECT (1")


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("sql", TOO_MUCH.values(), ids=TOO_MUCH)
def test_text_that_would_choke_the_parser_is_refused_before_it_is_parsed(sql: str, dialect: str) -> None:
    with pytest.raises(Unparsable) as caught:
        parse(sql, dialect)
    assert caught.value.failure.kind is FailureKind.REFUSED


@pytest.mark.parametrize(("dialect", "sql"), EXPONENTIAL.items())
def test_a_text_on_which_the_parser_backtracks_for_ever_is_refused(sql: str, dialect: str) -> None:
    with pytest.raises(Unparsable, match="too much for the parser"):
        parse(sql, dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_deep_but_simple_statements_are_parsed(dialect: str) -> None:
    nested = "SELECT 1"
    for _ in range(12):
        nested = f"SELECT * FROM ({nested}) AS t WHERE id IN (SELECT max(id) FROM t)"
    assert parse(nested, dialect).find(exp.Select)
    assert parse(f"SELECT 1 IN ({', '.join(map(str, range(10_000)))})", dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("sql", NOT_SQL)
def test_whatever_the_parser_raises_becomes_one_failure(sql: str, dialect: str) -> None:
    with pytest.raises(Unparsable) as caught:
        parse(sql, dialect)
    assert caught.value.failure.kind is FailureKind.SYNTAX
    assert "\n" not in caught.value.failure.message


@pytest.mark.parametrize("sql", [*TOO_MUCH.values(), *NOT_SQL])
def test_a_reply_nobody_can_parse_costs_no_stage_its_work(sql: str) -> None:
    assert suspects(sql, "CREATE TABLE t (a INT)", "sqlite") == Suspects()
    assert cap(sql, "sqlite") == sql
    assert diff.parse(sql, "sqlite") is None
    assert template(sql) is None


def test_joins_are_counted_in_each_statement_of_a_schema_by_itself() -> None:
    view = "CREATE VIEW v{} AS SELECT * FROM a CROSS JOIN b CROSS JOIN c"
    assert len(parse_all(";\n".join(view.format(number) for number in range(40)), "sqlite")) == 40


def test_nothing_else_parses_what_somebody_wrote() -> None:
    calls = re.compile(
        r"sqlglot\.(parse|parse_one|tokenize|transpile)\b|import .*\b(parse_one|transpile)\b|\.parse_one\("
    )
    own = {"databases/parsing.py", "benchmarks/quarry/check.py"}  # the SQL of Quarry is ours
    misread = {
        path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py") if calls.search(path.read_text("utf-8"))
    }
    assert misread <= own
