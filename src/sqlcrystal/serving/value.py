"""The worth of memory in service: the live lift, its cost, the cards that earn it, and whether that is known yet."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec import Struct

from sqlcrystal.bank import Store
from sqlcrystal.bank.forgetting import FORGOTTEN
from sqlcrystal.bank.records import CardEffect, Judged, Traffic
from sqlcrystal.config import Prices
from sqlcrystal.measurement.live import (
    MATTERS_PP,
    USUAL_SETTLED,
    Asked,
    LiveLift,
    Tally,
    WorstCase,
    live_lift,
    paired_verdicts_needed,
    verdicts_needed,
    worst_case,
)

USUAL_FLOOR = 0.6
"""Right without memory, where no verdict says so yet."""
SMALLEST_EFFECT_PP = 0.5
LOOKS = 60


class Observation(Struct, frozen=True, kw_only=True):
    """A question on one day in the arm that chance gave it; `right` is the share of its verdicts that confirmed."""

    memory: bool
    share: float
    right: float
    settled: bool | None


class ArmValue(Struct, frozen=True, kw_only=True):
    """One arm among the answers that chance gave it: how much was asked and judged, and what an answer took."""

    answers: int = 0
    verdicts: int = 0
    verdict_rate: float | None = None
    """Percent of its answers that got a verdict; where the arms differ, so may the answers that were judged."""
    replayed: int = 0
    tokens_per_answer: float | None = None
    cost_per_answer: float | None = None


class CardValue(Struct, frozen=True, kw_only=True):
    """How the answers fared that a card stood in, against answers without memory; `says` is earns, harms or unclear."""

    card: str
    used: int
    right: int
    wrong: int
    effect_pp: float | None
    effect_ci_pp: tuple[float, float] | None
    says: str


class Value(Struct, frozen=True, kw_only=True):
    """One database in service; accuracies in percent, lifts in points."""

    database: str
    answers: int
    verdicts: int
    with_memory: float | None
    without_memory: float | None
    lift_pp: float | None
    lift_ci_pp: tuple[float, float] | None
    fixed: int
    broke: int
    net: int
    """Fixed less broke."""
    replayed: float
    """Percent of all answers that were served without a model call."""
    enough: bool
    needed: int | None
    """Verdicts still missing before `effect_pp` would be told from none; None where no number would do."""
    worst_case_pp: tuple[float, float] | None
    """Where the lift over all drawn answers lies, whatever the verdicts on unjudged ones would be.

    None where one share after the other was held out: the unjudged answers are not kept apart by share.
    """
    paired_needed: int | None
    """Verdicts it would take in all with both_arms and hold_out = 0.5; None where both arms answer already."""
    audit_lift_pp: float | None
    """The lift among answers that chance chose to be judged, which nobody's choice of what to judge can move."""
    audit_ci_pp: tuple[float, float] | None
    effect_pp: float
    says: str
    arms: dict[str, ArmValue]
    tokens: int
    tokens_per_answer: float
    cost: float
    measuring_tokens: int
    """Spent on answers that nobody saw, to compare them."""
    overhead_tokens: float | None
    """What an answer with memory takes more than one without."""
    tokens_per_right_answer: float | None
    cost_per_right_answer: float | None
    """The break-even: memory pays where one more right answer is worth more than this."""
    cards: tuple[CardValue, ...]


def values(
    store: Store,
    *,
    prices: Prices,
    database: str | None = None,
    effect_pp: float | None = None,
    since: str = "",
    audited: Callable[[Judged], bool] | None = None,
) -> list[Value]:
    """Every database that was asked, or the one named; `audited` tells the answers that had to be judged."""
    asked = {arm.database for arm in store.answers.traffic(database=database, since=since)}
    wanted = MATTERS_PP if effect_pp is None else effect_pp
    return [_value(store, name, prices, wanted=wanted, since=since, audited=audited) for name in sorted(asked)]


