"""What was found and what is not supported, in sentences made from the numbers."""

from msgspec import Struct

from sqlcrystal.measurement.comparison import ENOUGH_SEEDS
from sqlcrystal.study.report.comparisons import DECISIONS, MECHANISM, ROSTER, Finding, contrasts, finding, findings
from sqlcrystal.study.report.facts import Facts
from sqlcrystal.study.report.summary import Summary
from sqlcrystal.study.report.value_tables import database_effects
from sqlcrystal.study.report.wording import interval, listed, percent, plural, points, probability


class Sentences(Struct, frozen=True, kw_only=True):
    """The report in words."""

    found: tuple[str, ...]
    unsupported: tuple[str, ...]
    scope: tuple[str, ...]


def sentences(facts: Facts, summary: Summary) -> Sentences:
    """Say what the numbers say, and no more."""
    known = {(one.a, one.b): one for one in findings(facts, ROSTER)}
    named = [known.get((one.a, one.b), one) for one in contrasts(facts)]
    seen = {(one.a, one.b) for one in named}
    planned = [one for one in findings(facts, (*MECHANISM, *DECISIONS)) if (one.a, one.b) not in seen]
    every = [one for one in (*named, *planned) if one.key != "transfer"]
    supported = [_told(one) for one in every if one.supported and one.found.n_seeds >= ENOUGH_SEEDS]
    open_ones = [_untold(one) for one in every if not one.supported or one.found.n_seeds < ENOUGH_SEEDS]
    return Sentences(
        found=(*_headline(facts, summary), *supported),
        unsupported=tuple(open_ones),
        scope=_scope(facts, summary),
    )


def _headline(facts: Facts, summary: Summary) -> list[str]:
    said = []
    if summary.p0 is not None and summary.pm is not None and summary.lift_pp is not None and summary.lift_ci_pp:
        lift = finding(facts, "transfer")
        told = _effect(lift)
        holm = f", Holm {probability(lift.holm_p)}" if lift and lift.holm_p is not None else ""
        said.append(
            f"On {summary.n_heldout:,} held-out question–seed pairs, memory {told} first-attempt accuracy:"
            f" {percent(summary.p0)}% without, {percent(summary.pm)}% with it, {points(summary.lift_pp)} pp"
            f" {interval(*summary.lift_ci_pp)}, p {probability(summary.lift_p)}{holm}. It fixed {summary.fixed} answers"
            f" and broke {summary.broke}."
        )
    if summary.cr is not None and summary.cr_ci:
        said.append(
            f"On-demand repair reaches {percent(summary.pk)}%. The lift is {percent(summary.cr)}% of that headroom"
            f" (crystallization ratio, 95% interval {interval(*summary.cr_ci, 0)} %)."
        )
    elif summary.pk is not None:
        said.append(
            f"On-demand repair reaches {percent(summary.pk)}%; the crystallization ratio has no defined interval."
        )
    if summary.replay is not None:
        kept = f", and {percent(summary.retention)}% when that card is removed" if summary.retention is not None else ""
        bare = (
            f"; asked again without memory, {percent(summary.rerun_floor)}%" if summary.rerun_floor is not None else ""
        )
        said.append(
            f"A banked question asked again is right {percent(summary.replay)}% of the time with its own card"
            f"{kept}{bare}."
        )
    effects = database_effects(facts)
    if effects:
        gained = sum(effect.net > 0 for effect, _ in effects)
        lost = [effect.name for effect, _ in effects if effect.net < 0]
        said.append(
            f"{gained} of {plural(len(effects), 'database')} gain"
            + (f"; {listed(lost)} lose." if len(lost) > 1 else f"; {lost[0]} loses." if lost else ".")
        )
    return said


def _effect(one: Finding | None) -> str:
    """The verb of the headline, which must not claim what its own contrast does not support."""
    if one is None or not one.supported or one.found.n_seeds < ENOUGH_SEEDS:
        return "is not shown to change"
    return "raises" if one.found.delta_pp > 0 else "lowers"


def _told(one: Finding) -> str:
    higher = "higher" if one.found.delta_pp > 0 else "lower"
    reading = next((plan.reading for plan in ROSTER if plan.key == one.key and plan.reading), "")
    meant = f" This is in line with the claim that {reading}." if reading and one.found.delta_pp > 0 else ""
    return f"{one.name}: accuracy is {abs(one.found.delta_pp):.2f} pp {higher}, {_evidence(one)}.{meant}"


def _untold(one: Finding) -> str:
    why = {
        "not supported after Holm": "the interval excludes zero, but not after Holm's adjustment",
        "interval includes zero": "the interval includes zero",
    }.get(one.verdict, "" if one.supported else one.verdict)
    few = "" if one.found.n_seeds >= ENOUGH_SEEDS else "fewer than three seeds"
    return f"{one.name}: {points(one.found.delta_pp)} pp, {_evidence(one)}; {'; '.join(filter(None, (why, few)))}."


def _evidence(one: Finding) -> str:
    holm = f", Holm {probability(one.holm_p)}" if one.holm_p is not None else ""
    ends = interval(one.found.ci_low_pp, one.found.ci_high_pp)
    return f"95% interval {ends}, p {probability(one.found.p_value)}{holm} ({one.status})"


def _scope(facts: Facts, summary: Summary) -> tuple[str, ...]:
    manifest = facts.manifest
    family = [one.name for one in contrasts(facts) if one.confirmatory]
    said = [
        f"One model ({manifest.model}), one benchmark ({manifest.benchmark}),"
        f" {plural(summary.n_databases, 'database')}, {plural(len(summary.seeds), 'seed')};"
        " intervals treat databases as the clusters.",
        f"Confirmatory, sharing Holm's adjustment: {listed(family)}. Everything else is exploratory."
        if family
        else "The study file designates no confirmatory contrast: everything here is exploratory.",
        "The ratio is descriptive: it can be negative or exceed 100%, and compares only runs with the same solver,"
        " split and repair budget.",
    ]
    if len(summary.seeds) < ENOUGH_SEEDS:
        said.insert(0, "Fewer than three seeds: every figure here is preliminary.")
    return tuple(said)
