"""A term stands in a question whole, in any case and number; and its definition stands beside the question."""

import pytest

from sqlcrystal import pipeline
from sqlcrystal.errors import UserError
from sqlcrystal.solving.prompt import render_question
from sqlcrystal.telling.definitions import expression, filters_of, statement_of, tables_in
from sqlcrystal.telling.words import MOST, Glossary
from sqlcrystal.types import CardId, Definition, Question

LAYOUT = {"customers": ("id", "status", "closed", "city"), "orders": ("id", "customer_id", "status")}


def defined(term: str, *synonyms: str, sql: str = "status = 'A'") -> Definition:
    return Definition(term=term, sql=sql, tables=("customers",), synonyms=synonyms)


def names_in(text: str, *definitions: Definition) -> list[str]:
    glossary = Glossary((CardId(str(number)), each) for number, each in enumerate(definitions))
    return [meant.name for meant in glossary.found(text)]


@pytest.mark.parametrize(
    ("text", "stands"),
    [
        ("How many active customers are there?", True),
        ("ACTIVE-CUSTOMER count", True),
        ("List every active  customer's city.", True),
        ("How many inactive customers are there?", False),
        ("How many customers are active?", False),
        ("Which customers pay actively?", False),
        ("How many live clients are there?", True),
    ],
)
def test_a_term_stands_whole_in_any_case_and_number(text: str, stands: bool) -> None:
    assert bool(names_in(text, defined("active customer", "live client"))) is stands


@pytest.mark.parametrize(("term", "said"), [("invoice", "invoices"), ("category", "categories"), ("box", "boxes")])
def test_a_word_is_the_same_in_the_plural(term: str, said: str) -> None:
    assert names_in(f"How many {said}?", defined(term)) == [term]
    assert names_in(f"How many {term}?", defined(said)) == [said]


def test_a_short_code_is_no_plural_of_a_letter() -> None:
    assert names_in("Is it as good as that?", defined("A")) == []


def test_of_names_within_each_other_the_longest_is_meant() -> None:
    both = (defined("customer"), defined("active customer"))
    assert names_in("How many active customers?", *both) == ["active customer"]
    assert names_in("How many active customers of all customers?", *both) == ["active customer", "customer"]


def test_two_definitions_of_one_name_are_both_told() -> None:
    visits, loans = defined("cancelled", sql="status = 'X'"), defined("cancelled", sql="state = 'CNL'")
    assert names_in("How many were cancelled?", visits, loans) == ["cancelled", "cancelled"]


def test_letters_of_scripts_without_spaces_are_words_of_their_own() -> None:
    assert names_in("有多少活跃客户？", defined("活跃客户")) == ["活跃客户"]
    assert names_in("有多少客户？", defined("活跃客户")) == []


def test_no_question_is_told_more_than_a_few_definitions() -> None:
    many = [defined(f"term{number}") for number in range(3 * MOST)]
    assert len(names_in(" ".join(each.term for each in many), *many)) == MOST


def test_a_definition_stands_where_evidence_does_and_a_question_without_one_is_untouched() -> None:
    question = Question(id="1", database="shop", text="How many active customers?", evidence="count them")
    meant = Glossary([(CardId("a"), defined("active customer"))]).found(question.text)
    shown = render_question(pipeline.explain(question, meant))
    assert shown.endswith("\nHint: count them\n\"active customer\" refers to status = 'A' (customers)")
    assert pipeline.explain(question, ()) is question


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1",
        "status = 'A' FROM customers",
        "status; DROP TABLE customers",
        "a, b",
        "*",
        "status AS s",
        "DISTINCT status",
        "status LIMIT 1",
        "",
        "status = :name",
        "status = 'A",
        "1) FROM customers -- ",
    ],
)
def test_only_one_expression_is_one(sql: str) -> None:
    with pytest.raises(UserError, match="sql:"):
        expression(sql, "sqlite")


def test_an_expression_stays_as_it_was_written_but_for_remarks_and_lines() -> None:
    assert expression(" status = 'A'  AND closed is null ", "sqlite") == "status = 'A'  AND closed is null"
    assert expression("status = 'A' -- open\n AND closed IS NULL", "sqlite") == "status = 'A' AND closed IS NULL"


def test_tables_are_those_whose_columns_an_expression_names() -> None:
    assert tables_in("closed IS NULL", "sqlite", LAYOUT) == ("customers",)
    assert tables_in("orders.status = 'x'", "sqlite", LAYOUT) == ("orders",)
    assert tables_in("status = 'x'", "sqlite", LAYOUT) == ()
    assert statement_of(defined("x"), "sqlite") == "SELECT status = 'A' FROM \"customers\" WHERE 1 = 0"


def test_filters_are_written_alike_whatever_their_aliases() -> None:
    plain = "SELECT COUNT(*) FROM customers WHERE status = 'A' AND city = 'Graz'"
    joined = "SELECT o.id FROM orders AS o JOIN customers c ON c.id = o.customer_id WHERE c.status = 'A' AND o.id > 3"
    shared = {each.sql for each in filters_of(plain, "sqlite", LAYOUT)} & {
        each.sql for each in filters_of(joined, "sqlite", LAYOUT)
    }
    assert shared == {"customers.status = 'A'"}


def test_a_question_says_a_filter_by_its_value_or_by_its_column() -> None:
    query = "SELECT id FROM customers WHERE status = 'A' AND city = 'Graz' AND closed IS NULL"
    status, city, closed = filters_of(query, "sqlite", LAYOUT)
    question = "Which active customers of Graz are there?"
    assert [each.is_said_by(question) for each in (status, city, closed)] == [False, True, False]
    assert closed.is_said_by("Which customers are not closed?")
