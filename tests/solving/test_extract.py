"""SQL is taken from a reply however the model dressed it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlcrystal.solving.solver import extract_blocks, extract_sql

QUERY = "SELECT name FROM item WHERE kind = 'a;b'"

REPLIES = {
    "fenced": f"```sql\n{QUERY}\n```",
    "fenced with a semicolon": f"```sql\n{QUERY};\n```",
    "fenced on one line": f"```sql {QUERY} ```",
    "fenced without a tag": f"```\n{QUERY}\n```",
    "fenced under a dialect": f"```sqlite\n{QUERY}\n```",
    "fenced under an upper-case tag": f"```SQL\n{QUERY}\n```",
    "prose around the fence": f"Here is the query:\n\n```sql\n{QUERY}\n```\n\nIt filters on kind; enjoy.",
    "several blocks": f"First idea:\n```sql\nSELECT 1\n```\nNo, rather:\n```sql\n{QUERY}\n```",
    "a block of output after the query": f"```sql\n{QUERY}\n```\nIt gives:\n```\nname\nBolt\n```",
    "several statements in a block": f"```sql\nSELECT 1;\n{QUERY};\n```",
    "a comment before and after": f"```sql\n-- names; of kind\n{QUERY}; -- done\n```",
    "unfenced": QUERY,
    "unfenced with a semicolon and prose": f"{QUERY};\n\nThis lists the names.",
    "unfenced with prose before": f"The answer is:\n{QUERY}\n\nThis lists the names from item.",
    "inline code": f"You can run `{QUERY}` to see them.",
    "truncated fence": f"```sql\n{QUERY}",
    "a complete block, then a truncated one": f"```sql\n{QUERY}\n```\nOr:\n```sql\nSELECT name FR",
    "thinking first": f"<think>Maybe ```sql\nSELECT 0\n``` works</think>```sql\n{QUERY}\n```",
    "the query's word stuck to the fence": f"```{QUERY}```",
}


@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES.keys())
def test_the_query_is_found_in_every_dress(reply: str) -> None:
    assert extract_sql(reply) == QUERY


@pytest.mark.parametrize(
    "reply", ["", "I cannot answer that.", "```python\nprint(1)\n```", "```sql\n```", "<think>SELECT 1"]
)
def test_a_reply_without_sql_gives_none(reply: str) -> None:
    assert extract_sql(reply) is None


def test_a_common_table_expression_survives_its_blank_lines_and_parentheses() -> None:
    query = "WITH cheap AS (\n  SELECT name\n\n  FROM item\n)\nSELECT COUNT(*) FROM cheap"
    assert extract_sql(f"Sure!\n{query}\n\nDone.") == query


def test_a_truncated_unfenced_query_is_taken_to_its_end() -> None:
    assert extract_sql("SELECT name FROM item WHERE kind = 'a") == "SELECT name FROM item WHERE kind = 'a"


def test_a_forbidden_statement_is_taken_so_that_the_guard_can_refuse_it() -> None:
    assert extract_sql("```sql\nDELETE FROM item;\n```") == "DELETE FROM item"


def test_every_probe_has_its_own_block() -> None:
    reply = "1.\n```sql\nSELECT 1;\n```\n2.\n```sql\nSELECT 2; SELECT 3\n```\nagain\n```sql\nSELECT 1\n```"
    assert extract_blocks(reply) == ("SELECT 1", "SELECT 2", "SELECT 3")
    assert extract_blocks("nothing to probe") == ()


@given(st.text(alphabet="`sql;'\" \n()-/*SELECTFROMWITHAS<think>", max_size=200))
def test_no_reply_crashes_the_extraction(reply: str) -> None:
    taken = extract_sql(reply)
    assert taken is None or taken.strip()
