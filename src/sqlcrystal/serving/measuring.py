"""Ways to measure memory over a database in service: how questions are divided, what that costs, when it will tell."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from msgspec import Struct

from sqlcrystal.bank import Experiment
from sqlcrystal.errors import ConfigError
from sqlcrystal.measurement.live import paired_verdicts_needed, verdicts_needed
from sqlcrystal.serving.lift import USUAL_FLOOR
from sqlcrystal.serving.workspace import Workspace
from sqlcrystal.timestamps import timestamp

LIFTS_PP = (20.0, 10.0)
"""Lifts in points that a team can imagine: one answer in five, one in ten."""
RECENT_DAYS = 28
WEEKS_A_YEAR = 52


class Way(NamedTuple):
    """One way to divide the questions."""

    name: str
    hold_out: float
    both_arms: bool
    does: str
    costs: str


WAYS = {
    "off": Way("Off", 0.0, False, "Every question sees its cards.", "Nothing; and nothing is compared."),
    "hold-out": Way(
        "Hold out one in five",
        0.2,
        False,
        "Chance answers one question in five without cards; nobody is told which before the verdict.",
        "No more calls; but those questions miss what only cards get right.",
    ),
    "both": Way(
        "Ask both ways",
        0.5,
        True,
        "Every question is answered with cards and without; chance says which of the two is shown.",
        "Twice the calls; and one answer in two is shown without what cards would have added.",
    ),
}
"""The ways by the name that a program gives."""


class MeasuringChoice(Struct, frozen=True, kw_only=True):
    """One way to measure, with its price and its patience."""

    kind: str
    name: str
    hold_out: float
    both_arms: bool
    does: str
    costs: str
    tells: str
    """How many verdicts it takes until a lift is told from none, and how long that is at the present pace."""
    chosen: bool
    by: str = ""
    """The person who chose it; empty where the settings say so."""
    at: str = ""


def choices(workspace: Workspace, database: str) -> tuple[MeasuringChoice, ...]:
    """Give every way with what it costs here and when it will tell; one that only the settings name comes first."""
    now, pace, spent = (
        workspace.experiment(database),
        _verdicts_a_week(workspace, database),
        _tokens(workspace, database),
    )
    known = any((way.hold_out, way.both_arms) == (now.hold_out, now.both_arms) for way in WAYS.values())
    ways = dict(WAYS) if known else {"settings": _as_set(now), **WAYS}
    return tuple(_choice(kind, way, now, pace, spent) for kind, way in ways.items())


def choose(workspace: Workspace, database: str, kind: str, *, by: str) -> MeasuringChoice:
    """Divide the questions of a database in that way from now on."""
    if kind not in WAYS:
        raise ConfigError.unknown("measure", kind, WAYS)
    way = WAYS[kind]
    divided = Experiment(database=database, hold_out=way.hold_out, both_arms=way.both_arms, by=by, at=timestamp())
    workspace.store.experiments.choose(divided)
    return next(choice for choice in choices(workspace, database) if choice.kind == kind)


def _as_set(now: Experiment) -> Way:
    arms = "; every question is answered both ways" if now.both_arms else ""
    does = f"Chance shows {100 * now.hold_out:g} % of answers without cards{arms}."
    return Way(
        "As the settings say", now.hold_out, now.both_arms, does, WAYS["both" if now.both_arms else "hold-out"].costs
    )


def _choice(kind: str, way: Way, now: Experiment, pace: float, spent: float) -> MeasuringChoice:
    chosen = (way.hold_out, way.both_arms) == (now.hold_out, now.both_arms)
    more = f" About {spent:,.0f} tokens more for each question here." if way.both_arms and spent else ""
    return MeasuringChoice(
        kind=kind,
        name=way.name,
        hold_out=way.hold_out,
        both_arms=way.both_arms,
        does=way.does,
        costs=way.costs + more,
        tells=_patience(way, pace),
        chosen=chosen,
        by=now.by if chosen else "",
        at=now.at if chosen else "",
    )


def _patience(way: Way, pace: float) -> str:
    if not way.hold_out:
        return ""
    told = []
    for effect in LIFTS_PP:
        needed = (
            paired_verdicts_needed(floor=USUAL_FLOOR, effect_pp=effect)
            if way.both_arms
            else verdicts_needed(floor=USUAL_FLOOR, share=way.hold_out, effect_pp=effect)
        )
        if needed:
            told.append(f"{effect:g} points after about {_round(needed):,} verdicts{_weeks(needed, pace)}")
    return f"Tells a lift of {', of '.join(told)}." if told else ""


def _round(number: int) -> int:
    """Round to two digits, which are as much as such a figure can say."""
    return round(number, 2 - len(str(number)))


def _weeks(needed: int, pace: float) -> str:
    if not pace:
        return ""
    weeks = max(1, round(needed / pace))
    if weeks > 2 * WEEKS_A_YEAR:
        return f" ({round(weeks / WEEKS_A_YEAR):,} years at your pace)"
    return f" ({weeks:,} week{'' if weeks == 1 else 's'} at your pace)"


def _verdicts_a_week(workspace: Workspace, database: str) -> float:
    """Give the pace of the latest four weeks; 0 where there was none, or no more than a day of it."""
    if not workspace.store_exists():
        return 0.0
    since = datetime.now(UTC) - timedelta(days=RECENT_DAYS)
    days = [verdict.at[:10] for verdict in workspace.store.answers.judged(database=database, since=since.isoformat())]
    if not days:
        return 0.0
    first = datetime.fromisoformat(min(days)).replace(tzinfo=UTC)
    return 7 * len(days) / max(7.0, (datetime.now(UTC) - first).days + 1)


def _tokens(workspace: Workspace, database: str) -> float:
    """Tokens that one answer of this database took so far."""
    traffic = workspace.store.answers.traffic(database=database) if workspace.store_exists() else []
    answers = sum(arm.answers for arm in traffic)
    return sum(arm.prompt_tokens + arm.completion_tokens for arm in traffic) / answers if answers else 0.0
