"""RQ3 tables: which memory choices matter: format, source, verification, width, bank size, acquisition, admission."""

from collections.abc import Sequence

from sqlcrystal.assembly import log_share
from sqlcrystal.ledger.records import Arm, Outcome
from sqlcrystal.measurement.attribution import same_window
from sqlcrystal.measurement.cost import (
    Detector,
    Share,
    detector,
    headroom_reached,
    later_pass,
    repair_yield,
    vote_precision,
)
from sqlcrystal.measurement.flips import effects, stability
from sqlcrystal.study.report.arm_rows import (
    arm_columns,
    arm_row,
    cards_per_seed,
    effect,
    grouped,
    label,
    ratio_per_seed,
    readings,
    told,
)
from sqlcrystal.study.report.comparisons import (
    DECISIONS,
    ROSTER,
    equivalence_margin,
    finding,
    findings,
    observed_drift,
    resolve,
)
from sqlcrystal.study.report.facts import Facts, percent_right
from sqlcrystal.study.report.table import (
    NONE,
    WORDS,
    Body,
    Cells,
    interval,
    listed,
    number,
    per_seed,
    percent,
    plural,
    points,
    probability,
    source_note,
)
from sqlcrystal.study.report.value_tables import sample

RETRIEVER_METHODS = tuple(plan for plan in ROSTER.values() if plan.factor == "Retriever")
SOURCE_KEYS = ("resample", "one-bit", "self-vote", "papers-T3")
EQUIVALENCE_KEYS = (
    *(key for key in ROSTER if key.startswith("writer-")),
    *SOURCE_KEYS,
    *("origin-0", "origin-1", "bm25", "mmr", "mmr-bm25", "payload", "payload-W3", "payload-W5"),
    *("three-quarter-bank", "half-bank", "quarter-bank"),
)


def rq3(facts: Facts) -> Body | None:
    """The decision comparisons, retrievers included."""
    return readings(facts, (*DECISIONS, ROSTER["writer-W3+A"], *RETRIEVER_METHODS))


def writers(facts: Facts) -> Body | None:
    """The complete writer ladder: transfer, replay, retention."""
    arms = sorted(facts.varying("writer"), key=lambda arm: arm.writer)
    if len(arms) < 2:
        return None
    rows = grouped(facts, arms, _writer_row, beside=(facts.default,))
    columns = ("Writer", "Transfer EX %", "Replay %", "Retention %", f"Δ {facts.default.name} (pp)", "95% CI", "p")
    return Body(columns=columns, rows=rows)


def _writer_row(facts: Facts, arm: Arm) -> Cells:
    versus = facts.compare(facts.default, arm) if arm is not facts.default else None
    settings = (percent(percent_right(facts.rows(arm, setting))) for setting in ("transfer", "replay", "retention"))
    change = points(versus.delta_pp) if versus else NONE
    ends = interval(versus.ci_low_pp, versus.ci_high_pp) if versus else NONE
    return (label(facts, arm), *settings, change, ends, probability(versus.p_value) if versus else NONE)


def equivalence(facts: Facts) -> Body | None:
    """Formats, sources, retrievers and bank sizes against a margin fixed beforehand."""
    compared = findings(facts, [ROSTER[key] for key in EQUIVALENCE_KEYS])
    margin, band = equivalence_margin(facts), observed_drift(facts)
    rows = []
    for comparison in compared:
        tested = facts.equivalence(facts.arms[comparison.a], facts.arms[comparison.b], margin=margin)
        if tested is None:
            continue
        same = ("yes" if tested.equivalent else "no") if tested.p_value is not None else tested.undefined
        same += ", preliminary" if comparison.preliminary else ""
        rows.append(
            (comparison.factor, comparison.name, points(comparison.result.delta_pp), probability(tested.p_value), same)
        )
    drift = (
        f" Reruns of one configuration differed by {band.median_pp:.2f} (median) to {band.max_pp:.2f} pp (maximum)."
        if band
        else " Nothing was run twice, so the margin has no measured drift beside it."
    )
    columns = ("Factor", "Contrast", "Δ (pp)", "p (TOST)", "Equivalent")
    fixed = "the largest of those differences" if facts.manifest.margin_from_drift else "which the study file fixes"
    note = (
        "Two one-sided tests by the larger of the clustered and the question-level error, at"
        f" ±{margin:.3g} pp, {fixed}.{drift}"
    )
    return Body(columns=columns, rows=tuple(rows), note=note)


