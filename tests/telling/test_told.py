"""A query in words leaves nothing out: it tells every gold query, or withholds its sentence, and never raises."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from sqlcrystal.benchmarks import quarry
from sqlcrystal.benchmarks.quarry import entries, names
from sqlcrystal.databases.parsing import parse_all
from sqlcrystal.telling.query import sentence, tell
from sqlcrystal.telling.scope import Known, Untold

TOLD = {
    "SELECT count(*) FROM Track t JOIN Genre g ON t.GenreId = g.GenreId WHERE g.Name = 'Rock'": (
        "Counts the rows of tracks with their genre where the genre name is 'Rock'."
    ),
    "SELECT name FROM artist ORDER BY born DESC LIMIT 10": (
        "Lists the name of artists; only the ten with the latest born."
    ),
    "SELECT g.Name, COUNT(*) FROM Genre g LEFT JOIN Track t ON t.GenreId = g.GenreId GROUP BY g.Name": (
        "Lists the genre name and number of genres with each of their tracks if there are any; "
        "one row for each genre name."
    ),
    "SELECT DISTINCT city FROM shop WHERE opened >= '2020-01-01' AND NOT (closed IS NULL) LIMIT 3": (
        "Lists the city of shops whose opened is on or after '2020-01-01' and closed is not missing; "
        "each only once; any three rows."
    ),
    "SELECT name FROM pet WHERE name LIKE '%ell%' OR age NOT IN (1, 2) ORDER BY name": (
        "Lists the name of pets where the name contains 'ell' or the age is none of 1 or 2; "
        "sorted by name alphabetically."
    ),
    "SELECT a FROM t EXCEPT SELECT b FROM u WHERE c BETWEEN 1 AND 2": (
        "Lists the a of t, without those among (the b of u whose c is between 1 and 2); each row only once."
    ),
    "SELECT name FROM shop s WHERE NOT EXISTS (SELECT 1 FROM sale WHERE sale.shop_id = s.id)": (
        "Lists the name of shops where there are no (sales whose shop id is the same as the shop id)."
    ),
    "WITH busy AS (SELECT shop_id FROM sale GROUP BY shop_id HAVING COUNT(*) > 5) SELECT COUNT(*) FROM busy": (
        "Counts busies; “busy” stands for the shop id of sales; one row for each shop id; "
        "only where the number of sales is over 5."
    ),
    "SELECT SUM(CASE WHEN paid = 0 THEN 1 ELSE 0 END), ROUND(AVG(amount), 1) FROM invoice": (
        "Gives the number of invoices where the paid is 0 and average amount rounded to 1 decimals of invoices."
    ),
    "SELECT «1» FROM": "",
    "SELECT name FROM pet FOR UPDATE": "",
    "SELECT 1; SELECT 2": "",
    "DELETE FROM pet": "",
    "": "",
}


@pytest.mark.parametrize(("sql", "words"), TOLD.items())
def test_a_query_is_told_in_one_sentence_or_not_at_all(sql: str, words: str) -> None:
    assert tell(sql, dialect="sqlite").words == words


@pytest.mark.parametrize("name", names())
def test_every_gold_of_quarry_is_told_and_nothing_of_it_is_left_out(name: str) -> None:
    known = Known.of(quarry.blueprint(name).schema, "sqlite")
    told = [_hidden_changes(entry.sql, known) for entry in entries(name)]
    assert [change for changes in told for change in changes] == []


@pytest.mark.shared_data
@pytest.mark.parametrize("benchmark", ["spider", "spider_forty"])
def test_every_gold_of_spider_is_told_and_nothing_of_it_is_left_out(shared_data: Path, benchmark: str) -> None:
    cases = json.loads((shared_data / benchmark / "dev.json").read_text())
    golds = list(dict.fromkeys(case["query"] for case in cases))
    assert [gold for gold in golds if not tell(gold, dialect="sqlite").words] == []
    known = Known(dialect="sqlite")
    assert [change for gold in golds[::4] for change in _hidden_changes(gold, known)] == []


@given(st.text(max_size=60), st.sampled_from(["sqlite", "postgresql", "mysql", "duckdb"]))
def test_no_text_makes_it_fail(text: str, dialect: str) -> None:
    for sql in (text, f"SELECT {text}", f"SELECT a FROM t WHERE {text} ORDER BY {text}"):
        assert isinstance(tell(sql, dialect=dialect, question=text).words, str)


def test_a_query_of_ten_thousand_conditions_is_withheld() -> None:
    assert tell("SELECT a FROM t WHERE " + " AND ".join(["a = 1"] * 10_000), dialect="sqlite").words == ""


def test_a_masked_query_is_told_with_its_masks() -> None:
    words = tell("SELECT name FROM pet WHERE owner = '«1»' AND age > '«n2»'", dialect="sqlite").words
    assert words == "Lists the name of pets whose owner is '«1»' and age is after '«n2»'."


QUESTION = "How many songs did each German artist release?"


@pytest.mark.parametrize(
    ("sql", "unasked"),
    [
        ("SELECT artist, COUNT(*) FROM song WHERE country = 'Germany' GROUP BY artist", ()),
        (
            "SELECT artist, COUNT(*) FROM song WHERE country = 'Germany' AND price > 2 GROUP BY artist",
            ("price is over 2",),
        ),
        (
            "SELECT s.artist FROM song s JOIN label l ON s.label_id = l.label_id WHERE s.country = 'Germany'",
            ("with their label",),
        ),
        ("SELECT l.name, s.artist FROM song s JOIN label l ON s.label_id = l.label_id", ()),
    ],
)
def test_filters_and_joins_that_no_word_asks_for_are_marked(sql: str, unasked: tuple[str, ...]) -> None:
    told = tell(sql, dialect="sqlite", question=QUESTION)
    assert told.unasked == unasked
    assert all(part in told.words for part in unasked)


def _hidden_changes(sql: str, known: Known) -> list[str]:
    """List the changes of a query that its sentence does not show; withheld sentences show none and hide none."""
    (query,) = parse_all(sql, known.dialect)
    assert query is not None
    told = _sentence(query, known)
    assert told
    return [f"{what}: {sql}" for what, other in _changed(query) if _sentence(other, known) == told]


def _sentence(query: exp.Expr, known: Known) -> str:
    try:
        return sentence(query, known)[0]
    except Untold:
        return ""


def _changed(query: exp.Expr) -> Iterator[tuple[str, exp.Expr]]:
    """Give the query without each of its clauses, and with every constant and direction turned into another."""
    for place, node in enumerate(query.walk()):
        for key in ("where", "group", "having", "order", "limit", "offset", "distinct"):
            if isinstance(node, exp.Query) and node.args.get(key):
                yield f"without {key}", _with(query, place, lambda there, key=key: there.set(key, None))
        if isinstance(node, exp.Select) and node.args.get("joins"):
            yield "without a join", _with(query, place, lambda there: there.args["joins"].pop())
        if isinstance(node, exp.And):
            yield "without a condition", _with(query, place, lambda there: there.replace(there.this))
        if isinstance(node, exp.Literal):
            yield "another constant", _with(query, place, lambda there: there.set("this", f"{there.this}7"))
        if isinstance(node, exp.Ordered):
            yield "turned round", _with(query, place, _turn)
        if isinstance(node, exp.Distinct) and isinstance(node.parent, exp.AggFunc):
            yield "with repeats", _with(query, place, lambda there: there.replace(there.expressions[0]))
        if isinstance(node, exp.Group | exp.Order) and len(node.expressions) > 1:
            yield "without a key", _with(query, place, lambda there: there.expressions.pop())
        if isinstance(node, exp.SetOperation):
            other = exp.Except if isinstance(node, exp.Intersect) else exp.Intersect
            yield "another set", _with(query, place, lambda there, other=other: _other_set(there, other))
        if isinstance(node, exp.EQ | exp.GT | exp.LT | exp.GTE | exp.LTE | exp.NEQ):
            yield "denied", _with(query, place, lambda there: there.replace(exp.Not(this=exp.paren(there.copy()))))


def _turn(ordered: exp.Expr) -> None:
    ordered.set("desc", not ordered.args.get("desc"))
    ordered.set("nulls_first", not ordered.args.get("nulls_first"))


def _other_set(node: exp.Expr, kind: type[exp.Expr]) -> None:
    if node.parent is None:
        node.set("distinct", not node.args.get("distinct"))
    else:
        node.replace(
            kind(**{key: value.copy() if isinstance(value, exp.Expr) else value for key, value in node.args.items()})
        )


def _with(query: exp.Expr, place: int, change: "object") -> exp.Expr:
    copy = query.copy()
    node = list(copy.walk())[place]
    change(node)  # type: ignore[operator]
    return copy
