"""The four rules: when do two results count as the same answer?

`bird`        the sets of rows are equal (BIRD's rule: duplicates and order do not count, column order does)
`subset`      some of the prediction's columns, in any order, give gold's set of rows
`bag`         duplicates count, order counts when gold orders, numbers may differ by rounding
`test-suite`  Spider's rule on one database: duplicates, any column order, row order when gold says ORDER BY
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence

from sqlcrystal.types import Cell, Row

RELATIVE_TOLERANCE = 1e-6
ABSOLUTE_TOLERANCE = 1e-9
_MATCHING_LIMIT = 1_000

Table = Sequence[Row]


def same_set(gold: Table, predicted: Table) -> bool:
    """BIRD: equal as sets of rows."""
    return gold is predicted or gold == predicted or set(gold) == set(predicted)


def columns_within(gold: Table, predicted: Table) -> bool:
    """Gold's columns are found among the prediction's, with the same set of rows over them."""
    if not gold or not predicted:
        return len(gold) == len(predicted)
    if len(gold[0]) > len(predicted[0]):
        return False
    gold_columns, predicted_columns = list(zip(*gold, strict=True)), list(zip(*predicted, strict=True))
    candidates = _candidates([set(column) for column in gold_columns], [set(column) for column in predicted_columns])
    return _chosen(candidates, lambda prefix: _same_prefix(gold_columns, predicted_columns, prefix, set))


def same_bag(gold: Table, predicted: Table, *, ordered: bool) -> bool:
    """Equal as bags of rows, or as lists when gold orders; numbers within a relative tolerance of 1e-6."""
    if not gold or not predicted:
        return len(gold) == len(predicted)
    if len(gold) != len(predicted) or len(gold[0]) != len(predicted[0]):
        return False
    if ordered:
        return all(_close_rows(left, right) for left, right in zip(gold, predicted, strict=True))
    left, right = Counter(gold), Counter(predicted)
    return _pair_up(list((left - right).elements()), list((right - left).elements()))


def same_denotation(gold: Table, predicted: Table, *, ordered: bool) -> bool:
    """Spider: some order of the prediction's columns makes the bags (or, when ordered, the lists) equal."""
    if gold is predicted:
        return True
    if not gold or not predicted:
        return len(gold) == len(predicted)
    if len(gold) != len(predicted) or len(gold[0]) != len(predicted[0]):
        return False
    if not _same_unordered_rows(gold, predicted, ordered=ordered):
        return False
    pack: Callable[[Sequence[object]], object] = list if ordered else Counter
    gold_columns, predicted_columns = list(zip(*gold, strict=True)), list(zip(*predicted, strict=True))
    if pack(gold) == pack(predicted):
        return True
    candidates = _candidates([pack(column) for column in gold_columns], [pack(column) for column in predicted_columns])
    return _chosen(candidates, lambda prefix: _same_prefix(gold_columns, predicted_columns, prefix, pack))


# ── choosing columns ─────────────────────────────────────────────────────────────────────────────────────────────────


def _candidates(wanted: Sequence[object], offered: Sequence[object]) -> list[list[int]]:
    """For each wanted column the offered columns that hold the same values."""
    return [[index for index, column in enumerate(offered) if column == want] for want in wanted]


def _chosen(candidates: Sequence[Sequence[int]], holds: Callable[[tuple[int, ...]], bool]) -> bool:
    """Tell whether distinct columns can be chosen, one per wanted column, so that every prefix of the choice holds."""
    stack: list[tuple[int, ...]] = [()]
    while stack:
        prefix = stack.pop()
        if len(prefix) == len(candidates):
            return True
        options = [index for index in candidates[len(prefix)] if index not in prefix]
        stack.extend(choice for index in reversed(options) if holds(choice := (*prefix, index)))
    return False


def _same_prefix(
    gold_columns: Sequence[Sequence[Cell]],
    predicted_columns: Sequence[Sequence[Cell]],
    prefix: tuple[int, ...],
    pack: Callable[[Sequence[object]], object],
) -> bool:
    """Tell whether the columns chosen so far agree with gold's first columns, taken together."""
    if len(prefix) == 1:
        return True
    left = list(zip(*gold_columns[: len(prefix)], strict=True))
    right = list(zip(*(predicted_columns[index] for index in prefix), strict=True))
    return pack(left) == pack(right)


def _same_unordered_rows(gold: Table, predicted: Table, *, ordered: bool) -> bool:
    """Spider's quick rejection; kept because it decides: it tells 1 beside 1.5 from 1.0 beside 1.5."""
    left, right = [_unordered(row) for row in gold], [_unordered(row) for row in predicted]
    return left == right if ordered else set(left) == set(right)


def _unordered(row: Row) -> Row:
    return row if len(row) == 1 else tuple(sorted(row, key=lambda cell: str(cell) + str(type(cell))))


# ── numbers within tolerance ─────────────────────────────────────────────────────────────────────────────────────────


def _close_rows(left: Row, right: Row) -> bool:
    return all(_close(a, b) for a, b in zip(left, right, strict=True))


def _close(left: Cell, right: Cell) -> bool:
    if isinstance(left, int | float) and isinstance(right, int | float):
        return left == right or math.isclose(left, right, rel_tol=RELATIVE_TOLERANCE, abs_tol=ABSOLUTE_TOLERANCE)
    return left == right


def _pair_up(left: list[Row], right: list[Row]) -> bool:
    """Tell whether the rows that differ can be paired within the tolerance."""
    groups: dict[tuple[object, ...], tuple[list[Row], list[Row]]] = {}
    for side, rows in enumerate((left, right)):
        for row in rows:
            key = tuple(None if isinstance(cell, int | float) else (cell,) for cell in row)
            groups.setdefault(key, ([], []))[side].append(row)
    return all(_pair_group(*group) for group in groups.values())


def _pair_group(left: list[Row], right: list[Row]) -> bool:
    """Pair rows that agree in all but their numbers: sorted side by side, else by augmenting paths."""
    if len(left) != len(right):
        return False
    left, right = sorted(left, key=_numbers), sorted(right, key=_numbers)
    if all(_close_rows(a, b) for a, b in zip(left, right, strict=True)):
        return True
    if len(left) > _MATCHING_LIMIT:
        return False
    edges = [[index for index, b in enumerate(right) if _close_rows(a, b)] for a in left]
    partner: dict[int, int] = {}
    return all(_augment(row, edges, partner, set()) for row in range(len(left)))


def _numbers(row: Row) -> tuple[float, ...]:
    return tuple(cell for cell in row if isinstance(cell, int | float))


def _augment(row: int, edges: list[list[int]], partner: dict[int, int], seen: set[int]) -> bool:
    for index in edges[row]:
        if index not in seen:
            seen.add(index)
            if index not in partner or _augment(partner[index], edges, partner, seen):
                partner[index] = row
                return True
    return False
