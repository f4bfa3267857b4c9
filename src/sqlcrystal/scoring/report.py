"""Verdicts added up: overall, per database, per difficulty, per kind."""

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from sqlcrystal.scoring.verdicts import GOLD_KINDS, Kind


class Scored(Struct, frozen=True, kw_only=True):
    """One question's verdict, with what it is grouped by."""

    question_id: str
    database: str
    difficulty: str
    kind: Kind
    seconds: float
    message: str = ""
    sql: str = ""
    """What was predicted."""

    @property
    def correct(self) -> bool:
        """Tell whether the prediction counts."""
        return self.kind is Kind.MATCH


class Group(Struct, frozen=True, kw_only=True):
    """How a group of questions did; `scorable` leaves out those whose gold failed."""

    n: int
    correct: int
    accuracy: float
    scorable: int
    accuracy_scorable: float


class Report(Struct, frozen=True, kw_only=True):
    """How one set of predictions did; accuracies are in percent, `accuracy` over all questions."""

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
