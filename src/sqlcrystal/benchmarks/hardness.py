"""Spider's four levels of hardness, counted on the parsed SQL that its files carry.

The counts follow the official evaluator, its oddities included, so that figures per level compare with published ones.
"""

from collections.abc import Iterable, Sequence
from typing import Any

_LIKE = 9  # the operator's place in Spider's list of comparison operators


def hardness(sql: dict[str, Any]) -> str:
    """easy, medium, hard or extra; empty when the parsed SQL is not Spider's shape."""
    try:
        clauses, nested, others = _clauses(sql), _nested(sql), _others(sql)
    except (KeyError, IndexError, TypeError):
        return ""
    if nested == 0:
        if clauses <= 1 and others == 0:
            return "easy"
        if (others <= 2 and clauses <= 1) or (clauses <= 2 and others < 2):
            return "medium"
        if (others > 2 and clauses <= 2) or (clauses == 3 and others <= 2):
            return "hard"
    elif nested == 1 and clauses <= 1 and others == 0:
        return "hard"
    return "extra"


def _clauses(sql: dict[str, Any]) -> int:
    """WHERE, GROUP BY, ORDER BY, LIMIT, each join, each OR and each LIKE."""
    present = sum(len(sql[clause]) > 0 for clause in ("where", "groupBy", "orderBy")) + (sql["limit"] is not None)
    joins = max(len(sql["from"]["table_units"]) - 1, 0)
    connectives = [word for clause in _conditions(sql) for word in clause[1::2]]
    likes = sum(unit[1] == _LIKE for unit in _units(sql))
    return int(present + joins + connectives.count("or") + likes)


def _nested(sql: dict[str, Any]) -> int:
    """Subqueries in conditions, and set operations."""
    inner = sum(isinstance(value, dict) for unit in _units(sql) for value in (unit[3], unit[4]))
    return inner + sum(sql[operator] is not None for operator in ("intersect", "except", "union"))


def _others(sql: dict[str, Any]) -> int:
    """Several aggregates, several columns, several conditions, several groupings: one point each."""
    aggregates = _aggregates(sql["select"][1]) + _aggregates(sql["where"][::2]) + _aggregates(sql["groupBy"])
    if sql["orderBy"]:
        values = sql["orderBy"][1]
        aggregates += _aggregates([unit[1] for unit in values if unit[1]] + [unit[2] for unit in values if unit[2]])
    aggregates += _aggregates(sql["having"])
    several = (len(sql["select"][1]), len(sql["where"]), len(sql["groupBy"]))
    return (aggregates > 1) + sum(count > 1 for count in several)


def _aggregates(units: Iterable[Any]) -> int:
    """Units whose first field is not zero; the official counter reads connectives and negations this way too."""
    return sum(unit[0] != 0 for unit in units)


def _conditions(sql: dict[str, Any]) -> tuple[Sequence[Any], ...]:
    return sql["from"]["conds"], sql["where"], sql["having"]


def _units(sql: dict[str, Any]) -> list[Any]:
    return [unit for clause in _conditions(sql) for unit in clause[::2]]
