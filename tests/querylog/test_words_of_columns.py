"""Words beside a column: each code with its words is a definition, and prose before them is none."""

import pytest

from sqlcrystal.querylog.definitions import told_of_column


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("A = active, S = suspended", {"active": "A", "suspended": "S"}),
        ("A: active; S: suspended", {"active": "A", "suspended": "S"}),
        ("state of the order: A = active, S = suspended", {"active": "A", "suspended": "S"}),
        ("state of an order: new, A = active, S = suspended", {"active": "A", "suspended": "S"}),
        ("A means active, S is for suspended", {"active": "A", "suspended": "S"}),
    ],
)
def test_codes_are_told_from_the_prose_before_them(words: str, told: dict[str, str]) -> None:
    found = {each.term: each.sql for each in told_of_column("orders", "status", words)}
    assert found == {term: f"orders.status = '{code}'" for term, code in told.items()}
