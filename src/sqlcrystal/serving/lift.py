"""The lift of memory in service, read in three ways, and the words that each of them bears.

Among the answers that people chose to judge; over all answers, whatever the unjudged ones would say; and among those
that chance chose to be judged. Only the last two are out of reach of who judges what.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from sqlcrystal.bank.records import FORGOTTEN, Drawn, Judged
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
