"""What a study costs before it is run: calls, tokens and hours, from what one question costs."""

from msgspec import Struct

from sqlcrystal.measurement.power import Forecast


class CallProfile(Struct, frozen=True, kw_only=True):
    """What answering and repairing one question takes, from the paper's account or a pilot's ledger."""

    name: str
    answer_tokens: float
    """Prompt and completion of one attempt without memory."""
    memory_tokens: float
    """What the cards add to it."""
    failing: float
    """Share of first attempts that fail, and so are repaired."""
    repair_calls: float
    """Calls that repairing one failure takes."""
    repair_tokens: float
    seconds_per_call: float | None = None


class StudyEffort(Struct, frozen=True, kw_only=True):
    """Calls and tokens of a whole study.

    Without memory a question's prompts are the same under every seed, so a recording answers them once for collection,
    P_0 and P_K; what memory adds is asked for each seed and arm. `calls_unrecorded` is what it would be without one.
    """

    calls: int
    tokens: int
    calls_unrecorded: int
    hours: float | None
    """None where nobody has measured how long a call takes."""


def effort(forecast: Forecast, profile: CallProfile, *, arms: int = 1, jobs: int = 1) -> StudyEffort:
    """The calls of one collection, P_0 and P_K, and of `arms` memory arms on held-out questions."""
    questions, pairs, design = forecast.n_questions, forecast.n_pairs, forecast.design
    collections = design.folds - 1 if design.folds else design.seeds
    repaired = 1 + profile.failing * profile.repair_calls
    calls = questions * repaired + arms * pairs
    tokens = questions * (profile.answer_tokens + profile.failing * profile.repair_tokens)
    tokens += arms * pairs * (profile.answer_tokens + profile.memory_tokens)
    unrecorded = collections * questions * repaired + (1 + arms) * pairs
    seconds = profile.seconds_per_call
    return StudyEffort(
        calls=round(calls),
        tokens=round(tokens),
        calls_unrecorded=round(unrecorded),
        hours=None if seconds is None else calls * seconds / jobs / 3600,
    )
