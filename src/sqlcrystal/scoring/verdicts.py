"""From two executions to a verdict: what kind of right or wrong a prediction is."""

from collections.abc import Callable
from enum import StrEnum

from msgspec import Struct

from sqlcrystal.errors import ConfigError
from sqlcrystal.scoring.rules import Table, columns_within, same_bag, same_denotation, same_set
from sqlcrystal.scoring.tokens import orders_its_result
from sqlcrystal.types import Execution, Failure, FailureKind


class Kind(StrEnum):
    """Every way a question can end; only `match` is correct, and no infrastructure fault is among them."""

    MATCH = "match"
    MISMATCH = "mismatch"
    PREDICTION_ERROR = "prediction error"
    PREDICTION_TIMEOUT = "prediction timeout"
    REFUSED = "refused"
    GOLD_ERROR = "gold error"
    GOLD_TIMEOUT = "gold timeout"


NO_SQL = "no SQL"
UNEVALUABLE = "unevaluable"
"""The kind of an answer that could not be had or judged; it counts as wrong, and is left out of the evaluable-only."""
GOLD_KINDS = frozenset({Kind.GOLD_ERROR, Kind.GOLD_TIMEOUT})


class Judgement(Struct, frozen=True):
    """How one prediction ended, why if it failed, and the seconds its execution took."""

    kind: Kind
    seconds: float = 0.0
    message: str = ""

    @property
    def correct(self) -> bool:
        """Tell whether the prediction counts."""
        return self.kind is Kind.MATCH


def _bird(gold: Table, predicted: Table, _gold_sql: str) -> bool:
    return same_set(gold, predicted)


def _subset(gold: Table, predicted: Table, _gold_sql: str) -> bool:
    return columns_within(gold, predicted)


def _bag(gold: Table, predicted: Table, gold_sql: str) -> bool:
    return same_bag(gold, predicted, ordered=orders_its_result(gold_sql))


def _test_suite(gold: Table, predicted: Table, gold_sql: str) -> bool:
    return same_denotation(gold, predicted, ordered="order by" in gold_sql.lower())


RULES: dict[str, Callable[[Table, Table, str], bool]] = {
    "bird": _bird,
    "subset": _subset,
    "bag": _bag,
    "test-suite": _test_suite,
}
DEFAULT_RULE = "bird"
INSTANCES = "instances"
"""BIRD's rule on every instance of a database that a benchmark can generate: right only if right on all of them.

Two results are compared here; whoever has the instances asks for each.
"""


def rule_named(name: str) -> Callable[[Table, Table, str], bool]:
    """The rule of that name, or a ConfigError with the choices."""
    known = {**RULES, INSTANCES: _bird}
    if name not in known:
        raise ConfigError.unknown("rule", name, known)
    return known[name]


def compare(gold: Execution, predicted: Execution, rule: str = DEFAULT_RULE, *, gold_sql: str = "") -> Judgement:
    """Judge a prediction by its rows; `gold_sql` tells `bag` and `test-suite` whether gold orders its rows.

    Under `test-suite` both executions should be of SQL that went through `preparation.prepare`.
    """
    same = rule_named(rule)
    if isinstance(gold, Failure):
        kind = Kind.GOLD_TIMEOUT if gold.kind is FailureKind.TIMEOUT else Kind.GOLD_ERROR
        return Judgement(kind, predicted.seconds, gold.message)
    if isinstance(predicted, Failure):
        return Judgement(_FAILED.get(predicted.kind, Kind.PREDICTION_ERROR), predicted.seconds, predicted.message)
    matches = same(gold.rows, predicted.rows, gold_sql)
    return Judgement(Kind.MATCH if matches else Kind.MISMATCH, predicted.seconds)


_FAILED = {FailureKind.TIMEOUT: Kind.PREDICTION_TIMEOUT, FailureKind.REFUSED: Kind.REFUSED}
