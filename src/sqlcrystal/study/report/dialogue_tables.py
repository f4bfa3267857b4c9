"""Dialogues: how many questions and whole dialogues are right, turn by turn, with what came before and without."""

from collections.abc import Sequence

from sqlcrystal.ledger.records import Outcome
from sqlcrystal.measurement.flips import UNEVALUABLE
from sqlcrystal.study.report.facts import Facts, percent_right
from sqlcrystal.study.report.table import Body
from sqlcrystal.study.report.wording import NONE, number, percent

SETTINGS = {"transfer": "as it stands", "dialogue": "read after the turns before"}
LAST_TURN = 4
"""Turns from here on are counted together."""


def dialogue_table(facts: Facts) -> Body | None:
    """Tabulate question match, dialogue match and match by turn, for each arm with context and without."""
    turns = facts.ledger.turns
    if not turns:
        return None
    rows = []
    for arm in facts.arms.values():
        for setting, how in SETTINGS.items():
            asked = [row for row in facts.rows(arm, setting) if row.question in turns]
            if asked:
                by_turn = [_of_turn(asked, turns, place) for place in range(1, LAST_TURN + 1)]
                whole = _whole(asked, turns)
                figures = (percent_right(asked), _percent(whole), *by_turn)
                cells = (NONE if figure is None else percent(figure) for figure in figures)
                rows.append((arm.name, how, number(len(asked)), number(len(whole)), *cells))
    places = (*(f"Turn {place} %" for place in range(1, LAST_TURN)), f"Turn {LAST_TURN} on %")
    columns = ("Arm", "Question", "Questions", "Dialogues", "Question match %", "Dialogue match %", *places)
    note = (
        "By execution. A dialogue matches where every one of its questions does whose gold runs. Read after the turns"
        " before: the model rewrites the question from the earlier ones and its own SQL for them, never gold's."
    )
    return Body(columns=columns, rows=tuple(rows), note=note)


def _of_turn(rows: Sequence[Outcome], turns: dict[str, tuple[str, int]], place: int) -> float | None:
    return percent_right([row for row in rows if min(turns[row.question][1], LAST_TURN) == place])


def _whole(rows: Sequence[Outcome], turns: dict[str, tuple[str, int]]) -> list[bool]:
    """Tell of each dialogue, under each split, whether all of it is right."""
    dialogues: dict[tuple[int, str], list[bool]] = {}
    for row in rows:
        if row.kind not in UNEVALUABLE:
            dialogues.setdefault((row.seed, turns[row.question][0]), []).append(row.right)
    return [all(verdicts) for verdicts in dialogues.values()]


def _percent(verdicts: Sequence[bool]) -> float | None:
    return 100 * sum(verdicts) / len(verdicts) if verdicts else None
