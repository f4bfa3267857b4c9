"""The report in words, made from the numbers: what was asked, what was found, how sure; then the rest."""

from msgspec import Struct

from sqlcrystal.measurement.comparison import ENOUGH_SEEDS
from sqlcrystal.study.report.comparisons import (
    DECISIONS,
    MECHANISM,
    NOT_JUDGED,
    NOTHING_BANKED,
    ROSTER,
    UNKNOWN,
    Finding,
    designated,
    findings,
    headline,
    oriented,
)
from sqlcrystal.study.report.facts import Facts, completeness
from sqlcrystal.study.report.summary import Summary
from sqlcrystal.study.report.table import (
    WORDS,
    interval,
    judged,
    kept_ratios,
    listed,
    percent,
    plural,
    points,
    probability,
    source_note,
)
from sqlcrystal.study.report.team_tables import dialogue_sentences, log_sentences
from sqlcrystal.study.report.value_tables import budget_in_words, database_effects


class Sentences(Struct, frozen=True, kw_only=True):
    """The report in words."""

    asked: str
    found: str
    sure: str
    missing: str
    """Databases that were not there and answers that only one side has; empty where nothing is missing."""
    more: tuple[str, ...]
    supported: tuple[str, ...]
    open: tuple[str, ...]
    scope: tuple[str, ...]

    @property
    def opening(self) -> tuple[tuple[str, str], ...]:
        """The three sentences a report begins with, and a fourth where something is missing."""
        lines = (("What was asked", self.asked), ("What was found", self.found), ("How sure", self.sure))
        return (*lines, ("What is missing", self.missing)) if self.missing else lines


def sentences(facts: Facts, summary: Summary) -> Sentences:
    """Say what the numbers say, and no more."""
    own_contrasts = oriented(facts)
    compared = {frozenset((finding.a, finding.b)) for finding in own_contrasts}
    planned = [
        finding
        for finding in findings(facts, (*MECHANISM, *DECISIONS))
        if frozenset((finding.a, finding.b)) not in compared
    ]
    lead = headline(facts)
    first = frozenset((lead.a, lead.b)) if lead else frozenset()
    every = [finding for finding in (*own_contrasts, *planned) if frozenset((finding.a, finding.b)) != first]
    return Sentences(
        asked=_question_sentence(facts, summary),
        found=_result_sentence(summary, facts.split),
        sure=_certainty_sentence(lead, summary),
        missing=_missing_sentence(facts),
        more=tuple(_more(facts, summary)),
        supported=tuple(_supported_sentence(finding) for finding in every if finding.supported),
        open=tuple(_open_sentence(finding) for finding in every if not finding.supported),
        scope=_scope(facts, summary),
    )


def _question_sentence(facts: Facts, summary: Summary) -> str:
    writer = WORDS["writer"](facts.default.writer).removeprefix("card = ")
    databases = plural(summary.n_databases, "database") if summary.n_databases > 1 else "database"
    return (
        f"Does {summary.model}, answering in one shot, get more new questions over the {databases} of"
        f" {summary.benchmark} right when up to {plural(facts.default.k, 'card')} of the same database stand in its"
        f" prompt? A card ({facts.default.writer}) is a {writer}, kept once a check has passed it; the cards of one"
        " database are its bank."
        f" {source_note(facts)}".rstrip()
    )


def _result_sentence(summary: Summary, split: str) -> str:
    if summary.verdict == NOT_JUDGED:
        return f"Nothing: of {plural(summary.n_heldout, 'held-out answer')} none could be compared with gold."
    if summary.p0 is None or summary.pm is None or summary.lift_pp is None:
        return "Nothing yet: answers with memory, without it, or both are not recorded."
    if summary.verdict == NOTHING_BANKED:
        return (
            "There is nothing to compare: no card was banked, so that every answer is the same with memory and without;"
            f" {percent(summary.p0)}% of {plural(summary.n_heldout, 'answer')} are right."
        )
    return (
        f"{percent(summary.p0)}% of the held-out answers are right without memory, {percent(summary.pm)}% with it:"
        f" {points(summary.lift_pp, 1)} points. Of {summary.n_pairs:,} answers (question × {split}) memory fixed"
        f" {summary.fixed} and broke {summary.broke}."
    )


def _missing_sentence(facts: Facts) -> str:
    said, absent = [], facts.manifest.missing_databases
    if absent:
        were = "was" if len(absent) == 1 else "were"
        said.append(f"{plural(len(absent), 'database')} of the benchmark {were} not there: {listed(absent)}.")
    if facts.one_sided and facts.bare:
        seeds = [
            f"{arm.name} {len(facts.rows(arm)):,} ({facts.split}s {', '.join(map(str, facts.seeds_of(arm)))})"
            for arm in (facts.bare, facts.default)
        ]
        said.append(
            f"{plural(facts.one_sided, 'held-out answer')} of one side have no answer of the other and stand outside"
            f" every comparison and share above: answered are {listed(seeds)}."
        )
    return " ".join(said)


