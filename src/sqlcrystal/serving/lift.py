"""The lift of memory in service: ways to measure it, three readings of it, and the words that each of them bears.

Among the answers that people chose to judge; over all answers, whatever the unjudged ones would say; and among those
that chance chose to be judged. Only the last two are out of reach of who judges what.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from msgspec import Struct

from sqlcrystal.bank import Experiment
from sqlcrystal.bank.records import FORGOTTEN, Drawn, Judged
from sqlcrystal.errors import ConfigError
from sqlcrystal.measurement.live import (
    USUAL_SETTLED,
    Asked,
    LiveLift,
    Tally,
    VerdictRate,
    VerdictSelection,
    WorstCase,
    live_lift,
    paired_verdicts_needed,
    verdict_selection,
    verdicts_needed,
    worst_case,
)
from sqlcrystal.serving.workspace import Workspace
from sqlcrystal.timestamps import timestamp

USUAL_FLOOR = 0.6
"""Right without memory, where no verdict says so yet."""
SMALLEST_EFFECT_PP = 0.5

Ends = tuple[float, float]


class Observation(Struct, frozen=True, kw_only=True):
    """A question on one day in the arm that chance gave it; `right` is the share of its verdicts that confirmed."""

    memory: bool
    share: float
    right: float
    settled: bool | None


class AuditedLift(Struct, frozen=True, kw_only=True):
    """The lift among answers that chance chose to be judged: nobody's choice of what to judge can move it."""

    drawn: int
    """Questions, each on one day."""
    judged: int
    lift_pp: float | None
    """Of those that are judged; unbiased once all are."""
    lift_ci_pp: tuple[float, float] | None
    """Its interval, whatever the verdicts on the others would be."""


class Evidence(Struct, frozen=True, kw_only=True):
    """All that bears on the lift: what was judged, what was asked, and what chance chose to be judged."""

    seen: Sequence[Observation]
    drawn: Sequence[Drawn]
    lift: LiveLift
    """Among the answers that people chose to judge."""
    worst: WorstCase | None
    selection: VerdictSelection
    audit: AuditedLift | None

    @classmethod
    def of(
        cls,
        seen: Sequence[Observation],
        drawn: Sequence[Drawn],
        audited: Sequence[Observation],
        chosen: Sequence[Drawn],
    ) -> "Evidence":
        """Estimate the lift in the three ways; `audited` and `chosen` are those of the audit alone."""
        rates = [
            VerdictRate(memory=kind.memory, trouble=kind.trouble, asked=kind.asked, judged=kind.judged)
            for kind in drawn
        ]
        return cls(
            seen=seen,
            drawn=drawn,
            lift=live_lift(tallies(seen)),
            worst=worst_case(_asked(seen, drawn)),
            selection=verdict_selection(rates),
            audit=_audited(audited, chosen) if chosen else None,
        )

    @property
    def unjudged(self) -> float:
        """Give the share of drawn answers, in percent, whose verdict is missing and would tell."""
        return 0.0 if self.worst is None else self.worst.unjudged


def _audited(audited: Sequence[Observation], chosen: Sequence[Drawn]) -> AuditedLift:
    return AuditedLift(
        drawn=sum(kind.asked for kind in chosen),
        judged=sum(kind.judged for kind in chosen),
        lift_pp=rounded(live_lift(tallies(audited)).value_pp),
        lift_ci_pp=_ends(worst_case(_asked(audited, chosen))),
    )


