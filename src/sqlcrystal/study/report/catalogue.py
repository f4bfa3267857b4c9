"""Every table of a report, in the order a reader meets them: one specification each."""

from sqlcrystal.measurement.cost import Workload
from sqlcrystal.study.report import (
    arm_rows,
    audit_tables,
    cost_tables,
    decision_tables,
    design_tables,
    mechanism_tables,
    team_tables,
    value_tables,
)
from sqlcrystal.study.report.table import TableSpec

NO_MEMORY = value_tables.NO_MEMORY
BESIDE = design_tables.BESIDE
COLLECTED = "the collection of an arm with source {}"


def sections(workload: Workload) -> dict[str, tuple[TableSpec, ...]]:
    """The tables by section."""
    return {
        "What future value does the bank provide?": VALUE,
        "What information carries transfer?": MECHANISM,
        "Which memory choices matter?": DECISIONS,
        "What does it cost?": (
            *COST,
            TableSpec(
                "break-even",
                "Break-even of a workload (assumptions in the note)",
                "the settings collection, replay and rerun of the default arm",
                cost_tables.payback(workload),
            ),
        ),
        "Across models and benchmarks": ACROSS,
        "Design and audits": AUDITS,
    }


VALUE = (
    TableSpec("cr-main", "Complementary future-value settings", NO_MEMORY, value_tables.cr_main, paper="tab:cr-main"),
    TableSpec(
        "contrasts",
        "The study's contrasts",
        "contrasts in the study file whose arms were run",
        across=audit_tables.contrast_table,
    ),
    TableSpec(
        "strength",
        "Beside every contrast: other tests, and what could be detected",
        "contrasts in the study file whose arms were run",
        audit_tables.strength,
        folded=True,
    ),
    TableSpec(
        "over-databases",
        "Beside every contrast: how databases differ, and what a new one may expect",
        "contrasts in the study file whose arms were run",
        audit_tables.over_databases,
        folded=True,
    ),
    TableSpec(
        "headroom",
        "Held-out on-demand repair headroom",
        value_tables.REPAIR_PASS,
        across=value_tables.headroom,
        paper="tab:x-pk",
    ),
    TableSpec(
        "served",
        "The answer as people get it, and without each of its parts",
        "the setting served of some arm, and an arm without memory",
        cost_tables.as_served,
    ),
    TableSpec(
        "readings",
        "Answers that are given as two readings, and which of them is right",
        "the setting served of some arm, some of whose answers fall apart",
        cost_tables.readings,
    ),
    TableSpec(
        "confidence",
        "How sure an answer is, held against the verdict",
        "the setting served of some arm, over two databases or more",
        cost_tables.confidence,
    ),
    TableSpec(
        "settings",
        "Replay, retention and the bare rerun, per {split}",
        "the settings replay, retention and rerun of the default arm",
        value_tables.settings_per_seed,
        folded=True,
    ),
    TableSpec(
        "paraphrase",
        "Banked questions in other words",
        "the settings paraphrase, paraphrase-others or paraphrase-none of the default arm",
        value_tables.paraphrases,
    ),
    TableSpec(
        "dialogue",
        "Dialogues, with what came before and without",
        "a benchmark of dialogues, and the setting dialogue",
        value_tables.dialogue_table,
    ),
    TableSpec(
        "dialogue-effects", "What reading in context and cards change, turn by turn", "", team_tables.dialogue_effects
    ),
    TableSpec(
        "known",
        "Questions an earlier study had asked, and new ones",
        "a benchmark that tells which of its questions were asked before",
        value_tables.known_before,
        folded=True,
    ),
    TableSpec("flips", "Fixes and breaks, stable and churning", NO_MEMORY, value_tables.flips, folded=True),
    TableSpec(
        "per-database",
        "Per-database effect of memory",
        NO_MEMORY,
        value_tables.per_database,
        folded=True,
        paper="tab:x-perdb",
    ),
    TableSpec(
        "difficulty",
        "Subset metric and difficulty strata",
        NO_MEMORY,
        value_tables.difficulty,
        folded=True,
        paper="tab:x-difficulty",
    ),
)
MECHANISM = (
    TableSpec(
        "rq2-mechanism",
        "RQ2: controlled comparisons",
        "arms with other retrievers, or with permuted cards",
        mechanism_tables.rq2,
        paper="tab:rq2-mechanism",
    ),
    TableSpec(
        "controls",
        "Retrieval controls, per {split}",
        f"arms with retriever {', '.join(mechanism_tables.RETRIEVERS[:-1])} or {mechanism_tables.RETRIEVERS[-1]}",
        mechanism_tables.controls,
        paper="tab:x-controls",
    ),
    TableSpec(
        "permuted",
        "Question–SQL correspondence",
        "an arm with correspondence permuted",
        mechanism_tables.permuted,
        paper="tab:x-permuted",
    ),
    TableSpec(
        "ingredients",
        "One ingredient of a card each",
        "arms with the writers W0-placebo … W0-values",
        mechanism_tables.ingredients,
    ),
    TableSpec(
        "mechanism-map",
        "Mechanisms of earlier systems as controlled interventions",
        "the default arm and no memory",
        mechanism_tables.mechanism_map,
        paper="tab:mechmap",
    ),
)
DECISIONS = (
    TableSpec(
        "rq3-decisions",
        "RQ3: memory choices",
        "arms with other writers, sources, checks, widths or retrievers",
        decision_tables.rq3,
        paper="tab:rq3-decisions",
    ),
    TableSpec("writers", "Writer ladder", "arms with writer W1 … W5", decision_tables.writers, paper="tab:x-writers"),
    TableSpec(
        "sources",
        "Episode sources at equal card counts, per {split}",
        "arms with source T1, T2, T4 and default banks matched to them",
        decision_tables.sources,
        paper="tab:x-sources",
    ),
    TableSpec(
        "origin",
        "Episode origin, per {split}",
        "arms with source success and union",
        decision_tables.origin,
        paper="tab:x-srcaxis",
    ),
    TableSpec(
        "matched-admission",
        "Matched-count origin and the verification boundary",
        "success banks matched to the default, or arms with admission ungated, engine or noisy",
        decision_tables.matched_admission,
        paper="tab:x-matched-admission",
    ),
    TableSpec(
        "solvers",
        "What the solver sees and chooses, with memory and without",
        "arms with solver profiled or fallback",
        decision_tables.solvers,
    ),
    TableSpec("votes", "How right a vote is", COLLECTED.format("T4"), decision_tables.votes),
    TableSpec(
        "engine",
        "Trigger and gate without an oracle, as detectors",
        "the setting engine-repair, or an arm with admission engine",
        decision_tables.engine,
    ),
    TableSpec(
        "exploration",
        "Exploring before the first answer",
        COLLECTED.format("explore") + ", or an arm without memory whose solver explores",
        decision_tables.exploration,
    ),
    TableSpec("logs", "Query logs: what comes back from a round trip", "", decision_tables.logs),
    TableSpec("log-lift", "Query logs: what their cards lift, beside an oracle's", "", team_tables.log_lift),
    TableSpec("second-pass", "A second collection pass", "an arm with passes = 2", decision_tables.second_pass),
    TableSpec(
        "width-writer",
        "Writer × retrieval width",
        "arms with k = 1, 3, 10 for one writer or more",
        decision_tables.width_by_writer,
        paper="tab:x-kwriter",
    ),
    TableSpec(
        "bank-width",
        "Bank size × retrieval width",
        "arms with bank 25%, 50% or 75%",
        decision_tables.bank_by_width,
        paper="tab:x-banksize",
    ),
    TableSpec(
        "windows",
        "What retrievers had to choose from, and how far their windows differ",
        "two arms that choose differently from one bank",
        arm_rows.window_table,
    ),
    TableSpec(
        "equivalence",
        "Equivalence of formats, sources, retrievers and bank sizes",
        "arms with other writers, sources, retrievers or bank sizes, and a margin in the study file",
        decision_tables.equivalence,
        folded=True,
    ),
)
COST = (
    TableSpec(
        "amortization",
        "Call-level and lifecycle cost",
        value_tables.REPAIR_PASS,
        cost_tables.amortization,
        paper="tab:amortization",
    ),
    TableSpec(
        "tokens",
        "Measured solver tokens per question",
        "token counts of the arm without memory",
        cost_tables.tokens,
        folded=True,
        paper="tab:x-tokens",
    ),
)
ACROSS = (
    TableSpec(
        "cross-sections", "Cross-sections", NO_MEMORY, across=design_tables.cross_sections, paper="tab:crosssections"
    ),
    TableSpec("second-model", "Other runs, per {split}", BESIDE, across=design_tables.second_model, paper="tab:x-9b"),
    TableSpec(
        "families",
        "Model families and benchmarks",
        f"runs of two or more models or benchmarks: {BESIDE}",
        across=design_tables.families,
        paper="tab:x-families",
    ),
)
AUDITS = (
    TableSpec(
        "instantiation",
        "Controlled factors and the arms that change them",
        "a study with arms",
        design_tables.instantiation,
        folded=True,
        paper="tab:instantiation",
    ),
    TableSpec("arms", "The arms, in words", "a study with arms", design_tables.arms, folded=True),
    TableSpec("claim-audit", "Claim audit", NO_MEMORY, across=audit_tables.claims, folded=True, paper="tab:x-audit"),
    TableSpec("leakage", "Leakage audit", NO_MEMORY, audit_tables.leakage, folded=True),
    TableSpec("drift", "Rerun drift", "the setting again: transfer asked anew", audit_tables.drift, folded=True),
    TableSpec(
        "adoption", "Adoption and seepage", "held-out outcomes with their cards", audit_tables.adoption, folded=True
    ),
    TableSpec(
        "substitution",
        "Substitution, question by question",
        "the held-out repair pass or an arm without memory under another solver",
        audit_tables.substitution,
        folded=True,
    ),
    TableSpec(
        "card-use",
        "Card-level use, by width",
        "cards and the windows of the default arm",
        audit_tables.card_usage,
        folded=True,
    ),
    TableSpec(
        "cause",
        "Which card fixed or broke it",
        "the setting cause, which asks changed answers again without one card at a time",
        mechanism_tables.causes,
    ),
    TableSpec(
        "cause-cards",
        "Cards by what they caused, beside their windows",
        "the setting cause of the default arm",
        mechanism_tables.cards,
        folded=True,
    ),
    TableSpec(
        "retirement",
        "Forgetting cards that harm",
        "an arm with bank retire:ARM",
        mechanism_tables.retirement,
    ),
    TableSpec("data", "Questions per database", NO_MEMORY, value_tables.data, folded=True, paper="tab:x-data"),
)
