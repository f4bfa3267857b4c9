"""Tables on what was studied: the controlled factors, the arms in words, the conditions, and every run side by side."""

from collections import defaultdict
from collections.abc import Sequence

from sqlcrystal.measurement.comparison import ENOUGH_SEEDS
from sqlcrystal.measurement.cost import first_try, repair_yield
from sqlcrystal.study.report.arm_rows import label, ratio_per_seed
from sqlcrystal.study.report.comparisons import equivalence_margin, headline
from sqlcrystal.study.report.facts import Facts, completeness, percent_right
from sqlcrystal.study.report.table import (
    METHOD_NAMES,
    NONE,
    WORDS,
    Body,
    Cells,
    described,
    listed,
    per_seed,
    percent,
    plural,
    points,
    source_note,
)
from sqlcrystal.study.report.value_tables import split_word

FACTOR_ROWS = {
    "Episode source": ("source", "passes"),
    "Verification": ("admission",),
    "Card format": ("writer",),
    "Retrieval": ("retriever", "k", "bank"),
    "Correspondence": ("correspondence",),
    "Solver": ("solver",),
}
DEFINITIONS = {"Definitions": ("definitions",)}
"""A factor of few studies, told where an arm changes it."""
SETTING_NAMES = {
    "transfer": "held-out transfer",
    "dialogue": "held-out, read after the turns before",
    "repair": "on-demand repair (P_K)",
    "engine-repair": "repair on the engine's signs (P_E)",
    "served": "answered and repaired as the service does",
    "replay": "exact-query replay",
    "retention": "cross-question retention",
    "rerun": "rerun without memory",
    "again": "transfer asked again",
    "cause": "changed answers again, without one card at a time",
    "collection-cause": "the same on the questions of the collection",
    "paraphrase": "a banked question in other words",
    "paraphrase-others": "the same without its own card",
    "paraphrase-none": "the same without memory",
}


def instantiation(facts: Facts) -> Body | None:
    """Every controlled factor: its default, and the arms that change it."""
    changed: defaultdict[str, list[str]] = defaultdict(list)
    for arm in facts.arms.values():
        changed[arm.factor].append(arm.name)
    rows = []
    told = FACTOR_ROWS | (DEFINITIONS if any(arm.definitions for arm in facts.arms.values()) else {})
    for name, factors in told.items():
        default = "; ".join(WORDS[factor](str(getattr(facts.default, factor))) for factor in factors)
        rows.append((name, default, ", ".join(arm for factor in factors for arm in changed[factor]) or NONE))
    settings = dict.fromkeys(row.setting for row in facts.ledger.outcomes)
    measured = [SETTING_NAMES[setting] for setting in SETTING_NAMES if setting in settings]
    rows.append(("Measurement", "held-out transfer and CR", ", ".join(measured) or NONE))
    note = (
        "Solver, model, split, prompt and evaluation stay fixed; each arm changes one decision against the default or"
        f" the arm it builds on. {source_note(facts)}".rstrip()
    )
    return Body(
        columns=("Factor", f"Default ({facts.default.name})", "Arms that change it"), rows=tuple(rows), note=note
    )


def arms(facts: Facts) -> Body | None:
    """Tell what each arm's name stands for, and whether it is recorded."""
    missing = completeness(facts).missing
    seeds: defaultdict[str, set[int]] = defaultdict(set)
    for row in facts.ledger.outcomes:
        seeds[row.arm].add(row.seed)
    rows = []
    for arm in facts.arms.values():
        left = missing.get(arm.name, ())
        status = f"not yet: {', '.join(left)}" if left else "recorded"
        shown = ", ".join(str(seed) for seed in facts.seeds if seed in seeds[arm.name]) or NONE
        rows.append((arm.name, described(facts, arm), shown, status))
    return Body(columns=("Arm", "In words", f"{facts.split.capitalize()}s", "Recorded"), rows=tuple(rows))


def splits_in_words(facts: Facts) -> str:
    """Tell how questions were held out."""
    manifest = facts.manifest
    if manifest.folds:
        return f"{manifest.folds} folds drawn with seed {manifest.fold_seed}: every question is held out once"
    return f"70/30 in every database, seeds {', '.join(map(str, manifest.seeds))}"