def sources(facts: Facts) -> Body | None:
    """Sources with banks of equal size, per seed."""
    arms: list[Arm] = []
    tested: list[str] = []
    for plan in (ROSTER[key] for key in SOURCE_KEYS):
        matched, source = resolve(facts, plan)
        arms += [arm for arm in (source, matched) if arm is not None and arm is not facts.default]
        if matched and source:
            tested += _unequal(facts, source, matched)
        if matched and source and (comparison := finding(facts, plan.key)):
            by_seed = effects(facts.pairs(matched, source), lambda pair: str(pair.after.seed))
            alone = "/".join(probability(effect_of_seed.mcnemar_p) for effect_of_seed in by_seed)
            tested.append(f"{comparison.name}: {effect(comparison)}; McNemar p per {facts.split} {alone}.")
    if not arms:
        return None
    rows = grouped(facts, (*arms, facts.default), _source_row, beside=(facts.default,))
    seeds = "/".join(str(seed) for seed in facts.seeds)
    columns = ("Source", f"Cards ({seeds})", f"EX % ({seeds})", f"CR % ({seeds})", f"Replay % ({seeds})")
    return Body(columns=columns, rows=rows, note=" ".join(filter(None, (source_note(facts), *tested))))


def _unequal(facts: Facts, source: Arm, matched: Arm) -> list[str]:
    """A sentence where two banks that were to hold equally many cards do not."""
    counts = [
        [len(facts.bank(arm, seed)) for seed in facts.seeds_of(source) if seed in facts.seeds_of(matched)]
        for arm in (source, matched)
    ]
    if counts[0] == counts[1]:
        return []
    first, second = ("/".join(map(str, count)) for count in counts)
    return [f"The card counts of {source.name} ({first}) and {matched.name} ({second}) are not equal."]


def _source_row(facts: Facts, arm: Arm) -> Cells:
    replay = facts.rows(arm, "replay")
    return (
        label(facts, arm),
        cards_per_seed(facts, arm),
        per_seed(facts.by_seed(facts.rows(arm)).values()),
        ratio_per_seed(facts, arm),
        per_seed(facts.by_seed(replay).values()) if replay else NONE,
    )


def width_by_writer(facts: Facts) -> Body | None:
    """The writer × width grid."""
    arms = facts.varying("writer", "k")
    widths = {
        writer: sorted(arm.k for arm in arms if arm.writer == writer) for writer in sorted({arm.writer for arm in arms})
    }
    grid = {writer: sizes for writer, sizes in widths.items() if len(sizes) > 1}
    by_place = {(arm.writer, arm.k): arm for arm in arms}
    placed = [by_place[writer, k] for writer, sizes in grid.items() for k in sizes]
    rows = grouped(facts, placed, _width_row, beside=(facts.bare, facts.default))
    tested = [comparison for key in ("width", "width-3", "width-5", "wide-full") if (comparison := finding(facts, key))]
    sentences = [f"{comparison.name}: {effect(comparison)} ({comparison.role})." for comparison in tested]
    shared = same_window(facts.pairs(facts.find(k=1), facts.find(k=10)))
    if shared.whole:
        sentences.append(
            f"{shared.part} of {shared.whole} pairs see the same cards at k=1 and k=10:"
            " the bank of their database holds no more."
        )
    return Body(columns=("Writer", "k", *arm_columns(facts)[1:]), rows=rows, note=" ".join(sentences))


def _width_row(facts: Facts, arm: Arm) -> Cells:
    place = (arm.writer, str(arm.k)) if arm.remembers else (arm.name, NONE)
    return *place, *arm_row(facts, arm)[1:]


def bank_fraction(arm: Arm) -> float | None:
    """The share of the bank an arm keeps, in percent; None for banks cut by count."""
    if arm.bank == "full":
        return 100.0
    return float(arm.bank[:-1]) if arm.bank.endswith("%") else None


def bank_by_width(facts: Facts) -> Body | None:
    """The bank size × width grid."""
    grid = {(size, arm.k): arm for arm in facts.varying("bank", "k") if (size := bank_fraction(arm)) is not None}
    sizes = sorted({size for size, _ in grid})
    if len(sizes) < 2:
        return None
    widths = sorted({k for size, k in grid if size < 100})
    placed = [grid[size, k] for size in sizes for k in widths if (size, k) in grid]
    rows = grouped(facts, placed, _bank_row, beside=(facts.bare, facts.default))
    seeds = "/".join(str(seed) for seed in facts.seeds)
    keys = ("three-quarter-bank", "half-bank", "quarter-bank", "wide-full")
    tested = [comparison for key in keys if (comparison := finding(facts, key))]
    pooled = [
        f"{comparison.name}: {points(comparison.result.delta_pp)},"
        f" McNemar p {probability(comparison.result.mcnemar_p)}{' (preliminary)' if comparison.preliminary else ''}."
        for comparison in tested
    ]
    columns = ("Bank", f"Cards ({seeds})", "k", *arm_columns(facts)[1:])
    return Body(columns=columns, rows=rows, note=" ".join(["Smaller banks are nested in larger ones.", *pooled]))


