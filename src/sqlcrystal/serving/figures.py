"""The figures of `value` in words, the same on the command line and on the page."""

from msgspec import Struct

from sqlcrystal.measurement.live import Tally, live_lift
from sqlcrystal.serving.value import ArmValue, Value


class ValueFigure(Struct, frozen=True):
    """One thing that is known of a database in service, or that is not known yet."""

    name: str
    figure: str
    words: str


def figures(value: Value) -> tuple[ValueFigure, ...]:
    """Lift, flips, cost and break-even."""
    return (_lift(value), _flips(value), _cost(value), _break_even(value))


def arms(value: Value) -> list[tuple[str, str, str]]:
    """Both arms side by side: what is compared, with memory, without."""
    with_memory, without = value.arms["with_memory"], value.arms["without_memory"]
    return [
        ("right, of verdicts", _percent(value.with_memory), _percent(value.without_memory)),
        ("answers", f"{with_memory.answers:,}", f"{without.answers:,}"),
        ("verdicts", f"{with_memory.verdicts:,}", f"{without.verdicts:,}"),
        ("verdict rate", _percent(with_memory.verdict_rate), _percent(without.verdict_rate)),
        ("tokens an answer", _tokens(with_memory), _tokens(without)),
    ]


def verdict_rates(value: Value) -> str:
    """Tell how much of each arm was judged, and whether the two differ beyond chance: then so may what was judged."""
    with_memory, without = value.arms["with_memory"], value.arms["without_memory"]
    if not with_memory.answers or not without.answers:
        return ""
    rates = f"Verdicts: with cards {_share(with_memory)}, held out {_share(without)}."
    between = live_lift([Tally(with_memory.answers, with_memory.verdicts, without.answers, without.verdicts)])
    if between.low_pp is None:
        return f"{rates} Too few answers to tell whether the two rates differ."
    if not between.excludes_zero:
        return f"{rates} The two rates do not differ beyond chance."
    return f"{rates} The two rates differ beyond chance: one arm is judged more, and the lift may say so."


def _share(arm: ArmValue) -> str:
    return f"{100 * arm.verdicts / arm.answers:.0f} % ({arm.verdicts:,} of {arm.answers:,})"


def _lift(value: Value) -> ValueFigure:
    if value.lift_pp is None or value.lift_ci_pp is None:
        return ValueFigure("Lift", "not known yet", "before five verdicts in each arm there is no interval")
    low, high = value.lift_ci_pp
    unclear = ": not clear yet" if low <= 0 <= high and not value.enough else ""
    return ValueFigure(
        "Lift", f"{value.lift_pp:+.1f} points", f"{low:+.1f} to {high:+.1f}, 95 % at every look{unclear}"
    )


def _flips(value: Value) -> ValueFigure:
    return ValueFigure(
        "Fixed, broke",
        f"{value.fixed}, {value.broke}",
        f"questions; net {value.net:+d}" if value.net else "questions; net 0",
    )


def _cost(value: Value) -> ValueFigure:
    money = f", {value.cost:,.4f} in money" if value.cost else ""
    measuring = f", {value.measuring_tokens:,} more to measure" if value.measuring_tokens else ""
    words = f"{value.tokens:,} for {value.answers:,} answers{money}{measuring}; {value.replayed:.1f} % replayed"
    return ValueFigure("An answer takes", f"{value.tokens_per_answer:,.0f} tokens", words)


def _break_even(value: Value) -> ValueFigure:
    name = "One more right answer takes"
    if value.tokens_per_right_answer is None:
        return ValueFigure(name, "not known yet", "a lift above zero, measured in both arms, would tell")
    if value.lift_ci_pp is None or value.lift_ci_pp[0] <= 0:
        return ValueFigure(name, "not known yet", "not while the interval of the lift holds 0")
    if value.tokens_per_right_answer <= 0:
        return ValueFigure(name, "nothing", f"memory saves {-(value.overhead_tokens or 0):,.0f} tokens an answer")
    money = f"{value.cost_per_right_answer:,.4f} in money: " if value.cost_per_right_answer else ""
    return ValueFigure(name, f"{value.tokens_per_right_answer:,.0f} tokens", f"{money}it pays where one is worth more")


def _percent(number: float | None) -> str:
    return "" if number is None else f"{number:.1f} %"


def _tokens(arm: ArmValue) -> str:
    return "" if arm.tokens_per_answer is None else f"{arm.tokens_per_answer:,.0f}"
