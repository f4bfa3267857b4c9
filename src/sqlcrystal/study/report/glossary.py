"""Arms in plain words: one place, so that a name means the same wherever it stands."""

from collections.abc import Callable

from sqlcrystal.acquisition.from_log import FromLog
from sqlcrystal.assembly import REGIMES, RETRIEVERS, SOLVERS, SOURCES, WRITERS
from sqlcrystal.ledger.records import Arm
from sqlcrystal.study.report.facts import FACTORS, Facts
from sqlcrystal.study.report.wording import plural

OWN_FORM = "T3-look"


def _bank(value: str) -> str:
    if value == "full":
        return "the full bank"
    if value.endswith("%"):
        return f"{value} of the bank"
    if value.startswith("retire:"):
        return f"bank of {value.removeprefix('retire:')} without the cards that harmed questions of its collection"
    _, arm, draw = value.split(":")
    return f"bank cut to the card counts of {arm}, draw {draw}"


def _log(value: str) -> str:
    share = value.removeprefix("log").removeprefix(":")
    bad = f", {share} of them wrong or stale" if share else ""
    return f"{FromLog.summary}{bad}" if value.startswith("log") else value


WORDS: dict[str, Callable[[str], str]] = {
    "source": lambda value: f"episodes from {SOURCES[value].summary if value in SOURCES else _log(value)}",
    "admission": lambda value: (
        REGIMES[value].summary if value in REGIMES else f"the check errs in {value.removeprefix('noisy:')} of cases"
    ),
    "writer": lambda value: f"card = {WRITERS[value].summary if value in WRITERS else value}",
    "retriever": lambda value: RETRIEVERS[value].summary if value in RETRIEVERS else f"cards by {value}",
    "k": lambda value: f"up to {plural(int(value), 'card')} in the prompt",
    "correspondence": lambda value: (
        "every SQL under another question" if value == "permuted" else "SQL under its own question"
    ),
    "bank": _bank,
    "solver": lambda value: SOLVERS[value].summary if value in SOLVERS else value.replace("-", " "),
    "passes": lambda value: plural(int(value), "collection pass").replace("passs", "passes"),
}


def described(facts: Facts, arm: Arm) -> str:
    """An arm in words: all of the default's choices, and of another arm what it changes against the default."""
    if arm is facts.default:
        kept = ("source", "admission", "writer", "retriever", "k")
        return "; ".join(WORDS[factor](str(getattr(arm, factor))) for factor in kept)
    if not arm.remembers:
        return "no cards" if arm.solver == facts.default.solver else f"no cards; {WORDS['solver'](arm.solver)}"
    changed = [factor for factor in FACTORS if getattr(arm, factor) != getattr(facts.default, factor)]
    return "; ".join(WORDS[factor](str(getattr(arm, factor))) for factor in changed)


def source_note(facts: Facts) -> str:
    """A sentence where the default's episodes do not come from the paper's own procedure."""
    if facts.default.source != OWN_FORM:
        return ""
    own = next((arm.name for arm in facts.arms.values() if arm.source == "T3"), "")
    beside = f"; the paper's procedure is the arm {own}" if own else ""
    return f"Episodes come from {OWN_FORM}, our form of the paper's T3 for small models{beside}."
