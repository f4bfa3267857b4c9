"""The worth of memory in service: the live lift, its cost, the cards that earn it, and its figures in words."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from sqlcrystal.bank import Store, Verdict
from sqlcrystal.bank.records import CardEffect, Traffic
from sqlcrystal.config import Prices
from sqlcrystal.measurement.live import MATTERS_PP, LiveLift, Tally, VerdictSelection, live_lift
from sqlcrystal.serving.lift import (
    AuditedLift,
    Evidence,
    Observation,
    accuracy,
    flips,
    measured,
    observations,
    rounded,
    tallies,
)
from sqlcrystal.serving.refit import TeamConfidence, team_confidence

LOOKS = 60


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
    """The fate of answers that a card stood in, against those without memory; `says` is earns, harms or unclear."""

    card: str
    used: int
    right: int
    wrong: int
    effect_pp: float | None
    effect_ci_pp: tuple[float, float] | None
    says: str


class ReadingsValue(Struct, frozen=True, kw_only=True):
    """The share of answers that were given as two readings, and the ones that people picked."""

    asked: int
    share: float
    """Percent of all answers."""
    first: int
    """Picks of the answer itself."""
    second: int
    """Picks of the other reading: the answer alone would have been wrong."""
    neither: int


class Value(Struct, frozen=True, kw_only=True):
    """One database in service; accuracies in percent, lifts in points."""

    database: str
    answers: int
    verdicts: int
    with_memory: float | None
    without_memory: float | None
    lift_pp: float | None
    """Among the answers that people chose to judge."""
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
    """Where the lift over all drawn answers lies, whatever the verdicts on unjudged ones would be."""
    unjudged: float | None
    """Percent of the drawn answers that nobody judged and that would tell."""
    selection: VerdictSelection
    """Verdict rates that differ beyond chance, by arm or by sign of trouble."""
    audit: AuditedLift | None
    """None where chance chose nothing to be judged."""
    paired_needed: int | None
    """Verdicts it would take in all with both_arms and hold_out = 0.5; None where both arms answer already."""
    warnings: tuple[str, ...]
    """Reasons not to take the lift among judged answers for that of all answers."""
    effect_pp: float
    says: str
    arms: dict[str, ArmValue]
    tokens: int
    tokens_per_answer: float
    cost: float
    measuring_tokens: int
    """Spent on answers that nobody saw, to compare them."""
    overhead_tokens: float | None
    """The tokens that an answer with memory takes more than one without."""
    tokens_per_right_answer: float | None
    cost_per_right_answer: float | None
    """The break-even: memory pays where one more right answer is worth more than this."""
    cards: tuple[CardValue, ...]
    readings: ReadingsValue | None = None
    """The number of answers that were given as two readings."""
    confidence: TeamConfidence | None = None
    """The calibration of the told confidence on the team's own verdicts."""


def values(
    store: Store, *, prices: Prices, database: str | None = None, effect_pp: float | None = None, since: str = ""
) -> list[Value]:
    """Value every database that was asked, or the one named."""
    asked = {arm.database for arm in store.answers.traffic(database=database, since=since)}
    wanted = MATTERS_PP if effect_pp is None else effect_pp
    return [_value(store, name, prices, wanted=wanted, since=since) for name in sorted(asked)]


def _value(store: Store, name: str, prices: Prices, *, wanted: float, since: str) -> Value:
    traffic = store.answers.traffic(database=name, since=since)
    arms = {arm.memory: arm for arm in store.answers.traffic(database=name, since=since, drawn=True)}
    hidden = store.answers.traffic(database=name, since=since, shown=False)
    judged = store.answers.judged(database=name, since=since)
    seen = observations(judged)
    flipped = flips(judged)
    evidence = Evidence.of(
        seen,
        store.answers.drawn(name, since=since),
        observations(verdict for verdict in judged if verdict.audit),
        store.answers.drawn(name, since=since, audit=True),
    )
    answers, tokens = sum(arm.answers for arm in traffic), sum(map(_tokens, traffic))
    return Value(
        database=name,
        answers=answers,
        verdicts=sum(arm.judged for arm in traffic),
        with_memory=accuracy(seen, memory=True),
        fixed=flipped.fixed,
        broke=flipped.broke,
        net=flipped.fixed - flipped.broke,
        replayed=round(100 * sum(arm.replayed for arm in traffic) / answers, 2),
        arms={
            word: _arm(arms.get(memory), prices) for word, memory in (("with_memory", True), ("without_memory", False))
        },
        tokens=tokens,
        tokens_per_answer=round(tokens / answers, 2),
        cost=round(sum(_cost(arm, prices) for arm in traffic), 6),
        measuring_tokens=sum(_tokens(arm) for arm in hidden),
        cards=_cards(store.answers.effects(name), seen),
        readings=_readings(store, name, answers, since),
        confidence=team_confidence(store, name),
        **measured(evidence, wanted),
        **_break_even(_both_arms(arms, hidden), evidence.lift, prices),
    )


