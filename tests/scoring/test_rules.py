"""What each rule calls the same answer."""

import math
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlcrystal.errors import ConfigError
from sqlcrystal.scoring import RULES, Kind, compare
from sqlcrystal.scoring.verdicts import columns_within, same_bag, same_denotation, same_set
from sqlcrystal.types import Execution, Failure, FailureKind, Row, Rows

cells = st.one_of(st.none(), st.integers(-3, 3), st.sampled_from([0.5, 1.0, 2.5]), st.sampled_from(["", "a", "b"]))


@st.composite
def tables(draw: st.DrawFn, columns: int | None = None) -> tuple[Row, ...]:
    width = columns or draw(st.integers(1, 4))
    return tuple(draw(st.lists(st.tuples(*[cells] * width), max_size=5)))


def rows(*table: Row) -> Rows:
    return Rows(tuple(f"c{n}" for n in range(len(table[0]) if table else 1)), tuple(table))


@given(tables())
def test_every_rule_calls_a_result_equal_to_itself(table: tuple[Row, ...]) -> None:
    copy = tuple(tuple(row) for row in table)
    for rule in RULES:
        assert compare(rows(*table), rows(*copy), rule, gold_sql="SELECT 1 ORDER BY 1").correct


@given(tables(2), tables(2))
def test_bird_agrees_with_python_sets(gold: tuple[Row, ...], predicted: tuple[Row, ...]) -> None:
    assert same_set(gold, predicted) == (set(gold) == set(predicted))


def brute_force_denotation(gold: tuple[Row, ...], predicted: tuple[Row, ...], ordered: bool) -> bool:
    """Spider's definition, tried out over every order of the columns, with its quick rejection."""
    if not gold and not predicted:
        return True
    if len(gold) != len(predicted) or len(gold[0]) != len(predicted[0]):
        return False
    loose = [[tuple(sorted(row, key=lambda x: str(x) + str(type(x)))) for row in side] for side in (gold, predicted)]
    if not (loose[0] == loose[1] if ordered else set(loose[0]) == set(loose[1])):
        return False
    for order in permutations(range(len(gold[0]))):
        moved = [tuple(row[index] for index in order) for row in predicted]
        if ordered and list(gold) == moved:
            return True
        if not ordered and all(list(gold).count(row) == moved.count(row) for row in [*gold, *moved]):
            return True
    return False


@given(st.data(), st.booleans())
def test_test_suite_agrees_with_trying_every_column_order(data: st.DataObject, ordered: bool) -> None:
    gold = data.draw(tables())
    reordered: bool = data.draw(st.booleans())
    if gold and reordered:
        order = data.draw(st.permutations(range(len(gold[0]))))
        shuffled = data.draw(st.permutations(gold))
        predicted = tuple(tuple(row[index] for index in order) for row in shuffled)
    else:
        predicted = data.draw(tables())
    assert same_denotation(gold, predicted, ordered=ordered) == brute_force_denotation(gold, predicted, ordered)


@given(st.data())
def test_subset_finds_gold_columns_among_the_predictions(data: st.DataObject) -> None:
    predicted = data.draw(tables(4).filter(bool))
    chosen = data.draw(st.permutations(range(4)).map(lambda order: order[: data.draw(st.integers(1, 4))]))
    gold = tuple(tuple(row[index] for index in chosen) for row in predicted)
    assert columns_within(gold, predicted)


def test_subset_needs_the_columns_to_agree_row_by_row() -> None:
    assert not columns_within(((1, "a"), (2, "b")), ((1, "b", 0), (2, "a", 0)))
    assert not columns_within(((1, 2),), ((1,),))
    assert columns_within((), ())
    assert not columns_within(((1,),), ())


def test_bird_ignores_duplicates_and_order_but_bag_does_not() -> None:
    once, twice = ((1,), (2,)), ((2,), (1,), (1,))
    assert same_set(once, twice)
    assert not same_bag(once, twice, ordered=False)
    assert same_bag(once, ((2,), (1,)), ordered=False)
    assert not same_bag(once, ((2,), (1,)), ordered=True)


def test_bag_forgives_rounding_and_nothing_more() -> None:
    assert same_bag(((0.1 + 0.2, "x"),), ((0.3, "x"),), ordered=False)
    assert same_bag(((2,),), ((2.0000001,),), ordered=True)
    assert not same_bag(((2.0,),), ((2.001,),), ordered=False)
    assert not same_bag(((0.3, "x"),), ((0.3, "y"),), ordered=False)
    assert not same_bag((("1",),), ((1,),), ordered=False)
    assert same_bag(((math.inf,),), ((math.inf,),), ordered=False)


def test_bag_pairs_rows_whose_noise_sorts_them_differently() -> None:
    noisy = 0.1 + 0.2
    assert same_bag(((0.3, 1.0), (noisy, 0.0)), ((0.3, 0.0), (0.3, 1.0)), ordered=False)


def test_an_empty_result_equals_only_an_empty_result() -> None:
    for rule in RULES:
        assert compare(rows(), rows(), rule).correct
        assert not compare(rows(), rows((1,)), rule).correct
        assert not compare(rows((1,)), rows(), rule).correct


def test_order_counts_for_bag_only_when_gold_orders_its_final_rows() -> None:
    gold, predicted = rows((1,), (2,)), rows((2,), (1,))
    inner = "SELECT a FROM t WHERE a IN (SELECT a FROM t ORDER BY a LIMIT 2)"
    assert compare(gold, predicted, "bag", gold_sql=inner).correct
    assert not compare(gold, predicted, "bag", gold_sql="SELECT a FROM t ORDER  BY a").correct
    assert not compare(gold, predicted, "test-suite", gold_sql=inner).correct, "Spider looks for the words anywhere"


@pytest.mark.parametrize(
    ("gold", "predicted", "kind"),
    [
        (rows((1,)), rows((1,)), Kind.MATCH),
        (rows((1,)), rows((2,)), Kind.MISMATCH),
        (rows((1,)), Failure(FailureKind.SYNTAX, "x"), Kind.PREDICTION_ERROR),
        (rows((1,)), Failure(FailureKind.MISSING, "x"), Kind.PREDICTION_ERROR),
        (rows((1,)), Failure(FailureKind.TOO_LARGE, "x"), Kind.PREDICTION_ERROR),
        (rows((1,)), Failure(FailureKind.TIMEOUT, "x"), Kind.PREDICTION_TIMEOUT),
        (rows((1,)), Failure(FailureKind.REFUSED, "x"), Kind.REFUSED),
        (Failure(FailureKind.MISSING, "x"), rows((1,)), Kind.GOLD_ERROR),
        (Failure(FailureKind.TIMEOUT, "x"), Failure(FailureKind.TIMEOUT, "x"), Kind.GOLD_TIMEOUT),
    ],
)
def test_verdict_kinds_are_kept_apart(gold: Execution, predicted: Execution, kind: Kind) -> None:
    assert compare(gold, predicted).kind is kind


def test_an_unknown_rule_names_the_choices() -> None:
    with pytest.raises(
        ConfigError, match="rule: unknown value 'exact'; choose from bag, bird, instances, subset, test-suite"
    ):
        compare(rows((1,)), rows((1,)), "exact")