def _bank_row(facts: Facts, arm: Arm) -> Cells:
    size = f"{bank_fraction(arm):g}%" if arm.remembers else arm.name
    cards, k = (cards_per_seed(facts, arm), str(arm.k)) if arm.remembers else (NONE, NONE)
    return size, cards, k, *arm_row(facts, arm)[1:]


def _run_splits(facts: Facts, arm: Arm | None) -> str:
    """Name the splits that a figure per split is about, where the arm was not run under all of them."""
    run = facts.seeds_of(arm) if arm else ()
    return facts.split if run == facts.seeds else f"{facts.split} ({listed(map(str, run))} alone)"


def origin(facts: Facts) -> Body | None:
    """Tell where episodes come from: successes, repairs, their union."""
    success, union = facts.find(source="success"), facts.find(source=("union", "union-look"))
    present = [arm for arm in (success, facts.default, union) if arm]
    if len(present) < 2 or facts.bare is None:
        return None
    rows = grouped(facts, (facts.bare, *present), arm_row, beside=(facts.bare, facts.default))
    pairs = facts.pairs(success, facts.default)
    ours = effects(pairs, lambda pair: str(pair.after.seed))
    versus = effects(pairs, lambda _: "all")
    note = ""
    if versus:
        only, other = "/".join(str(seed.fixed) for seed in ours), "/".join(str(seed.broke) for seed in ours)
        stable = stability(pairs)
        unique = len(stable.stable_fixes) + len(stable.stable_breaks)
        note = (
            f"Per {_run_splits(facts, success)}, right only with {facts.default.name}: {only};"
            f" only with first-try successes: {other};"
            f" {plural(unique, 'question')} stably right on one side only;"
            f" pooled McNemar p {probability(versus[0].mcnemar_p)}."
        )
    return Body(columns=arm_columns(facts, "Bank"), rows=rows, note=note)


def matched_admission(facts: Facts) -> Body | None:
    """Origin at matched counts, and the verification boundary."""
    full = facts.find(source="success")
    draws = [arm for key in ("origin-0", "origin-1") if (arm := resolve(facts, ROSTER[key])[0])]
    gates = {key: resolve(facts, ROSTER[key]) for key in ("verification", "storage", "storage-matched", "engine-gate")}
    checks: dict[str, Arm] = {}
    for unchecked, checked in gates.values():
        if unchecked:
            checks |= {arm.name: arm for arm in (unchecked, checked) if arm}
    noisy = [arm for arm in facts.varying("admission") if arm.admission.startswith("noisy")]
    groups = {
        "Matched-count episode source": [*([full] if full else []), *draws, facts.default] if draws else [],
        "Verified and unverified storage": list(checks.values()),
        "A check that errs": noisy,
    }
    if facts.bare is None or not any(groups.values()):
        return None
    rows: list[Cells] = [_admission_row(facts, facts.bare)]
    for heading, arms in groups.items():
        baseline = (facts.bare, facts.default)
        rows += [(heading,), *grouped(facts, arms, _admission_row, beside=baseline)] if arms else []
    tested = [comparison for key in ("origin-0", "origin-1", *gates) if (comparison := finding(facts, key))]
    note = " ".join(f"{comparison.name}: {effect(comparison)}." for comparison in tested)
    name, *columns = arm_columns(facts, "Configuration")
    seeds = "/".join(str(seed) for seed in facts.seeds)
    return Body(columns=(name, f"Cards ({seeds})", "Right cards %", *columns), rows=tuple(rows), note=note)


def _admission_row(facts: Facts, arm: Arm) -> Cells:
    """An arm with its bank: how many cards, and how many of them the audit finds right."""
    cards = facts.cards(arm) if arm.remembers else []
    name, *figures = arm_row(facts, arm)
    audited = Share(sum(card.right for card in cards), len(cards))
    return name, cards_per_seed(facts, arm) if cards else NONE, percent(audited.percent), *figures


