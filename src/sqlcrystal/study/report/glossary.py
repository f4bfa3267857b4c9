"""What an arm is, in plain words: one place, so that a name means the same wherever it stands."""

from collections.abc import Callable

from sqlcrystal.ledger.records import Arm
from sqlcrystal.study.report.facts import FACTORS, Facts
from sqlcrystal.study.report.wording import plural

OWN_FORM = "T3-look"
WRITERS = {
    "W0": "card = question and corrected query, verbatim",
    "W1": "card = the whole repair trace",
    "W2": "card = bare diff of the query",
    "W3": "card = diff with its failure mode",
    "W3+A": "card = diff with its failure mode, the corrected query beneath (anchor)",
    "W4": "card = diff with a guard that says when it applies",
    "W5": "card = capsule written by the model",
    "W5-lesson": "card = the capsule's lesson alone, without SQL",
    "W0-values": "card = the values of the corrected query with their columns",
    "W0-joins": "card = the joins of the corrected query",
    "W0-names": "card = the tables and columns of the corrected query",
    "W0-skeleton": "card = the corrected query, names and values masked",
    "W0-question": "card = the question alone",
    "W0-placebo": "card = a made-up question and query of the same length",
}
SOURCES = {
    "T1": "episodes from resampling without feedback",
    "T2": "episodes from retries on one bit",
    "T3": "episodes from repair with the model's own probes, the paper's procedure",
    OWN_FORM: "episodes from repair with probes made for the model, our form of T3 for small models",
    "T4": "episodes from a self-vote",
    "success": "episodes from first-try successes",
    "union": "episodes from repairs and first-try successes",
    "union-look": f"episodes from {OWN_FORM} repairs and first-try successes",
    "explore": "episodes from exploring before the first answer",
}
ADMISSIONS = {
    "oracle": "checked against gold's result before storage",
    "ungated": "stored without a check",
    "engine": "checked by what the database engine shows, without an oracle",
}
RETRIEVERS = {
    "none": "no cards",
    "dense": "cards nearest in meaning, same database",
    "bm25": "cards nearest in words, same database",
    "payload": "cards whose payload matches, too",
    "mmr": "near cards that differ from each other",
    "random": "random cards, same database",
    "foreign": "cards of other databases",
    "schema-similar": "cards of the database with the most similar schema",
}

SOLVERS = {
    "single-shot": "answered in one shot",
    "explore": "explores before it answers",
    "profiled": "sees what the columns hold",
    "fallback": "answers without cards where only the answer with cards shows a sign of trouble",
    "profiled-fallback": "sees what the columns hold, and answers without cards where only that shows no sign",
}


def _bank(value: str) -> str:
    if value == "full":
        return "the full bank"
    if value.endswith("%"):
        return f"{value} of the bank"
    if value.startswith("retire:"):
        return f"bank of {value.removeprefix('retire:')} without the cards that harmed questions of its collection"
    _, arm, draw = value.split(":")
    return f"bank cut to the card counts of {arm}, draw {draw}"


WORDS: dict[str, Callable[[str], str]] = {
    "source": lambda value: SOURCES.get(value, f"episodes from {value}"),
    "admission": lambda value: ADMISSIONS.get(value, f"the check errs in {value.removeprefix('noisy:')} of cases"),
    "writer": lambda value: WRITERS.get(value, f"card = {value}"),
    "retriever": lambda value: RETRIEVERS.get(value, f"cards by {value}"),
    "k": lambda value: f"up to {plural(int(value), 'card')} in the prompt",
    "correspondence": lambda value: (
        "every SQL under another question" if value == "permuted" else "SQL under its own question"
    ),
    "bank": _bank,
    "solver": lambda value: SOLVERS.get(value, value.replace("-", " ")),
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
