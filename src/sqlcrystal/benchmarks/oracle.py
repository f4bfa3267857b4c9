"""The oracle: it knows gold, and all that leaves it are bits; the one judge of answers to a benchmark."""

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from sqlcrystal.benchmarks.cases import Case
from sqlcrystal.protocols import Database
from sqlcrystal.scoring.judge import MAX_ROWS
from sqlcrystal.scoring.verdicts import (
    DEFAULT_RULE,
    GOLD_KINDS,
    INSTANCES,
    NO_SQL,
    RULES,
    UNEVALUABLE,
    Kind,
    compare,
    prepare_gold,
    prepare_prediction,
    rule_named,
)
from sqlcrystal.single_flight import SingleFlight
from sqlcrystal.types import Question, Rows


class RuleBits(Struct, frozen=True):
    """The verdicts of every rule on one SQL; `kind` is set when the SQL or its gold gave no rows to compare."""

    rules: dict[str, bool]
    kind: str = ""

    def named(self, rule: str) -> str:
        """Tell how the answer ended under one rule."""
        return self.kind or str(Kind.MATCH if self.rules[rule] else Kind.MISMATCH)


class GoldOracle:
    """Judges each SQL of a question once, under every rule; `check` is the rule behind its bit."""

    def __init__(
        self,
        cases: Iterable[Case],
        database_of: Callable[[str], Database],
        *,
        check: str = "bird",
        instances_of: Callable[[str], Sequence[Database]] | None = None,
    ) -> None:
        """Judge on one database each; `instances_of` adds the rule that asks further instances of it."""
        rule_named(check)
        self.check = check
        self._instances_of = instances_of
        wrong = dict.fromkeys((*RULES, *((INSTANCES,) if instances_of else ())), False)
        self.unjudged = RuleBits(wrong, UNEVALUABLE)
        """Of an answer that could not be had: the model refused its prompt for good."""
        self._without_sql = RuleBits(wrong, NO_SQL)
        self._cases = {case.question.key: case for case in cases}
        self._database_of = database_of
        self._judged: SingleFlight[tuple[tuple[str, str], str], RuleBits] = SingleFlight()

    def judge(self, question: Question, sql: str | None) -> RuleBits:
        """Tell what every rule says."""
        if sql is None:
            return self._without_sql
        case = self._cases[question.key]
        return self._judged.get((question.key, sql), lambda: self._compare(case, sql))

    def right(self, question: Question, sql: str) -> bool:
        """The bit, which is all that a stage may see."""
        return self.judge(question, sql).rules[self.check]

    def holds(self, question: Question, sql: str, instances: Iterable[Database]) -> bool:
        """Tell whether an answer returns what gold returns on every one of some further instances of its database."""
        gold = self._cases[question.key].sql
        return all(_same(gold, sql, instance) for instance in instances)

    def evaluable(self, question: Question) -> bool:
        """Tell whether the question's gold runs; without it nothing can be judged."""
        gold = prepare_gold(self._cases[question.key].sql, self.check)
        return isinstance(self._database_of(question.database).execute(gold, max_rows=MAX_ROWS), Rows)

    def _compare(self, case: Case, sql: str) -> RuleBits:
        database = self._database_of(case.question.database)
        verdicts = {}
        for rule in RULES:
            gold_sql = prepare_gold(case.sql, rule)
            gold = database.execute(gold_sql, max_rows=MAX_ROWS)
            predicted = database.execute(prepare_prediction(sql, rule), max_rows=MAX_ROWS)
            verdicts[rule] = compare(gold, predicted, rule, gold_sql=gold_sql)
        bits = {rule: verdict.correct for rule, verdict in verdicts.items()}
        if self._instances_of is not None:
            verdicts[INSTANCES] = verdicts[DEFAULT_RULE]
            further = self._instances_of(case.question.database)
            bits[INSTANCES] = bits[DEFAULT_RULE] and self.holds(case.question, sql, further)
        kind = verdicts[self.check].kind
        compared = kind in (Kind.MATCH, Kind.MISMATCH)
        return RuleBits(bits, "" if compared else UNEVALUABLE if kind in GOLD_KINDS else str(kind))


def _same(gold: str, sql: str, database: Database) -> bool:
    """Tell whether two queries return the same set of rows on one instance of their database."""
    expected, found = (database.execute(query, max_rows=MAX_ROWS) for query in (gold, sql))
    return compare(expected, found, INSTANCES).correct
