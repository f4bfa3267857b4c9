"""From two results to a verdict by one of four rules, with a shallow look at the SQL's text; and verdicts added up.

`bird`        the sets of rows are equal (BIRD's rule: duplicates and order do not count, column order does)
`subset`      some of the prediction's columns, in any order, give gold's set of rows
`bag`         duplicates count, order counts when gold orders, numbers may differ by rounding
`test-suite`  Spider's rule on one database: duplicates, any column order, row order when gold says ORDER BY

Not a parser: the rules that need it mirror evaluators which look at tokens only, and the text may not be SQL at all.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from functools import lru_cache

from msgspec import Struct

from sqlcrystal.errors import ConfigError
from sqlcrystal.types import Cell, Execution, Failure, FailureKind, Row

_SKIPPED = r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]|--[^\n]*|/\*.*?(?:\*/|\Z)"""
_QUOTED = re.compile(r"""('(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\])""")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f]")
_QUOTES = ("'", '"', "`", "[")
_UNUSUAL = ("--", "/*", "x'", 'x"')
_DISTINCT = re.compile(rf"({_SKIPPED})|\bdistinct\b", re.IGNORECASE | re.DOTALL)
_ORDER_OR_PARENTHESIS = re.compile(rf"(?:{_SKIPPED})|(\()|(\))|(\border\s+by\b)", re.IGNORECASE | re.DOTALL)
_VOLATILE = re.compile(
    r"\b(?:now|today|current_date|current_time|current_timestamp|curdate|localtime|random|randomblob|gen_random_uuid)\b"
    r"|\b(?:date|time|datetime|julianday|unixepoch)\s*\(\s*\)",
    re.IGNORECASE,
)


@lru_cache(maxsize=65_536)
def sqlite_key(sql: str) -> str:
    """A text that two statements share only if SQLite reads the same tokens in both: case and layout are folded.

    Only for SQLite, where neither can change a row of the result. Text that is not plain (comments, BLOB literals,
    control or non-ASCII characters) is left as it is.
    """
    lowered = sql.lower()
    if not sql.isascii() or any(mark in lowered for mark in _UNUSUAL) or _has_control_character(sql):
        return sql
    if not any(mark in sql for mark in _QUOTES):
        return _fold(lowered).rstrip(" ;")
    parts = _QUOTED.split(sql)
    parts[::2] = [_fold(part.lower()) for part in parts[::2]]
    return " ".join(parts).rstrip(" ;")


def _has_control_character(sql: str) -> bool:
    """Tell whether there is one that is not layout; that a text is printable is known much faster."""
    return not sql.isprintable() and _CONTROL.search(sql) is not None


def _fold(part: str) -> str:
    """Single blanks, and none beside a comma or parenthesis, which end a token by themselves."""
    text = " ".join(part.split())
    for mark in ",()":
        text = text.replace(f" {mark}", mark).replace(f"{mark} ", mark)
    return text


def without_distinct(sql: str) -> str:
    """The text with every DISTINCT keyword cut out."""
    if "distinct" not in sql.lower():
        return sql
    return _DISTINCT.sub(lambda match: match.group(1) or "", sql)


def orders_its_result(sql: str) -> bool:
    """Tell whether ORDER BY stands outside every parenthesis, so that it orders the final rows."""
    if "order" not in sql.lower():
        return False
    depth = 0
    for match in _ORDER_OR_PARENTHESIS.finditer(sql):
        if match.group(1):
            depth += 1
        elif match.group(2):
            depth -= 1
        elif match.group(3) and depth <= 0:
            return True
    return False


def may_change_between_runs(sql: str) -> bool:
    """Tell whether the text mentions the clock or chance, so that its rows must not outlive the run."""
    return _VOLATILE.search(sql) is not None


# ── SQL as a rule executes it ────────────────────────────────────────────────────────────────────────────────────────

_CURRENT_YEAR = re.compile(r"YEAR\s*\(\s*CURDATE\s*\(\s*\)\s*\)\s*", re.IGNORECASE)


def prepare_gold(sql: str, rule: str) -> str:
    """Gold as the rule executes it."""
    return _as_spider_does(sql) if rule == "test-suite" else sql


def prepare_prediction(sql: str, rule: str) -> str:
    """A prediction as the rule executes it; Spider also fills a lone `value` slot with 1."""
    return _as_spider_does(sql.replace(" value ", " 1 ")) if rule == "test-suite" else sql


def _as_spider_does(sql: str) -> str:
    """Join split operators, drop DISTINCT, and read the current year as 2020."""
    joined = sql.replace("> =", ">=").replace("< =", "<=").replace("! =", "!=")
    return _CURRENT_YEAR.sub("2020", without_distinct(joined))


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
    """The end of one prediction, why if it failed, and the seconds its execution took."""

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


class Scored(Struct, frozen=True, kw_only=True):
    """One question's verdict, with what it is grouped by."""

    question_id: str
    database: str
    difficulty: str
    kind: Kind
    seconds: float
    message: str = ""
    sql: str = ""
    """The predicted SQL."""

    @property
    def correct(self) -> bool:
        """Tell whether the prediction counts."""
        return self.kind is Kind.MATCH


class Group(Struct, frozen=True, kw_only=True):
    """The results of a group of questions; `scorable` leaves out those whose gold failed."""

    n: int
    correct: int
    accuracy: float
    scorable: int
    accuracy_scorable: float


class Report(Struct, frozen=True, kw_only=True):
    """The results of one set of predictions; accuracies are in percent, `accuracy` over all questions."""

    benchmark: str
    rule: str
    predictions: str
    n: int
    correct: int
    accuracy: float
    scorable: int
    accuracy_scorable: float
    by_database: dict[str, Group]
    by_difficulty: dict[str, Group]
    by_kind: dict[str, int]
    missing_databases: tuple[str, ...] = ()
    left_out: int = 0
    seconds: float = 0.0


def report_of(
    scored: Sequence[Scored],
    *,
    benchmark: str,
    rule: str,
    predictions: str = "",
    missing_databases: Sequence[str] = (),
    left_out: int = 0,
    seconds: float = 0.0,
) -> Report:
    """Add the verdicts up."""
    total = _group(scored)
    kinds = Counter(question.kind for question in scored)
    return Report(
        benchmark=benchmark,
        rule=rule,
        predictions=predictions,
        n=total.n,
        correct=total.correct,
        accuracy=total.accuracy,
        scorable=total.scorable,
        accuracy_scorable=total.accuracy_scorable,
        by_database=_groups((question.database, question) for question in scored),
        by_difficulty=_groups((question.difficulty, question) for question in scored if question.difficulty),
        by_kind={kind.value: kinds[kind] for kind in Kind},
        missing_databases=tuple(missing_databases),
        left_out=left_out,
        seconds=round(seconds, 6),
    )


def _groups(keyed: Iterable[tuple[str, Scored]]) -> dict[str, Group]:
    groups: dict[str, list[Scored]] = {}
    for key, question in keyed:
        groups.setdefault(key, []).append(question)
    return {key: _group(members) for key, members in groups.items()}


def _group(scored: Sequence[Scored]) -> Group:
    correct = sum(question.correct for question in scored)
    scorable = sum(question.kind not in GOLD_KINDS for question in scored)
    return Group(
        n=len(scored),
        correct=correct,
        accuracy=_percent(correct, len(scored)),
        scorable=scorable,
        accuracy_scorable=_percent(correct, scorable),
    )


def _percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 4) if whole else 0.0