def frozen_in_words(facts: Facts) -> str:
    """Tell whether the design was frozen before it was run, and what is not as it was."""
    frozen = facts.manifest.preregistration
    if frozen is None:
        return "not frozen before it was run"
    later = [
        *(f"changed since: {part}" for part in frozen.changed),
        *(f"added later: arm {name}" for name in frozen.added_arms),
        *(f"added later: contrast {name}" for name in frozen.added_contrasts),
    ]
    return f"frozen at {frozen.at} (digest {frozen.digest}); {'; '.join(later) or 'nothing was changed or added since'}"


def conditions(facts: Facts) -> tuple[tuple[str, str], ...]:
    """Tell what everything ran under; what an older ledger did not keep is said to be so."""
    manifest, unknown = facts.manifest, "not kept in this ledger"
    count = completeness(facts)
    margin = f"±{manifest.equivalence_margin:g} pp" if manifest.equivalence_margin else unknown
    if manifest.margin_from_drift:
        margin = f"±{equivalence_margin(facts):.3g} pp, the largest drift between runs of one configuration"
    order = {"rank": "best first", "stable": "by question id, so that prompts share a prefix"}
    return (
        ("study", manifest.study),
        ("study digest", manifest.digest),
        ("sqlcrystal", manifest.version),
        ("benchmark", manifest.benchmark),
        ("databases not there", listed(manifest.missing_databases) or "none"),
        ("model", f"{manifest.model} ({manifest.model_digest})"),
        ("embedder", manifest.embedder),
        ("runtime", listed(facts.runtimes()) or unknown),
        ("splits", splits_in_words(facts)),
        ("design", frozen_in_words(facts)),
        ("default arm", f"{facts.default.name}: {described(facts, facts.default)}"),
        ("source's form", source_note(facts) or f"{facts.default.source}, as in the paper"),
        ("repair budget K", plural(manifest.budget, "round") if manifest.budget else unknown),
        ("longest reply", f"{manifest.max_tokens:,} tokens" if manifest.max_tokens else unknown),
        ("cards in the prompt", order.get(manifest.card_order, manifest.card_order or unknown)),
        ("oracle rule", f"{manifest.check} (starts repair and admits cards)" if manifest.check else unknown),
        ("scoring rule", f"{manifest.rule}; an unevaluable question counts as wrong"),
        (
            "intervals",
            f"{METHOD_NAMES[facts.method]}, databases as clusters, 95%; {METHOD_NAMES[facts.beside]} beside it",
        ),
        ("equivalence margin", margin),
        ("recordings", listed(manifest.recordings) or ("none" if manifest.budget else unknown)),
        ("recorded", count.counted),
        ("started", manifest.started or unknown),
        ("finished", manifest.finished or unknown),
    )


BESIDE = "a second run folder (study report DIR --beside OTHER)"


def cross_sections(runs: Sequence[Facts]) -> Body | None:
    """First attempt, repair rate, replay, transfer and CR of every run; a second benchmark seed by seed as well."""
    rows: list[Cells] = [_cross_section(facts) for facts in runs if facts.headline]
    for facts in runs[1:]:
        if facts.manifest.benchmark != runs[0].manifest.benchmark and facts.headline:
            rows += _seed_by_seed(facts)
    columns = (
        "Model",
        "Benchmark",
        f"{split_word(runs).capitalize()}s",
        "First try %",
        "Repair rate %",
        "Replay ∅→memory %",
        "Δ transfer (pp)",
        "CR %",
    )
    note = f"{_preliminary(runs)} Repair rate: share of first-attempt failures that collection repaired."
    return Body(columns=columns, rows=tuple(rows), note=note)


def _cross_section(facts: Facts) -> Cells:
    lift, ratio = headline(facts), facts.ratio(facts.default)
    again, replay = percent_right(facts.reruns), percent_right(facts.rows(facts.default, "replay"))
    return (
        facts.manifest.model,
        facts.manifest.benchmark,
        _seeds(facts),
        percent(_first_try(facts)),
        percent(repair_yield(facts.rows(facts.default, "collection")).percent),
        f"{percent(again, 0)} → {percent(replay, 0)}",
        points(lift.result.delta_pp, 1) if lift else NONE,
        percent(ratio.ratio.pooled) if ratio else NONE,
    )