def _value(
    store: Store, name: str, prices: Prices, *, wanted: float, since: str, audited: Callable[[Judged], bool] | None
) -> Value:
    traffic = store.answers.traffic(database=name, since=since)
    arms = {arm.memory: arm for arm in store.answers.traffic(database=name, since=since, drawn=True)}
    hidden = store.answers.traffic(database=name, since=since, shown=False)
    judged = store.answers.judged(database=name, since=since)
    seen = observations(judged)
    lift = live_lift(tallies(seen))
    without = _accuracy(seen, memory=False)
    missing, effect = _missing(seen, without, wanted)
    paired = _paired(seen, without, effect)
    audit = live_lift(tallies(observations(filter(audited, judged)))) if audited else None
    enough = _enough(lift, wanted)
    flipped = flips(judged)
    answers, tokens = sum(arm.answers for arm in traffic), sum(map(_tokens, traffic))
    return Value(
        database=name,
        answers=answers,
        verdicts=sum(arm.judged for arm in traffic),
        with_memory=_accuracy(seen, memory=True),
        without_memory=without,
        lift_pp=_rounded(lift.value_pp),
        lift_ci_pp=_ends(lift),
        fixed=flipped.fixed,
        broke=flipped.broke,
        net=flipped.fixed - flipped.broke,
        replayed=round(100 * sum(arm.replayed for arm in traffic) / answers, 2),
        enough=enough,
        needed=0 if enough else missing,
        worst_case_pp=_ends(_worst(tallies(seen), arms)),
        paired_needed=None if enough else paired,
        audit_lift_pp=_rounded(audit.value_pp) if audit else None,
        audit_ci_pp=_ends(audit),
        effect_pp=effect,
        says=_words(lift, arms, enough=enough, missing=missing, paired=paired, effect_pp=effect),
        arms={
            word: _arm(arms.get(memory), prices) for word, memory in (("with_memory", True), ("without_memory", False))
        },
        tokens=tokens,
        tokens_per_answer=round(tokens / answers, 2),
        cost=round(sum(_cost(arm, prices) for arm in traffic), 6),
        measuring_tokens=sum(_tokens(arm) for arm in hidden),
        cards=_cards(store.answers.effects(name), seen),
        **_break_even(_both_arms(arms, hidden), lift, prices),
    )


def _accuracy(seen: Sequence[Observation], *, memory: bool) -> float | None:
    rights = [observation.right for observation in seen if observation.memory is memory]
    return round(100 * sum(rights) / len(rights), 2) if rights else None


def _enough(lift: LiveLift, effect_pp: float) -> bool:
    """Tell whether the question is answered: memory helps, or harms, or does neither by as much as matters."""
    if lift.low_pp is None or lift.high_pp is None:
        return False
    return lift.excludes_zero or (lift.low_pp > -effect_pp and lift.high_pp < effect_pp)


def _missing(seen: Sequence[Observation], without: float | None, effect_pp: float) -> tuple[int | None, float]:
    """How many more verdicts it takes, and for which lift: a smaller one where those for the first are already in."""
    if not seen:
        return None, effect_pp
    floor = _floor(without)
    settled = sum(observation.settled is True for observation in seen) / len(seen)
    effect = effect_pp
    while effect >= SMALLEST_EFFECT_PP:
        needed = verdicts_needed(floor=floor, share=seen[-1].share, effect_pp=effect, settled=min(settled, 0.99))
        if needed is None or needed > len(seen):
            return (None if needed is None else needed - len(seen)), effect
        effect /= 2
    return None, effect


def _paired(seen: Sequence[Observation], without: float | None, effect_pp: float) -> int | None:
    """Tell how many verdicts both arms would take; None where they answer already."""
    if not seen or seen[-1].settled is not None:
        return None
    return paired_verdicts_needed(floor=_floor(without), settled=USUAL_SETTLED, effect_pp=effect_pp)


def _floor(without: float | None) -> float:
    return USUAL_FLOOR if without is None else min(0.95, max(0.05, without / 100))


def _worst(counted: Sequence[Tally], arms: dict[bool, Traffic]) -> WorstCase | None:
    if len(counted) != 1 or set(arms) != {True, False}:
        return None
    [tally], unjudged = counted, {memory: arm.answers - arm.judged for memory, arm in arms.items()}
    asked = Asked(tally.with_memory + unjudged[True], tally.without + unjudged[False], tally.settled)
    return worst_case([(tally, asked)])


def _ends(interval: LiveLift | WorstCase | None) -> tuple[float, float] | None:
    if interval is None or interval.low_pp is None or interval.high_pp is None:
        return None
    return round(interval.low_pp, 2), round(interval.high_pp, 2)


def _words(
    lift: LiveLift,
    arms: dict[bool, Traffic],
    *,
    enough: bool,
    missing: int | None,
    paired: int | None,
    effect_pp: float,
) -> str:
    if not arms:
        return "Nothing is compared yet: the page Value switches that on, or hold_out in sqlcrystal.toml."
    count = lift.n_with + lift.n_without + lift.n_settled + lift.left_out
    if not enough and missing is None:
        return f"Not enough verdicts yet ({count}), and no number of them would tell a lift of {effect_pp:g} points."
    if not enough:
        return (
            f"Not enough verdicts yet: {count} so far; about {missing:,} more would tell a lift of {effect_pp:g} points"
            " from none, four times out of five."
            + (f" With both_arms = true and hold_out = 0.5 about {paired:,} would do, in all." if paired else "")
        )
    ends = f"{lift.value_pp:+.1f} points, between {lift.low_pp:+.1f} and {lift.high_pp:+.1f}"
    if not lift.excludes_zero:
        return f"Memory makes no difference that matters: {ends}."
    return f"Memory {'helps' if (lift.value_pp or 0) > 0 else 'harms'}: {ends}."