def _readings(store: Store, name: str, answers: int, since: str) -> ReadingsValue:
    given = store.answers.with_readings(name, since=since)
    standing = [(record, store.decisions.standing(record.id)) for record in given]
    picked = Counter((said.verdict, said.proposal == record.other) for record, said in standing if said is not None)
    return ReadingsValue(
        asked=len(given),
        share=round(100 * len(given) / answers, 2),
        first=picked[Verdict.CONFIRMED, True] + picked[Verdict.CONFIRMED, False],
        second=picked[Verdict.CORRECTED, True],
        neither=picked[Verdict.CORRECTED, False] + picked[Verdict.REJECTED, False] + picked[Verdict.REJECTED, True],
    )


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
    """Gather all that each arm answered, shown or not."""
    parts: dict[bool, list[Traffic]] = {memory: [arm] for memory, arm in shown.items()}
    for arm in hidden:
        if arm.calls:  # an answer that was not asked for a second time took nothing and tells nothing
            parts.setdefault(arm.memory, []).append(arm)
    return parts


def _break_even(parts: dict[bool, list[Traffic]], lift: LiveLift, prices: Prices) -> dict[str, Any]:
    if set(parts) != {True, False}:
        return dict.fromkeys(("overhead_tokens", "tokens_per_right_answer", "cost_per_right_answer"))

    def mean(memory: bool, total: float) -> float:
        return total / sum(arm.answers for arm in parts[memory])

    tokens = {memory: mean(memory, sum(map(_tokens, arms))) for memory, arms in parts.items()}
    money = {memory: mean(memory, sum(_cost(arm, prices) for arm in arms)) for memory, arms in parts.items()}
    gain = (lift.value_pp or 0) / 100
    return {
        "overhead_tokens": rounded(tokens[True] - tokens[False]),
        "tokens_per_right_answer": rounded((tokens[True] - tokens[False]) / gain) if gain > 0 else None,
        "cost_per_right_answer": round((money[True] - money[False]) / gain, 6) if gain > 0 else None,
    }


# ── which cards ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _cards(effects: Iterable[CardEffect], seen: Sequence[Observation]) -> tuple[CardValue, ...]:
    """Value each card that was judged, the most harmful first, then the most useful."""
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


UNKNOWN = "not known yet"


class ValueFigure(Struct, frozen=True):
    """One thing that is known of a database in service, or that is not known yet."""

    name: str
    figure: str
    words: str


def figures(value: Value) -> tuple[ValueFigure, ...]:
    """Lift, its bounds and its audit where there are any, flips, cost and break-even."""
    spent = (_flips(value), _cost_figure(value), _break_even_figure(value))
    return (_lift(value), *_beyond(value), *spent, *_readings_figure(value), *_confidence_figure(value))


def arms(value: Value) -> list[tuple[str, str, str]]:
    """Set both arms side by side: what is compared, with memory, without."""
    with_memory, without = value.arms["with_memory"], value.arms["without_memory"]
    return [
        ("right, of verdicts", _percent(value.with_memory), _percent(value.without_memory)),
        ("answers", f"{with_memory.answers:,}", f"{without.answers:,}"),
        ("verdicts", f"{with_memory.verdicts:,}", f"{without.verdicts:,}"),
        ("verdict rate", _percent(with_memory.verdict_rate), _percent(without.verdict_rate)),
        ("tokens an answer", _tokens_told(with_memory), _tokens_told(without)),
    ]


def verdict_rates(value: Value) -> str:
    """Tell how much of each arm was judged; rates that differ are a warning, and equal ones prove nothing."""
    with_memory, without = value.arms["with_memory"], value.arms["without_memory"]
    if not with_memory.answers or not without.answers:
        return ""
    rates = f"Verdicts: with cards {_share(with_memory)}, held out {_share(without)}."
    if value.selection.selective or not value.unjudged:
        return rates
    return f"{rates} Even equal rates prove nothing: wrong answers may be judged less often on one side."


def _share(arm: ArmValue) -> str:
    return f"{100 * arm.verdicts / arm.answers:.0f} % ({arm.verdicts:,} of {arm.answers:,})"