def _certainty_sentence(lift: Finding | None, summary: Summary) -> str:
    if lift is None or summary.verdict in (*UNKNOWN, NOTHING_BANKED):
        return f"{_capital(summary.verdict)}."
    result = lift.result
    few = f" Answers of fewer than three {lift.split}s establish nothing." if lift.preliminary else ""
    if result.unevaluable:
        few += f" {plural(result.unevaluable, 'pair')} could not be judged and stand outside the test."
    if result.uneven and result.macro_ci_pp:
        mean = f"{points(result.macro_pp, 1)} points {interval(*result.macro_ci_pp, 1)}"
        few += f" {_capital(result.uneven)}: {mean}."
    if result.p_value is None:
        return f"{_capital(summary.verdict)}: {judged(result).removeprefix('no clustered interval: ')}.{few}"
    ends = (
        f"from {points(result.ci_low_pp, 1)} to {points(result.ci_high_pp, 1)} points (p {probability(result.p_value)})"
    )
    more = (
        f"; such a study finds a true change of {percent(result.detectable_pp, 1)} points four times out of five"
        if result.detectable_pp is not None
        else ""
    )
    return (
        f"{_capital(summary.verdict)}: the 95% interval runs {ends}, taking the {result.n_databases} databases for a"
        f" sample of databases{more}.{few}"
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _more(facts: Facts, summary: Summary) -> list[str]:
    """Repair, replay and retention, and how the databases fared."""
    sentences = [_repair_sentence(facts, summary)] if summary.pk is not None else []
    if summary.pe is not None:
        sentences.append(
            f"Repair without an oracle, on what the database engine shows, reaches {percent(summary.pe)}% (P_E)."
            f"{_against_engine_repair(facts)}"
        )
    if summary.replay is not None:
        without_card = (
            f", {percent(summary.retention)}% when that card is removed" if summary.retention is not None else ""
        )
        bare = f", {percent(summary.rerun_floor)}% without memory" if summary.rerun_floor is not None else ""
        sentences.append(
            f"A banked question asked again is right {percent(summary.replay)}% of the time with its own card"
            f"{without_card}{bare}."
        )
    decided = summary.verdict not in (*UNKNOWN, NOTHING_BANKED)
    effects = [effect for effect, _ in database_effects(facts)] if decided else []
    if len(effects) > 1:
        gained, lost = sum(effect.net > 0 for effect in effects), [effect.name for effect in effects if effect.net < 0]
        down = f"; {listed(lost)} {'lose' if len(lost) > 1 else 'loses'}" if lost else ""
        sentences.append(f"{gained} of {plural(len(effects), 'database')} gain{down}.")
    return [*sentences, *log_sentences(facts), *dialogue_sentences(facts)]


def _repair_sentence(facts: Facts, summary: Summary) -> str:
    """Say how far repair under an oracle gets, and memory's share of that, on held-out and on all questions."""
    ratio, share = facts.ratio(facts.default), ""
    if ratio and summary.cr is not None and summary.verdict != NOTHING_BANKED:
        shape = kept_ratios(ratio.estimates[facts.method])
        share = (
            f" Memory's lift is {percent(summary.cr)}% of what that adds (the crystallization ratio, CR; {shape};"
            f" {budget_in_words(facts)})."
        )
        if summary.cr_all_questions is not None:
            share += (
                f" Over all {plural(summary.n_all_questions or 0, 'question')}, not only the held-out ones, repair"
                f" reaches {percent(summary.pk_all_questions)}%; of that headroom the lift is"
                f" {percent(summary.cr_all_questions)}%."
            )
    return (
        f"Repair on demand, where an oracle says which answers are wrong and nothing is stored, reaches"
        f" {percent(summary.pk)}% (P_K).{share}"
    )


def _against_engine_repair(facts: Facts) -> str:
    """Compare memory with the rival that needs no oracle either, in one sentence; empty where one was not run."""
    versus = facts.against_engine_repair
    if versus is None:
        return ""
    few = f"; preliminary: fewer than three {facts.split}s" if versus.n_seeds < ENOUGH_SEEDS else ""
    return f" Memory in one shot against it (P_M − P_E): {points(versus.delta_pp, 1)} points, {judged(versus)}{few}."


def _title(finding: Finding) -> str:
    return f"{finding.asks} {finding.name}" if finding.asks else finding.name


def _supported_sentence(finding: Finding) -> str:
    higher = "higher" if finding.result.delta_pp > 0 else "lower"
    claim = ROSTER[finding.key].reading if finding.key in ROSTER else ""
    meant = f" In line with the claim that {claim}." if claim and finding.result.delta_pp > 0 else ""
    return (
        f"{_title(finding)}: accuracy is {abs(finding.result.delta_pp):.2f} pp {higher}, {_evidence(finding)}.{meant}"
    )


def _open_sentence(finding: Finding) -> str:
    return f"{_title(finding)}: {points(finding.result.delta_pp)} pp, {_evidence(finding)}; {finding.verdict}."


def _evidence(finding: Finding) -> str:
    if finding.result.p_value is None:
        return finding.role
    holm = (
        f", Holm {probability(finding.family.holm_p)}" if finding.family and finding.family.holm_p is not None else ""
    )
    ends = interval(finding.result.ci_low_pp, finding.result.ci_high_pp)
    return f"95% interval {ends}, p {probability(finding.result.p_value)}{holm} ({finding.role})"


def _scope(facts: Facts, summary: Summary) -> tuple[str, ...]:
    count, family = completeness(facts), [contrast.name for contrast in designated(facts)]
    caveats = []
    if count.interim:
        caveats.append(
            f"Interim: {count.counted}. Readings may change until all are; the family of contrasts does not."
        )
    caveats += [
        f"One model ({summary.model}), one benchmark ({summary.benchmark}), {plural(summary.n_databases, 'database')},"
        f" {plural(len(summary.seeds), facts.split)}; intervals treat databases as the clusters.",
        f"Confirmatory: {listed(family)}. Everything else is exploratory."
        if family
        else "The study file designates no confirmatory contrast: everything here is exploratory.",
        "The ratio is descriptive: it can be negative or exceed 100%, and compares only runs with the same solver,"
        " split and repair budget.",
    ]
    return tuple(caveats)
