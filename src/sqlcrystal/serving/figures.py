"""The figures of `value` in words, the same on the command line and on the page."""

from msgspec import Struct

from sqlcrystal.serving.value import ArmValue, Value

UNKNOWN = "not known yet"


class ValueFigure(Struct, frozen=True):
    """One thing that is known of a database in service, or that is not known yet."""

    name: str
    figure: str
    words: str


def figures(value: Value) -> tuple[ValueFigure, ...]:
    """Lift, its bounds and its audit where there are any, flips, cost and break-even."""
    spent = (_flips(value), _cost(value), _break_even(value))
    return (_lift(value), *_beyond(value), *spent, *_readings(value), *_confidence(value))


def arms(value: Value) -> list[tuple[str, str, str]]:
    """Set both arms side by side: what is compared, with memory, without."""
    with_memory, without = value.arms["with_memory"], value.arms["without_memory"]
    return [
        ("right, of verdicts", _percent(value.with_memory), _percent(value.without_memory)),
        ("answers", f"{with_memory.answers:,}", f"{without.answers:,}"),
        ("verdicts", f"{with_memory.verdicts:,}", f"{without.verdicts:,}"),
        ("verdict rate", _percent(with_memory.verdict_rate), _percent(without.verdict_rate)),
        ("tokens an answer", _tokens(with_memory), _tokens(without)),
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


def _cost(value: Value) -> ValueFigure:
    money = f", {value.cost:,.4f} in money" if value.cost else ""
    measuring = f", {value.measuring_tokens:,} more to measure" if value.measuring_tokens else ""
    words = f"{value.tokens:,} for {value.answers:,} answers{money}{measuring}; {value.replayed:.1f} % replayed"
    return ValueFigure("An answer takes", f"{value.tokens_per_answer:,.0f} tokens", words)


def _break_even(value: Value) -> ValueFigure:
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


def _readings(value: Value) -> tuple[ValueFigure, ...]:
    """Tell how often a person was asked which of two readings they meant, and what they said."""
    given = value.readings
    if given is None or not given.asked:
        return ()
    waiting = given.asked - given.first - given.second - given.neither
    picks = f"the first picked {given.first}, the second {given.second}, neither {given.neither}; {waiting} wait"
    return (ValueFigure("Two readings", f"{given.share:.1f} %", f"of all answers, {given.asked:,}: {picks}"),)


def _confidence(value: Value) -> tuple[ValueFigure, ...]:
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


def _tokens(arm: ArmValue) -> str:
    return "" if arm.tokens_per_answer is None else f"{arm.tokens_per_answer:,.0f}"