def _seeds(facts: Facts) -> str:
    few = len(facts.seeds) < ENOUGH_SEEDS
    return f"{len(facts.seeds)}, preliminary" if few else str(len(facts.seeds))


def _seed_by_seed(facts: Facts) -> list[Cells]:
    """The same figures of one run on each of its seeds; transfer and retention of every writer have their own table."""
    rows: list[Cells] = [(f"{facts.manifest.model} · {facts.manifest.benchmark}, per {facts.split}, each preliminary",)]
    for seed in facts.seeds:
        _, benchmark, _, *figures = _cross_section(facts.on([seed]))
        rows.append((f"{facts.split} {seed}", benchmark, "1, preliminary", *figures))
    return rows


def _first_try(facts: Facts) -> float | None:
    """First-attempt accuracy on the collection questions, else on the held-out ones."""
    collected = facts.rows(facts.default, "collection")
    return first_try(collected).percent if collected else percent_right(facts.rows(facts.bare))


def families(runs: Sequence[Facts]) -> Body | None:
    """The family cross-section in full."""
    if len({(facts.manifest.model, facts.manifest.benchmark) for facts in runs}) < 2:
        return None
    rows = tuple(
        (
            facts.manifest.model,
            facts.manifest.benchmark,
            percent(_first_try(facts)),
            percent(repair_yield(facts.rows(facts.default, "collection")).percent),
            percent(percent_right(facts.rows(facts.bare))),
            percent(percent_right(facts.rows(facts.default))),
            _anchored(facts),
            percent(percent_right(facts.reruns)),
            percent(percent_right(facts.rows(facts.default, "replay"))),
            _seeds(facts),
        )
        for facts in runs
    )
    none, default = (runs[0].bare.name if runs[0].bare else "none"), runs[0].default.name
    columns = (
        *("Model", "Benchmark", "First try %", "Repair rate %", none, default, "W3+A"),
        *("Floor replay %", f"{default} replay %", f"{split_word(runs).capitalize()}s"),
    )
    return Body(columns=columns, rows=rows, note=_preliminary(runs))


def _anchored(facts: Facts) -> str:
    """The anchored writer's accuracy, with its seeds where it has fewer than the run."""
    arm = facts.find(writer="W3+A")
    shown = percent(percent_right(facts.rows(arm)))
    seeds = facts.seeds_of(arm) if arm else facts.seeds
    return shown if len(seeds) == len(facts.seeds) else f"{shown} ({facts.split}s {', '.join(map(str, seeds))} alone)"


def _preliminary(runs: Sequence[Facts]) -> str:
    return f"Fewer than three {split_word(runs)}s is preliminary."


def second_model(runs: Sequence[Facts]) -> Body | None:
    """The other runs' writers, per seed."""
    rows: list[Cells] = []
    for facts in runs[1:]:
        seeds = ", ".join(map(str, facts.seeds))
        rows.append((f"{facts.manifest.model} · {facts.manifest.benchmark} · {facts.split}s {seeds}",))
        arms = [*([facts.bare] if facts.bare else []), *facts.varying("writer")]
        for arm in arms:
            again = [facts.rows(arm, setting) if arm.remembers else facts.reruns for setting in ("replay", "retention")]
            rows.append(
                (
                    label(facts, arm),
                    per_seed(facts.by_seed(facts.rows(arm)).values()),
                    ratio_per_seed(facts, arm),
                    *(per_seed(facts.by_seed(part).values()) if part else NONE for part in again),
                )
            )
    word = split_word(runs[1:])
    columns = ("Writer", *(f"{name} % per {word}" for name in ("EX", "CR", "Replay", "Retention")))
    return Body(
        columns=columns, rows=tuple(rows), note=f"Banked questions of no memory are its reruns. {_preliminary(runs)}"
    )
