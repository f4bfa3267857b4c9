"""The oracle: it knows gold, and all it ever tells is one bit."""

from collections.abc import Callable
from threading import Lock

from sqlcrystal.benchmarks.cases import Case
from sqlcrystal.errors import DataError
from sqlcrystal.protocols import Check, Database
from sqlcrystal.scoring.judge import MAX_ROWS, TIMEOUT
from sqlcrystal.scoring.preparation import prepare_gold, prepare_prediction
from sqlcrystal.scoring.verdicts import DEFAULT_RULE, Verdict, compare, rule_named
from sqlcrystal.types import Execution, Failure


def check_for(
    case: Case, database: Database, rule: str = DEFAULT_RULE, *, timeout: float = TIMEOUT, max_rows: int = MAX_ROWS
) -> Check:
    """Is this SQL right? Gold runs once, on first use; a gold that fails is a DataError, never a wrong answer."""
    judge = verdict_for(case, database, rule, timeout=timeout, max_rows=max_rows)

    def check(sql: str) -> bool:
        verdict = judge(sql)
        if verdict.kind.startswith("gold"):
            # The message names the question only: even an error's text could carry gold to a stage.
            raise DataError(f"question {case.question.id} of {case.question.database}: its gold does not run")
        return verdict.correct

    return check


def verdict_for(
    case: Case, database: Database, rule: str = DEFAULT_RULE, *, timeout: float = TIMEOUT, max_rows: int = MAX_ROWS
) -> Callable[[str], Verdict]:
    """The same with the whole verdict, for measuring; stages get `check_for`."""
    rule_named(rule)
    gold_sql = prepare_gold(case.sql, rule)
    gold: list[Execution] = []
    lock = Lock()

    def judge(sql: str) -> Verdict:
        with lock:
            if not gold:
                gold.append(database.execute(gold_sql, timeout=timeout, max_rows=max_rows))
        if isinstance(gold[0], Failure):
            return compare(gold[0], gold[0], rule)
        predicted = database.execute(prepare_prediction(sql, rule), timeout=timeout, max_rows=max_rows)
        return compare(gold[0], predicted, rule, gold_sql=gold_sql)

    return judge
