"""From verdicts to what can be compared: one observation a question, day and arm; which questions memory flipped."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from msgspec import Struct

from sqlcrystal.bank.forgetting import FORGOTTEN
from sqlcrystal.bank.records import Judged
from sqlcrystal.measurement.live import Tally


class Observation(Struct, frozen=True, kw_only=True):
    """A question on one day in the arm that chance gave it; `right` is the share of its verdicts that confirmed."""

    memory: bool
    share: float
    right: float
    settled: bool | None


class Flips(Struct, frozen=True):
    """Questions known to be wrong without memory and right with it, and the other way round."""

    fixed: int
    broke: int


def observations(judged: Iterable[Judged]) -> list[Observation]:
    """One for every question, day and arm, in the order of their first verdicts; only where chance chose the arm."""
    groups: dict[tuple[str, str, bool, float], list[Judged]] = defaultdict(list)
    for each in judged:
        if each.share > 0:
            key = each.answer if each.question_key == FORGOTTEN else each.question_key
            groups[key, each.at[:10], each.memory, each.share].append(each)
    return [
        Observation(
            memory=memory,
            share=share,
            right=sum(each.right for each in members) / len(members),
            settled=None if members[0].settled is None else all(each.settled for each in members),
        )
        for (_, _, memory, share), members in groups.items()
    ]


def tallies(seen: Sequence[Observation]) -> list[Tally]:
    """The observations counted, one tally for each share that was held out, by one arm or by both."""
    strata: dict[tuple[float, bool], list[Observation]] = defaultdict(list)
    for each in seen:
        strata[each.share, each.settled is not None].append(each)
    return [_tally(members) for members in strata.values()]


def _tally(seen: Sequence[Observation]) -> Tally:
    open_ = [each for each in seen if not each.settled]
    with_memory = [each.right for each in open_ if each.memory]
    without = [each.right for each in open_ if not each.memory]
    return Tally(len(with_memory), sum(with_memory), len(without), sum(without), len(seen) - len(open_))


def flips(judged: Iterable[Judged]) -> Flips:
    """Questions judged in both arms, or confirmed where the other arm's hidden answer gave other rows."""
    known: dict[str, dict[bool, bool]] = defaultdict(dict)
    for each in judged:
        arms = known[each.answer if each.question_key == FORGOTTEN else each.question_key]
        arms[each.memory] = each.right
        if each.settled:
            arms[not each.memory] = each.right
        elif each.settled is False and each.right:
            arms[not each.memory] = False
    pairs = [(arms[False], arms[True]) for arms in known.values() if len(arms) == 2]
    return Flips(fixed=pairs.count((False, True)), broke=pairs.count((True, False)))