# ── what it costs ────────────────────────────────────────────────────────────────────────────────────────────────────


def _tokens(arm: Traffic) -> int:
    return arm.prompt_tokens + arm.completion_tokens


def _cost(arm: Traffic, prices: Prices) -> float:
    return (arm.prompt_tokens * prices.prompt + arm.completion_tokens * prices.completion) / 1e6


def _arm(arm: Traffic | None, prices: Prices) -> ArmValue:
    if arm is None:
        return ArmValue()
    return ArmValue(
        answers=arm.answers,
        verdicts=arm.judged,
        verdict_rate=round(100 * arm.judged / arm.answers, 2),
        replayed=arm.replayed,
        tokens_per_answer=round(_tokens(arm) / arm.answers, 2),
        cost_per_answer=round(_cost(arm, prices) / arm.answers, 8),
    )


def _both_arms(shown: dict[bool, Traffic], hidden: Iterable[Traffic]) -> dict[bool, list[Traffic]]:
    """All that each arm answered, shown or not."""
    parts: dict[bool, list[Traffic]] = {memory: [arm] for memory, arm in shown.items()}
    for arm in hidden:
        if arm.calls:  # an answer that was not asked for a second time took nothing and tells nothing
            parts.setdefault(arm.memory, []).append(arm)
    return parts


def _break_even(parts: dict[bool, list[Traffic]], lift: LiveLift, prices: Prices) -> dict[str, float | None]:
    if set(parts) != {True, False}:
        return dict.fromkeys(("overhead_tokens", "tokens_per_right_answer", "cost_per_right_answer"))

    def mean(memory: bool, total: float) -> float:
        return total / sum(arm.answers for arm in parts[memory])

    tokens = {memory: mean(memory, sum(map(_tokens, arms))) for memory, arms in parts.items()}
    money = {memory: mean(memory, sum(_cost(arm, prices) for arm in arms)) for memory, arms in parts.items()}
    gain = (lift.value_pp or 0) / 100
    return {
        "overhead_tokens": _rounded(tokens[True] - tokens[False]),
        "tokens_per_right_answer": _rounded((tokens[True] - tokens[False]) / gain) if gain > 0 else None,
        "cost_per_right_answer": round((money[True] - money[False]) / gain, 6) if gain > 0 else None,
    }


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 2)


# ── which cards ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _cards(effects: Iterable[CardEffect], seen: Sequence[Observation]) -> tuple[CardValue, ...]:
    """Each card that was judged, the most harmful first, then the most useful."""
    without = [observation.right for observation in seen if not observation.memory]
    effects_of_cards = [_card(effect, sum(without), len(without)) for effect in effects]
    order = {"harms": 0, "earns": 1, "unclear": 2}
    return tuple(sorted(effects_of_cards, key=lambda card: (order[card.says], -card.used, card.card)))


def _card(effect: CardEffect, right_without: float, without: int) -> CardValue:
    counts: dict[str, Any] = {"card": effect.card, "used": effect.used, "right": effect.right, "wrong": effect.wrong}
    tally = Tally(effect.used, effect.right, without, right_without)
    lift = live_lift([tally])
    if lift.value_pp is None or lift.low_pp is None or lift.high_pp is None:
        return CardValue(**counts, effect_pp=None, effect_ci_pp=None, says="unclear")
    says = "earns" if lift.low_pp > 0 else "harms" if lift.high_pp < 0 else "unclear"
    ends = (round(lift.low_pp, 2), round(lift.high_pp, 2))
    return CardValue(**counts, effect_pp=round(lift.value_pp, 2), effect_ci_pp=ends, says=says)


# ── the lift over time ───────────────────────────────────────────────────────────────────────────────────────────────


class Look(Struct, frozen=True, kw_only=True):
    """The lift in points after so many verdicts."""

    verdicts: int
    at: str
    lift_pp: float
    low_pp: float
    high_pp: float


def trend(store: Store, database: str) -> list[Look]:
    """Look at the live lift as it stood after so many verdicts.

    At most sixty looks, evenly spaced over the verdicts; none before both arms have enough for an interval.
    """
    judged = [verdict for verdict in store.answers.judged(database=database) if verdict.share > 0]
    every = max(1, -(-len(judged) // LOOKS))
    looks = []
    for count in sorted({*range(every, len(judged) + 1, every), len(judged)} - {0}):
        lift = live_lift(tallies(observations(judged[:count])))
        if lift.value_pp is not None and lift.low_pp is not None and lift.high_pp is not None:
            at = judged[count - 1].at
            looks.append(Look(verdicts=count, at=at, lift_pp=lift.value_pp, low_pp=lift.low_pp, high_pp=lift.high_pp))
    return looks


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
