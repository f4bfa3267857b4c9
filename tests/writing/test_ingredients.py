"""Each ingredient writer keeps its ingredient of a solved question, and nothing of the others."""

import re
from collections.abc import Iterator

import pytest
from sqlglot import exp

from sqlcrystal import assembly
from sqlcrystal.benchmarks.cases import Case
from sqlcrystal.benchmarks.catalogue import load_benchmark
from sqlcrystal.databases import open_database
from sqlcrystal.databases.layout import layout_of
from sqlcrystal.databases.parsing import parse
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.protocols import Database
from sqlcrystal.types import Attempt, Episode
from sqlcrystal.writing.card import CardWriter, estimate_tokens, render_pair

KEYWORDS = {"select", "from", "where", "join", "group", "order", "limit", "count", "sum"}
CASES = load_benchmark("quarry").cases


@pytest.fixture(scope="module")
def databases() -> Iterator[dict[str, Database]]:
    opened = {name: open_database(place, name=name) for name, place in load_benchmark("quarry").locations.items()}
    yield opened
    for database in opened.values():
        database.close()


def text(name: str, case: Case, database: Database) -> str:
    writer = assembly.writer(name, database=database, model=ScriptedModel([]))
    assert isinstance(writer, CardWriter)
    attempt = Attempt(question=case.question, calls=(), sql=case.sql)
    return writer.render(Episode(attempt=attempt, source="success", sql=case.sql))


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def literals(sql: str) -> set[str]:
    return {node.this.lower() for node in parse(sql, "sqlite").find_all(exp.Literal) if len(node.this) > 1}


def schema_names(database: Database) -> set[str]:
    layout = layout_of(database.schema(), database.dialect)
    return {*layout, *(column for columns in layout.values() for column in columns)}


def test_values_are_columns_with_literals_and_no_table_join_question_or_clause(databases: dict[str, Database]) -> None:
    for case in CASES:
        shown = text("W0-values", case, databases[case.question.database])
        for line in shown.splitlines():
            assert line == "(none)" or re.fullmatch(r"\w+: .+", line), line
        columns = {line.partition(":")[0] for line in shown.splitlines()} - {"(none)"}
        in_sql = {column.name.lower() for column in parse(case.sql, "sqlite").find_all(exp.Column)}
        assert columns <= in_sql
        assert case.question.text not in shown


def test_joins_are_pairs_of_columns_without_literals(databases: dict[str, Database]) -> None:
    joined = 0
    for case in CASES:
        shown = text("W0-joins", case, databases[case.question.database])
        for line in shown.splitlines():
            assert line == "(none)" or re.fullmatch(r"\w+\.\w+ = \w+\.\w+", line), line
        joined += shown != "(none)"
    assert joined >= sum("JOIN" in case.sql for case in CASES) > 100


def test_names_are_the_schemas_own_without_literals_or_clauses(databases: dict[str, Database]) -> None:
    for case in CASES:
        database = databases[case.question.database]
        shown = words(text("W0-names", case, database)) - {"tables", "columns"}
        assert shown <= schema_names(database)


def test_the_skeleton_has_no_name_of_the_schema_and_no_literal(databases: dict[str, Database]) -> None:
    for case in CASES:
        database = databases[case.question.database]
        shown = text("W0-skeleton", case, database)
        body = shown.removeprefix("```sql\n").removesuffix("\n```")
        assert not (words(body) & schema_names(database)) - KEYWORDS - {"date", "day", "year", "value", "month"}, body
        assert "'" not in body
        assert not re.search(r"\d", body), body


def test_the_question_alone_has_no_sql(databases: dict[str, Database]) -> None:
    for case in CASES:
        assert (
            text("W0-question", case, databases[case.question.database]) == f"Q: {' '.join(case.question.text.split())}"
        )


def test_the_placebo_has_the_form_and_length_of_a_card_and_no_word_of_the_database(
    databases: dict[str, Database],
) -> None:
    ratios = []
    for case in CASES:
        database = databases[case.question.database]
        shown, card = text("W0-placebo", case, database), render_pair(case.question.text, case.sql)
        assert re.fullmatch(r"Q: .+\?\n```sql\nSELECT .+\n```", shown)
        assert not words(shown) & schema_names(database)
        assert not words(shown) & literals(case.sql)
        assert shown == text("W0-placebo", case, database)
        ratios.append(estimate_tokens(shown) / estimate_tokens(card))
    assert min(ratios) >= 0.9
    assert max(ratios) <= 1.25
    assert abs(sum(ratios) / len(ratios) - 1) < 0.05
