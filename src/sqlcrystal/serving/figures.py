"""The figures of `value` in words, the same on the command line and on the page."""

from msgspec import Struct

from sqlcrystal.measurement.live import Tally, live_lift
from sqlcrystal.serving.value import ArmValue, Value


class ValueFigure(Struct, frozen=True):
    """One thing that is known of a database in service, or that is not known yet."""

    name: str
    figure: str
    words: str


def figures(found: Value) -> tuple[ValueFigure, ...]:
    """Lift, flips, cost and break-even."""
    return (_lift(found), _flips(found), _cost(found), _break_even(found))


def arms(found: Value) -> list[tuple[str, str, str]]:
    """Both arms side by side: what is compared, with memory, without."""
    one, other = found.arms["with_memory"], found.arms["without_memory"]
    return [
        ("right, of verdicts", _percent(found.with_memory), _percent(found.without_memory)),
        ("answers", f"{one.answers:,}", f"{other.answers:,}"),
        ("verdicts", f"{one.verdicts:,}", f"{other.verdicts:,}"),
        ("verdict rate", _percent(one.verdict_rate), _percent(other.verdict_rate)),
        ("tokens an answer", _tokens(one), _tokens(other)),
    ]


def verdict_rates(found: Value) -> str:
    """How much of each arm was judged, and whether the two differ beyond chance: then so may what was judged."""
    one, other = found.arms["with_memory"], found.arms["without_memory"]
    if not one.answers or not other.answers:
        return ""
    rates = f"Verdicts: with cards {_share(one)}, held out {_share(other)}."
    between = live_lift([Tally(one.answers, one.verdicts, other.answers, other.verdicts)])
    if between.low_pp is None:
        return f"{rates} Too few answers to tell whether the two rates differ."
    if not between.excludes_zero:
        return f"{rates} The two rates do not differ beyond chance."
    return f"{rates} The two rates differ beyond chance: one arm is judged more, and the lift may say so."


def _share(arm: ArmValue) -> str:
    return f"{100 * arm.verdicts / arm.answers:.0f} % ({arm.verdicts:,} of {arm.answers:,})"


def _lift(found: Value) -> ValueFigure:
    if found.lift_pp is None or found.lift_ci_pp is None:
        return ValueFigure("Lift", "not known yet", "before five verdicts in each arm there is no interval")
    low, high = found.lift_ci_pp
    unclear = ": not clear yet" if low <= 0 <= high and not found.enough else ""
    return ValueFigure(
        "Lift", f"{found.lift_pp:+.1f} points", f"{low:+.1f} to {high:+.1f}, 95 % at every look{unclear}"
    )


def _flips(found: Value) -> ValueFigure:
    return ValueFigure(
        "Fixed, broke",
        f"{found.fixed}, {found.broke}",
        f"questions; net {found.net:+d}" if found.net else "questions; net 0",
    )


def _cost(found: Value) -> ValueFigure:
    money = f", {found.cost:,.4f} in money" if found.cost else ""
    measuring = f", {found.measuring_tokens:,} more to measure" if found.measuring_tokens else ""
    words = f"{found.tokens:,} for {found.answers:,} answers{money}{measuring}; {found.replayed:.1f} % replayed"
    return ValueFigure("An answer takes", f"{found.tokens_per_answer:,.0f} tokens", words)


def _break_even(found: Value) -> ValueFigure:
    name = "One more right answer takes"
    if found.tokens_per_right_answer is None:
        return ValueFigure(name, "not known yet", "a lift above zero, measured in both arms, would tell")
    if found.lift_ci_pp is None or found.lift_ci_pp[0] <= 0:
        return ValueFigure(name, "not known yet", "not while the interval of the lift holds 0")
    if found.tokens_per_right_answer <= 0:
        return ValueFigure(name, "nothing", f"memory saves {-(found.overhead_tokens or 0):,.0f} tokens an answer")
    money = f"{found.cost_per_right_answer:,.4f} in money: " if found.cost_per_right_answer else ""
    return ValueFigure(name, f"{found.tokens_per_right_answer:,.0f} tokens", f"{money}it pays where one is worth more")


def _percent(number: float | None) -> str:
    return "" if number is None else f"{number:.1f} %"


def _tokens(arm: ArmValue) -> str:
    return "" if arm.tokens_per_answer is None else f"{arm.tokens_per_answer:,.0f}"
