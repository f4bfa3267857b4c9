"""Every table and figure of a report, in the order a reader meets them."""

from collections.abc import Callable, Sequence

from sqlcrystal.measurement.cost import Workload
from sqlcrystal.study.report import (
    audit_tables,
    cost_tables,
    decision_tables,
    mechanism_tables,
    model_tables,
    value_tables,
)
from sqlcrystal.study.report.facts import Facts
from sqlcrystal.study.report.table import Absent, Table

Made = Table | Absent
Builder = Callable[[Facts], Made]

SECTIONS: dict[str, tuple[Builder, ...]] = {
    "What future value does the bank provide?": (
        value_tables.cr_main,
        audit_tables.contrast_table,
        value_tables.headroom,
        value_tables.settings_per_seed,
        value_tables.flips,
        value_tables.per_database,
        value_tables.difficulty,
    ),
    "What information carries transfer?": (
        mechanism_tables.rq2,
        mechanism_tables.controls,
        mechanism_tables.permuted,
        mechanism_tables.mechanism_map,
    ),
    "Which memory choices matter?": (
        decision_tables.rq3,
        decision_tables.writers,
        decision_tables.sources,
        decision_tables.origin,
        decision_tables.matched_admission,
        decision_tables.width_by_writer,
        decision_tables.bank_by_width,
    ),
    "What does it cost?": (cost_tables.amortization, cost_tables.tokens),
    "Audits": (
        audit_tables.claims,
        audit_tables.leakage,
        audit_tables.drift_table,
        audit_tables.adoption,
        audit_tables.substitution,
        audit_tables.card_usage,
        value_tables.data,
    ),
}


def all_tables(runs: Sequence[Facts], workload: Workload) -> dict[str, tuple[Made, ...]]:
    """The tables of the first run by section, those across runs at the end."""
    facts = runs[0]
    made = {heading: tuple(build(facts) for build in builders) for heading, builders in SECTIONS.items()}
    made["What does it cost?"] += (cost_tables.payback(facts, workload),)
    made["Across models and benchmarks"] = (
        model_tables.cross_sections(runs),
        model_tables.second_model(runs),
        model_tables.families(runs),
    )
    return made