def _asked(seen: Sequence[Observation], drawn: Sequence[Drawn]) -> list[tuple[Tally, Asked]]:
    """Set beside each share's verdicts all that was asked in it: the verdicts, and what has none."""
    counted = _by_share(seen)
    unjudged: dict[tuple[float, bool], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for kind in drawn:
        arm = "settled" if kind.settled else "with_memory" if kind.memory else "without"
        unjudged[kind.share, kind.both][arm] += kind.asked - kind.judged
    tallied = {key: counted.get(key, Tally(0, 0, 0, 0)) for key in {**counted, **unjudged}}
    return [
        (tally, Asked(*(getattr(tally, arm) + unjudged[key][arm] for arm in ("with_memory", "without", "settled"))))
        for key, tally in tallied.items()
    ]


def measured(evidence: Evidence, wanted: float) -> dict[str, Any]:
    """Give the figures of the lift, the verdict whether it is known, and the words for both."""
    seen, worst = evidence.seen, evidence.worst
    without = accuracy(seen, memory=False)
    missing, effect = _missing(evidence, without, wanted)
    paired = _paired(evidence, without, effect)
    claim = _claim(evidence, wanted)
    return {
        "without_memory": without,
        "lift_pp": rounded(evidence.lift.value_pp),
        "lift_ci_pp": _ends(evidence.lift),
        "worst_case_pp": _ends(worst),
        "unjudged": rounded(worst.unjudged) if worst else None,
        "selection": evidence.selection,
        "audit": evidence.audit,
        "warnings": tuple(_warnings(evidence)),
        "enough": bool(claim),
        "needed": 0 if claim else None if evidence.selection.selective else missing,
        "paired_needed": None if claim else paired,
        "effect_pp": effect,
        "says": claim or _unknown(evidence, missing=missing, paired=paired, effect_pp=effect),
    }


def accuracy(seen: Sequence[Observation], *, memory: bool) -> float | None:
    """Give the share right of an arm's verdicts, in percent."""
    rights = [observation.right for observation in seen if observation.memory is memory]
    return round(100 * sum(rights) / len(rights), 2) if rights else None


def _missing(evidence: Evidence, without: float | None, effect_pp: float) -> tuple[int | None, float]:
    """Count the verdicts it still takes, and for which lift: a smaller one where those for the first are already in."""
    seen, drawn = evidence.seen, evidence.drawn
    if not drawn:
        return None, effect_pp
    share = seen[-1].share if seen else drawn[-1].share
    asked = sum(kind.asked for kind in drawn)
    settled = sum(kind.asked for kind in drawn if kind.settled) / asked
    effect = effect_pp
    while effect >= SMALLEST_EFFECT_PP:
        needed = verdicts_needed(floor=_floor(without), share=share, effect_pp=effect, settled=min(settled, 0.99))
        if needed is None or needed > len(seen):
            return (None if needed is None else needed - len(seen)), effect
        effect /= 2
    return None, effect


def _paired(evidence: Evidence, without: float | None, effect_pp: float) -> int | None:
    """Tell how many verdicts both arms would take; None where they answer already."""
    if not evidence.drawn or any(kind.both for kind in evidence.drawn):
        return None
    return paired_verdicts_needed(floor=_floor(without), settled=USUAL_SETTLED, effect_pp=effect_pp)


def _floor(without: float | None) -> float:
    return USUAL_FLOOR if without is None else min(0.95, max(0.05, without / 100))


def _ends(interval: LiveLift | WorstCase | None) -> Ends | None:
    if interval is None or interval.low_pp is None or interval.high_pp is None:
        return None
    return round(interval.low_pp, 2), round(interval.high_pp, 2)


def rounded(number: float | None) -> float | None:
    """Cut a figure to two places, if there is one."""
    return None if number is None else round(number, 2)


# ── what is said of it ───────────────────────────────────────────────────────────────────────────────────────────────


def _claim(evidence: Evidence, effect_pp: float) -> str:
    """Say that memory helps, harms or does neither; nothing where that is not known.

    The figures that nobody's choice of what to judge can move come first. The lift among judged answers is taken for
    theirs alone, and not at all where verdicts are seen to be selective.
    """
    worst, audit, lift = _ends(evidence.worst), evidence.audit, evidence.lift
    if evidence.unjudged and worst and (word := _word(worst, effect_pp)):
        return f"{word}: {_between(worst)} points over all answers, whatever those would say that nobody judged."
    if audit and audit.lift_ci_pp and audit.lift_pp is not None and (word := _word(audit.lift_ci_pp, effect_pp)):
        return f"{word}: {audit.lift_pp:+.1f} points, {_between(audit.lift_ci_pp)}, in the answers that chance chose."
    ends = _ends(lift)
    word = _word(ends, effect_pp) if ends and not evidence.selection.selective else ""
    judged = ""
    if evidence.unjudged and worst:
        judged = f", among the answers that were judged; over all answers it lies {_between(worst)}"
    return f"{word}: {lift.value_pp:+.1f} points, {_between(ends)}{judged}." if word and ends else ""


def _word(ends: Ends, effect_pp: float) -> str:
    """Say in which direction an interval decides; nothing where it does not."""
    low, high = ends
    if low > 0 or high < 0:
        return "Memory helps" if low > 0 else "Memory harms"
    return "Memory makes no difference that matters" if low > -effect_pp and high < effect_pp else ""


def _between(ends: Ends) -> str:
    return f"between {ends[0]:+.1f} and {ends[1]:+.1f}"


def _unknown(evidence: Evidence, *, missing: int | None, paired: int | None, effect_pp: float) -> str:
    if not evidence.drawn:
        return "Nothing is compared yet: one click on the page Value, or hold_out in sqlcrystal.toml, begins it."
    count, ends = len(evidence.seen), _ends(evidence.lift)
    if evidence.selection.selective and ends:
        told = "the audit will tell" if evidence.audit else "audit = 0.05 in sqlcrystal.toml will tell"
        return (
            f"Not known: {evidence.lift.value_pp:+.1f} points, {_between(ends)}, among the answers that were judged, "
            f"but verdicts were not given alike, and more of the same kind tell nothing; {told}."
        )
    if missing is None:
        return f"Not enough verdicts yet ({count}), and no number of them would tell a lift of {effect_pp:g} points."
    fewer = paired is not None and paired < count + missing
    return (
        f"Not enough verdicts yet: {count} so far; about {missing:,} more would tell a lift of {effect_pp:g} points"
        " from none, four times out of five."
        + (f" With both_arms = true and hold_out = 0.5 about {paired:,} would do, in all." if fewer else "")
    )


def _warnings(evidence: Evidence) -> Iterable[str]:
    """Give the reasons for which the lift among judged answers may not be that of all answers."""
    selection, audit, lift = evidence.selection, evidence.audit, evidence.lift.value_pp
    for apart, kind in (
        (selection.by_arm_pp, "with memory"),
        (selection.by_trouble_pp, "that show a sign of trouble"),
    ):
        if apart is not None:
            often = f"{abs(apart):.0f} points {'more' if apart > 0 else 'less'} often"
            yield f"Answers {kind} are judged {often} than the others, beyond chance: the lift may be that choice."
    if audit and audit.judged < audit.drawn:
        yield (
            f"{audit.drawn - audit.judged} of {audit.drawn} answers that chance chose to be judged still wait: they "
            "stand first in the queue, and the audit's interval counts them both ways."
        )
    ends = audit.lift_ci_pp if audit else None
    if lift is not None and ends and not ends[0] <= lift <= ends[1]:
        yield "The audit does not hold the lift among judged answers: that lift is made by the choice of what to judge."


# ── verdicts counted ──────────────────────────────────────────────────────────────────────────────────────────────────


class Flips(Struct, frozen=True):
    """Questions known to be wrong without memory and right with it, and the other way round."""

    fixed: int
    broke: int


def observations(judged: Iterable[Judged]) -> list[Observation]:
    """Make one for every question, day and arm, by their first verdicts; only where chance chose the arm."""
    groups: dict[tuple[str, str, bool, float], list[Judged]] = defaultdict(list)
    for verdict in judged:
        if verdict.share > 0:
            key = verdict.answer if verdict.question_key == FORGOTTEN else verdict.question_key
            groups[key, verdict.at[:10], verdict.memory, verdict.share].append(verdict)
    return [
        Observation(
            memory=memory,
            share=share,
            right=sum(verdict.right for verdict in members) / len(members),
            settled=None if members[0].settled is None else all(verdict.settled for verdict in members),
        )
        for (_, _, memory, share), members in groups.items()
    ]


def tallies(seen: Sequence[Observation]) -> list[Tally]:
    """Count the observations, one tally for each share that was held out, by one arm or by both."""
    return list(_by_share(seen).values())


def _by_share(seen: Sequence[Observation]) -> dict[tuple[float, bool], Tally]:
    strata: dict[tuple[float, bool], list[Observation]] = defaultdict(list)
    for observation in seen:
        strata[observation.share, observation.settled is not None].append(observation)
    return {key: _tally(members) for key, members in strata.items()}


def _tally(seen: Sequence[Observation]) -> Tally:
    open_ = [observation for observation in seen if not observation.settled]
    with_memory = [observation.right for observation in open_ if observation.memory]
    without = [observation.right for observation in open_ if not observation.memory]
    return Tally(len(with_memory), sum(with_memory), len(without), sum(without), len(seen) - len(open_))


def flips(judged: Iterable[Judged]) -> Flips:
    """Count questions judged in both arms, or confirmed where the other arm's hidden answer gave other rows."""
    known: dict[str, dict[bool, bool]] = defaultdict(dict)
    for verdict in judged:
        arms = known[verdict.answer if verdict.question_key == FORGOTTEN else verdict.question_key]
        arms[verdict.memory] = verdict.right
        if verdict.settled:
            arms[not verdict.memory] = verdict.right
        elif verdict.settled is False and verdict.right:
            arms[not verdict.memory] = False
    pairs = [(arms[False], arms[True]) for arms in known.values() if len(arms) == 2]
    return Flips(fixed=pairs.count((False, True)), broke=pairs.count((True, False)))


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