# ── what the solver sees ─────────────────────────────────────────────────────────────────────────────────────────────

REPAIRED = "engine-repair"


def solvers(facts: Facts) -> Body | None:
    """Tabulate every solver without memory and with the default's cards: accuracy, lifts, repair on signs, calls."""
    arms = [arm for arm in facts.arms.values() if not arm.remembers and facts.rows(arm)]
    arms += [arm for arm in facts.varying("solver") if arm not in arms]
    if facts.bare is None or len({arm.solver for arm in arms}) < 2:
        return None
    columns = (
        *("Arm", "In words", "EX %", "Δ none (pp)", "Fixed/broke"),
        *("Δ without its cards (pp)", "After repair on signs, %", "Calls", "Prompt tokens"),
    )
    note = (
        f"{sample(facts)} Without its cards: against the same solver without memory. Calls and prompt tokens are means"
        " over questions, before any repair."
    )
    return Body(columns=columns, rows=grouped(facts, arms, _row, beside=(facts.bare, facts.default)), note=note)


def _row(facts: Facts, arm: Arm) -> tuple[str, ...]:
    rows = facts.rows(arm)
    lift = facts.compare(facts.bare, arm) if arm is not facts.bare else None
    unaided = facts.bare_with(arm.solver.removesuffix("-fallback").replace("fallback", "single-shot"))
    by_cards = facts.compare(unaided, arm) if arm.remembers else None
    return (
        label(facts, arm),
        WORDS["solver"](arm.solver) + ("" if arm.remembers else ", without cards"),
        percent(percent_right(rows)),
        told(lift),
        f"{lift.fixed}/{lift.broke}" if lift else NONE,
        told(by_cards),
        percent(percent_right(facts.rows(arm, REPAIRED))),
        f"{sum(row.calls for row in rows) / len(rows):.2f}",
        f"{sum(row.prompt_tokens for row in rows) / len(rows):,.0f}",
    )


def share_cell(share: Share) -> str:
    """A share with its counts."""
    return f"{percent(share.percent)} ({share.part} of {share.whole})" if share.whole else NONE


def _collections(facts: Facts, **wanted: str) -> list[tuple[Arm, tuple[Outcome, ...]]]:
    """The arms with these factors that collect, each with the outcomes of its collection."""
    fitting = [arm for arm in facts.arms.values() if all(getattr(arm, key) == value for key, value in wanted.items())]
    return [(arm, rows) for arm in fitting if arm.remembers and (rows := facts.rows(arm, "collection"))]


def votes(facts: Facts) -> Body | None:
    """Tell how often the candidate that a vote elects is right, and how right a bank is that stores it unchecked."""
    rows = grouped(facts, [arm for arm, _ in _collections(facts, source="T4")], _vote_row)
    columns = ("Arm", *(f"s{seed}" for seed in facts.seeds), "Elected candidates right %", "Cards in the bank right %")
    note = "Each round of the self-vote elects one candidate; under a check the rounds go on until one is right."
    return Body(columns=columns, rows=rows, note=note)


def _vote_row(facts: Facts, arm: Arm) -> Cells:
    collected, cards = facts.rows(arm, "collection"), facts.cards(arm)
    seeds = (percent(vote_precision(part).percent) for part in _by_seed(facts, collected))
    audited = Share(sum(card.right for card in cards), len(cards))
    return (label(facts, arm), *seeds, share_cell(vote_precision(collected)), share_cell(audited))


def _by_seed(facts: Facts, rows: tuple[Outcome, ...]) -> list[list[Outcome]]:
    return [[row for row in rows if row.seed == seed] for seed in facts.seeds]


def exploration(facts: Facts) -> Body | None:
    """Show how much of the repair headroom exploring first reaches, on collection and held-out questions."""
    repaired = facts.rows(facts.default, "collection")
    rows: list[Cells] = []
    for arm, exploring in _collections(facts, source="explore"):
        if repaired:
            seeds = zip(_by_seed(facts, exploring), _by_seed(facts, repaired), strict=True)
            shares = (percent(headroom_reached(part, base).percent, 0) for part, base in seeds)
            rows.append(
                (f"{arm.name}, collection questions", *shares, share_cell(headroom_reached(exploring, repaired)))
            )
    first = facts.bare_with("explore")
    ratio = facts.ratio(first)
    if first and ratio:
        by_seed = dict(zip(ratio.counts, ratio.ratio.per_seed, strict=True))
        seeds_shown = (percent(by_seed.get(seed), 0) for seed in facts.seeds)
        rows.append((f"{first.name}, held-out questions", *seeds_shown, percent(ratio.ratio.pooled)))
    columns = (
        "Exploring before the first answer",
        *(f"s{seed}" for seed in facts.seeds),
        "Share of the repair headroom %",
    )
    return Body(
        columns=columns, rows=tuple(rows), note="Repair knows that its first attempt was wrong; exploration does not."
    )


