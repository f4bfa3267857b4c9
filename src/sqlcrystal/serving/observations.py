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
    """The observations counted, one tally for each share that was held out, by one arm or by both."""
    strata: dict[tuple[float, bool], list[Observation]] = defaultdict(list)
    for observation in seen:
        strata[observation.share, observation.settled is not None].append(observation)
    return [_tally(members) for members in strata.values()]


def _tally(seen: Sequence[Observation]) -> Tally:
    open_ = [observation for observation in seen if not observation.settled]
    with_memory = [observation.right for observation in open_ if observation.memory]
    without = [observation.right for observation in open_ if not observation.memory]
    return Tally(len(with_memory), sum(with_memory), len(without), sum(without), len(seen) - len(open_))


def flips(judged: Iterable[Judged]) -> Flips:
    """Questions judged in both arms, or confirmed where the other arm's hidden answer gave other rows."""
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