def _lift(value: Value) -> ValueFigure:
    if value.lift_pp is None or value.lift_ci_pp is None:
        return ValueFigure("Lift", UNKNOWN, "before five verdicts in each arm there is no interval")
    low, high = value.lift_ci_pp
    unclear = ": not clear yet" if low <= 0 <= high and not value.enough else ""
    whose = "among judged answers, " if value.unjudged else ""
    return ValueFigure(
        "Lift", f"{value.lift_pp:+.1f} points", f"{whose}{low:+.1f} to {high:+.1f} (95 % interval){unclear}"
    )


def _beyond(value: Value) -> tuple[ValueFigure, ...]:
    """Give the two figures that hold whoever judges what."""
    found = []
    if value.worst_case_pp and value.unjudged:
        low, high = value.worst_case_pp
        words = f"at worst, whatever the {value.unjudged:.0f} % that nobody judged would say"
        found.append(ValueFigure("Lift over all answers", f"{low:+.0f} to {high:+.0f} points", words))
    if value.audit:
        audit, ends = value.audit, value.audit.lift_ci_pp
        judged = f"{audit.judged:,} of {audit.drawn:,} that chance chose are judged"
        known = audit.lift_pp is not None and ends is not None
        figure = f"{audit.lift_pp:+.1f} points" if known else UNKNOWN
        words = f"{ends[0]:+.1f} to {ends[1]:+.1f}; {judged}" if ends and known else judged
        found.append(ValueFigure("Audited lift", figure, words))
    return tuple(found)


def _flips(value: Value) -> ValueFigure:
    return ValueFigure(
        "Fixed, broke",
        f"{value.fixed}, {value.broke}",
        f"questions right with memory only, and without it only; net {value.net:+d}"
        if value.net
        else "questions right with memory only, and without it only",
    )


def _cost_figure(value: Value) -> ValueFigure:
    money = f", {value.cost:,.4f} in money" if value.cost else ""
    measuring = f", {value.measuring_tokens:,} more to measure" if value.measuring_tokens else ""
    words = f"{value.tokens:,} for {value.answers:,} answers{money}{measuring}; {value.replayed:.1f} % replayed"
    return ValueFigure("An answer takes", f"{value.tokens_per_answer:,.0f} tokens", words)


def _break_even_figure(value: Value) -> ValueFigure:
    name = "One more right answer takes"
    if value.selection.selective:
        return ValueFigure(name, UNKNOWN, "not while the lift may be the choice of what was judged")
    if value.tokens_per_right_answer is None:
        return ValueFigure(name, UNKNOWN, "a lift above zero, measured in both arms, would tell")
    if value.lift_ci_pp is None or value.lift_ci_pp[0] <= 0:
        return ValueFigure(name, UNKNOWN, "not while the interval of the lift holds 0")
    if value.tokens_per_right_answer <= 0:
        return ValueFigure(name, "nothing", f"memory saves {-(value.overhead_tokens or 0):,.0f} tokens an answer")
    money = f"{value.cost_per_right_answer:,.4f} in money: " if value.cost_per_right_answer else ""
    return ValueFigure(
        name, f"{value.tokens_per_right_answer:,.0f} tokens", f"{money}memory pays where one is worth more"
    )


def _readings_figure(value: Value) -> tuple[ValueFigure, ...]:
    """Tell how often a person was asked which of two readings they meant, and what they said."""
    given = value.readings
    if given is None or not given.asked:
        return ()
    waiting = given.asked - given.first - given.second - given.neither
    picks = f"the first picked {given.first}, the second {given.second}, neither {given.neither}; {waiting} wait"
    return (ValueFigure("Two readings", f"{given.share:.1f} %", f"of all answers, {given.asked:,}: {picks}"),)


def _confidence_figure(value: Value) -> tuple[ValueFigure, ...]:
    """Tell how well the told confidence keeps its word on the team's own verdicts."""
    name, held = "Confidence", value.confidence
    if held is None or not held.verdicts:
        return ()
    if held.brier_shipped is None or held.brier_refitted is None or held.error is None:
        return (ValueFigure(name, "as shipped", f"fitted to your own verdicts after {held.needed} more"),)
    before, after = held.brier_shipped, held.brier_refitted
    how = f"Brier score {after:.3f}, as shipped {before:.3f}, over the later {held.tested} of {held.verdicts} verdicts"
    kept = "" if held.in_use else "; a refit did no better, so the shipped one is kept"
    figure = "refitted" if held.in_use else "as shipped"
    return (ValueFigure(name, figure, f"{how}; off by {100 * held.error:.1f} points on average{kept}"),)


def _percent(number: float | None) -> str:
    return "" if number is None else f"{number:.1f} %"


def _tokens_told(arm: ArmValue) -> str:
    return "" if arm.tokens_per_answer is None else f"{arm.tokens_per_answer:,.0f}"