def logs(facts: Facts) -> Body | None:
    """Count the queries of a log that became cards, the right ones among these, and the arm's answers."""
    rows = [
        _log_row(facts, arm, collected) for arm, collected in _collections(facts) if log_share(arm.source) is not None
    ]
    columns = (
        "Arm",
        "Queries in the log",
        "Right ones %",
        "Became cards %",
        "Cards right %",
        "Calls per query",
        "Transfer %",
    )
    note = (
        "Right: the query answers the question that was hidden, by gold. A query that is wrong for it may be right for"
        " the question that the model wrote, so that this is a strict reading. Contrasts say what the cards lift."
    )
    return Body(columns=columns, rows=tuple(rows), note=note) if rows else None


def _log_row(facts: Facts, arm: Arm, collected: Sequence[Outcome]) -> Cells:
    cards = facts.cards(arm)
    right = Share(sum(row.first_right for row in collected), len(collected))
    audited = Share(sum(card.right for card in cards), len(cards))
    calls = number(sum(row.calls for row in collected) / len(collected), 2)
    shares = map(share_cell, (right, Share(len(cards), len(collected)), audited))
    return (
        label(facts, arm),
        number(len(collected)),
        *shares,
        calls,
        percent(percent_right(facts.rows(arm, "transfer"))),
    )


def second_pass(facts: Facts) -> Body | None:
    """Tell what a second collection pass adds."""
    first = facts.rows(facts.default, "collection")
    arm = facts.planned(passes=2)
    again = later_pass(facts.rows(arm, "collection"), first)
    if arm is None or not first or not again:
        return None
    rows: list[Cells] = []
    for name, part in (
        ("first pass", list(first)),
        ("second pass", [row for row in again if isinstance(row, Outcome)]),
    ):
        seeds = (percent(repair_yield([row for row in part if row.seed == seed]).percent) for seed in facts.seeds)
        rows.append((name, *seeds, share_cell(repair_yield(part))))
    moved = finding(facts, "second-pass")
    note = f"Transfer, {moved.name}: {effect(moved)}." if moved else ""
    columns = ("Pass", *(f"s{seed}" for seed in facts.seeds), "Failures that were repaired %")
    return Body(columns=columns, rows=tuple(rows), note=note)


def engine(facts: Facts) -> Body | None:
    """Trigger and gate without an oracle, as detectors."""
    passes: dict[str, tuple[tuple[Outcome, ...], tuple[Outcome, ...]]] = {}
    for arm in facts.arms.values():
        if rows := facts.rows(arm, "engine-repair"):
            passes[f"{label(facts, arm)}, held-out repair"] = rows, facts.rows(arm, "repair")
    for arm, rows in _collections(facts, admission="engine"):
        passes[f"{arm.name}, collection"] = rows, facts.rows(facts.default, "collection")
    detectors = {name: watched for name, both in passes.items() if (watched := detector(*both))}
    oracle = percent(percent_right(facts.repairs))
    columns = (
        "Where",
        "n",
        "Trigger: wrong answers caught %",
        "False alarms %",
        "Precision %",
        "Gate: candidates accepted %",
        "Accepted ones right %",
        "Of an oracle's repairs %",
        "Broken",
        "First attempt %",
        "Reached %",
        "Calls per question",
    )
    note = (
        "The trigger is a sign that the engine gives of a wrong answer (an error, no rows, …), the gate that the sign"
        " is gone; neither sees gold. False alarms: right answers that it rang for."
        " Of an oracle's repairs: those that were accepted without one, too."
        + (f" With the oracle for both, repair reaches P_K = {oracle}%." if facts.repairs else "")
    )
    return Body(
        columns=columns, rows=tuple(_detector_row(name, watched) for name, watched in detectors.items()), note=note
    )


def _detector_row(name: str, watched: Detector) -> Cells:
    trigger = watched.sensitivity, watched.false_alarms, watched.precision
    gate = watched.accepted, watched.accepted_right, watched.shared
    reached = percent(watched.first.percent), percent(watched.reached.percent), number(watched.calls, 2)
    return name, number(watched.n), *map(share_cell, (*trigger, *gate)), str(watched.broken), *reached
