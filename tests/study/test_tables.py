"""Tables: one value, four renderings, and only what the study has arms for."""

import csv
import io
import re
from collections.abc import Callable

import msgspec
import pytest

from sqlcrystal.ledger.records import Arm, Ledger
from sqlcrystal.measurement.settings import crystallization_ratio
from sqlcrystal.study.report import audit_tables, cost_tables, decision_tables, mechanism_tables, value_tables
from sqlcrystal.study.report.comparisons import contrasts, finding, observed_drift, oriented
from sqlcrystal.study.report.document import make_document
from sqlcrystal.study.report.facts import Facts
from sqlcrystal.study.report.html import to_html
from sqlcrystal.study.report.summary import summarize
from sqlcrystal.study.report.table import Body, ReportTable
from sqlcrystal.study.report.write import to_csv, to_latex, to_markdown
from synthetic_ledger import SEEDS, synthetic_document, synthetic_facts, synthetic_ledger

SAMPLE = ReportTable(
    key="sample",
    title="A & B <i>",
    columns=("Name", "Δ (pp)", "95% CI"),
    rows=(("Group of 50%",), ("x_1 | y", "+1.00", "[−0.5, +2.5]"), ("z", "−2.50", "—")),
    note="p < .05 & so on.",
)
FEW = ("none", "W0", "k=1", "k=10")


def few(**changes: object) -> Facts:
    return Facts(synthetic_ledger(only=FEW, **changes))  # type: ignore[arg-type]


def test_html_escapes_what_it_is_given_and_scrolls_in_its_own_box() -> None:
    page = to_html(SAMPLE)
    assert "A &amp; B &lt;i&gt;" in page
    assert '<div class="scroll"' in page
    assert '<td class="num">+1.00</td>' in page


def test_markdown_has_as_many_cells_in_every_row() -> None:
    lines = [line for line in to_markdown(SAMPLE).splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {4}


def test_latex_escapes_and_uses_booktabs() -> None:
    text = to_latex(SAMPLE)
    assert r"x\_1" in text
    assert r"$-$2.50" in text
    assert text.count("\\toprule") == text.count("\\bottomrule") == 1
    assert "<" not in text.replace("$<$", "")


def test_every_latex_row_has_its_columns_and_nothing_unescaped() -> None:
    for table in synthetic_document().tables:
        body = to_latex(table).split("\\midrule")[1].split("\\bottomrule")[0]
        for line in body.strip().splitlines():
            if line.startswith("\\"):
                continue
            assert len(re.findall(r"(?<!\\)&", line)) == len(table.columns) - 1, line
            assert not re.search(r"(?<!\\)[%#_]", line), line
            assert line.isascii() or set(line) - set(map(chr, range(128))) <= {"Δ"}, line


def test_csv_reads_back_with_plain_minus_signs() -> None:
    rows = list(csv.reader(io.StringIO(to_csv(SAMPLE))))
    assert rows[0] == list(SAMPLE.columns)
    assert float(rows[3][1]) == -2.5


def test_the_summary_agrees_with_the_outcomes() -> None:
    facts = few()
    summary = summarize(facts)
    bare, memory = facts.ledger.of("none", "transfer"), facts.ledger.of("W0", "transfer")
    assert summary.p0 == pytest.approx(100 * sum(row.right for row in bare) / len(bare))
    assert summary.pm == pytest.approx(100 * sum(row.right for row in memory) / len(memory))
    assert summary.lift_pp == pytest.approx((summary.pm or 0) - (summary.p0 or 0))
    assert summary.fixed - summary.broke == sum(r.right for r in memory) - sum(r.right for r in bare)
    ratio = facts.ratio(facts.default)
    assert ratio is not None
    assert summary.cr == crystallization_ratio(seeds=list(ratio.counts.values())).pooled
    assert (summary.n_heldout, summary.n_databases, summary.seeds) == (len(memory), 10, SEEDS)


def test_the_summary_has_every_promised_key() -> None:
    summary = msgspec.json.decode(msgspec.json.encode(summarize(few())))
    promised = [
        *("p0", "pm", "pk", "lift_pp", "lift_ci_pp", "cr", "cr_ci", "replay", "retention", "rerun_floor"),
        *("n_heldout", "n_questions", "n_databases", "seeds", "cards", "contrasts"),
    ]
    assert set(promised) <= set(summary)
    assert {"name", "delta_pp", "ci_pp", "p_value", "fixed", "broke", "status"} <= set(summary["contrasts"][0])


def test_fewer_than_three_seeds_is_preliminary() -> None:
    summary = summarize(few(seeds=(42,)))
    assert all("preliminary" in contrast.status for contrast in summary.contrasts)
    assert not any(contrast.supported for contrast in summary.contrasts)


def test_the_primary_contrast_stands_unadjusted_before_holms_family() -> None:
    findings = contrasts(synthetic_facts())
    family = {finding.name: finding.family for finding in findings if finding.family}
    assert len(family) == 5
    primary = family.pop("W0 − none")
    assert primary is not None
    assert (primary.primary, primary.holm_p) == (True, None)
    assert all(reading and reading.holm_p is not None for reading in family.values())


def test_the_family_is_what_the_study_designates_run_or_not() -> None:
    whole, part = synthetic_ledger(), synthetic_ledger(only=FEW)
    designed = msgspec.structs.replace(part.manifest, contrasts=whole.manifest.contrasts, arms=whole.manifest.arms)
    interim, complete = Facts(msgspec.structs.replace(part, manifest=designed)), synthetic_facts()

    def holm(facts: Facts) -> float | None:
        return next(
            finding.family.holm_p for finding in contrasts(facts) if finding.name == "k=10 − k=1" and finding.family
        )

    assert (holm(interim) or 0) >= (holm(complete) or 1)
    alone = contrasts(Facts(part))
    assert (holm(interim) or 0) > max(
        finding.family.holm_p or 0 for finding in alone if finding.name == "k=10 − k=1" and finding.family
    )


def test_a_contrast_keeps_its_role_whichever_way_round_it_is_read() -> None:
    ledger = synthetic_ledger(only=FEW)
    turned = tuple(
        msgspec.structs.replace(contrast, a=contrast.b, b=contrast.a) if contrast.a == "k=1" else contrast
        for contrast in ledger.manifest.contrasts
    )
    manifest = msgspec.structs.replace(ledger.manifest, contrasts=turned)
    facts = Facts(msgspec.structs.replace(ledger, manifest=manifest))
    width = finding(facts, "width")
    assert width is not None
    assert width.role == "confirmatory"
    assert "k=10 − k=1" in [finding.name for finding in oriented(facts)]


def test_both_readings_stand_beside_each_other() -> None:
    contrasts_table = {table.key: table for table in synthetic_document().tables}["contrasts"]
    assert contrasts_table.columns[-2:] == ("Alone, as in the paper", "Status")


def test_an_arm_called_none_that_retrieves_is_not_the_floor() -> None:
    ledger = synthetic_ledger(only=FEW)
    arms = tuple(
        msgspec.structs.replace(arm, retriever="dense", k=1) if arm.name == "none" else arm
        for arm in ledger.manifest.arms
    )
    manifest = msgspec.structs.replace(ledger.manifest, arms=arms)
    assert Facts(msgspec.structs.replace(ledger, manifest=manifest)).bare is None


@pytest.mark.parametrize(
    "build",
    [
        mechanism_tables.controls,
        mechanism_tables.permuted,
        decision_tables.writers,
        decision_tables.sources,
        decision_tables.origin,
        decision_tables.matched_admission,
        decision_tables.bank_by_width,
        decision_tables.second_pass,
    ],
)
def test_a_table_without_arms_is_not_made(build: Callable[[Facts], Body | None]) -> None:
    assert build(few()) is None


def test_what_is_left_out_says_what_it_needs() -> None:
    assert all(absent.needs for absent in make_document([few()]).absent)


def test_no_headroom_leaves_the_ratio_undefined() -> None:
    ledger = synthetic_ledger(only=FEW)
    flat = tuple(
        msgspec.structs.replace(row, right=row.first_right) if row.setting == "repair" else row
        for row in ledger.outcomes
    )
    facts = Facts(msgspec.structs.replace(ledger, outcomes=flat))
    table = value_tables.cr_main(facts)
    assert summarize(facts).cr is None
    assert table is not None
    assert ("CR, % (CR2)", "—", "undefined") in [row[:3] for row in table.rows]


@pytest.mark.parametrize("method", ["jackknife", "two-stage"])
def test_the_chosen_method_decides(method: str) -> None:
    facts = Facts(synthetic_ledger(only=FEW), method=method)
    summary = summarize(facts)
    decided = facts.compare(facts.bare, facts.default, method)
    assert decided is not None
    assert summary.method == method
    assert summary.lift_ci_pp == (decided.ci_low_pp, decided.ci_high_pp)


def test_marginal_construction_is_full_without_the_first_attempts() -> None:
    facts = synthetic_facts()
    built = cost_tables.bank_cost(facts, facts.default)
    rows = facts.rows(facts.default, "collection")
    assert built is not None
    repairs = sum(row.prompt_tokens + row.completion_tokens - 960 for row in rows if row.calls > 1)
    assert built.full == sum(row.prompt_tokens + row.completion_tokens for row in rows) / len(SEEDS)
    assert built.marginal == pytest.approx(repairs / len(SEEDS))


def test_the_cost_tables_state_their_assumptions() -> None:
    tables = {table.key: table for table in synthetic_document().tables}
    assert "Assumed, not measured" in tables["break-even"].note
    assert "calls" in tables["amortization"].note


def test_drift_comes_from_transfers_asked_again() -> None:
    table = audit_tables.drift(synthetic_facts())
    assert table is not None
    assert [row[0] for row in table.rows] == ["none, run 1", "W0, run 1"]


def test_an_arm_with_fewer_seeds_is_called_preliminary() -> None:
    ledger = synthetic_ledger(only=("none", "W0", "random"))
    kept = tuple(row for row in ledger.outcomes if row.arm != "random" or row.seed == 42)
    table = mechanism_tables.controls(Facts(msgspec.structs.replace(ledger, outcomes=kept)))
    assert table is not None
    assert "random (1 seed, preliminary)" in [row[0] for row in table.rows]


def with_engine() -> Ledger:
    """The small study with an arm that the engine gates, and with held-out repair that the engine begins and ends."""
    ledger = synthetic_ledger(only=FEW)
    collected = [row for row in ledger.outcomes if (row.arm, row.setting) == ("W0", "collection")]
    repaired = [row for row in ledger.outcomes if (row.arm, row.setting) == ("none", "repair")]
    rows = [
        *(msgspec.structs.replace(row, arm="engine") for row in collected),
        *(msgspec.structs.replace(row, setting="engine-repair") for row in repaired),
    ]
    arm = Arm(name="engine", factor="admission", admission="engine", base="W0")
    manifest = msgspec.structs.replace(ledger.manifest, arms=(*ledger.manifest.arms, arm))
    return msgspec.structs.replace(ledger, manifest=manifest, outcomes=(*ledger.outcomes, *rows))


def test_the_engine_stands_as_a_detector_beside_the_oracle() -> None:
    facts = Facts(with_engine())
    table = decision_tables.engine(facts)
    assert table is not None
    assert [row[0] for row in table.rows] == ["none, held-out repair", "engine, collection"]
    assert table.rows[0][2].startswith("100.0 (")
    assert table.rows[0][3].startswith("0.0 (0 of")
    assert table.rows[0][7].startswith("100.0 (")
    assert summarize(facts).pe == summarize(facts).pk


def test_windows_that_two_widths_share_are_counted() -> None:
    ledger = synthetic_ledger(only=FEW)
    one_card = tuple(msgspec.structs.replace(row, cards=row.cards[:1]) for row in ledger.outcomes)
    table = decision_tables.width_by_writer(Facts(msgspec.structs.replace(ledger, outcomes=one_card)))
    assert table is not None
    assert "270 of 270 pairs see the same cards at k=1 and k=10" in table.note


def test_cards_that_a_permutation_cannot_move_are_counted() -> None:
    ledger = synthetic_ledger(only=("none", "W0", "permuted"), databases=("db_clinic", "db_hangar", "db_museum"))
    own = {(card.seed, card.question_id): card.sql for card in ledger.cards if card.arm == "W0"}
    cards = tuple(
        msgspec.structs.replace(card, sql=own[card.seed, card.question_id]) if card.database == "db_clinic" else card
        for card in ledger.cards
    )
    table = mechanism_tables.permuted(Facts(msgspec.structs.replace(ledger, cards=cards)))
    assert table is not None
    assert "18 of 54 cards could not be moved" in table.note


def test_the_ratio_over_all_questions_and_of_each_seed_stands_beside_the_pooled_one() -> None:
    facts = few()
    table, whole = value_tables.cr_main(facts), facts.whole_headroom
    assert table is not None
    assert whole is not None
    asked = {row.question for row in (*facts.repairs, *facts.rows(facts.default, "collection"))}
    assert whole.n == len(asked) > len({row.question for row in facts.repairs})
    rows = {row[0]: row for row in table.rows}
    assert "Crystallization ratio: lift over repair headroom, K = 3" in rows
    assert rows["CR, % (mean of the seeds)"][3].startswith("seeds 42/7/13: ")
    assert rows["CR, % (headroom over all questions)"][2] == f"{summarize(facts).cr_all_questions:.1f}"


def test_a_collection_that_repairs_otherwise_gives_no_headroom_over_all_questions() -> None:
    ledger = synthetic_ledger(only=FEW)
    arms = tuple(
        msgspec.structs.replace(arm, source="T1") if arm.name == "none" else arm for arm in ledger.manifest.arms
    )
    manifest = msgspec.structs.replace(ledger.manifest, arms=arms)
    assert Facts(msgspec.structs.replace(ledger, manifest=manifest)).whole_headroom is None


def test_a_check_that_cannot_fail_is_not_printed_where_bare_answers_are_shared() -> None:
    ledger = synthetic_ledger(only=FEW)
    first = {row.question: row for row in reversed(ledger.of("none", "transfer"))}
    shared = tuple(
        msgspec.structs.replace(row, right=first[row.question].right, sql=first[row.question].sql)
        if (row.arm, row.setting) == ("none", "transfer")
        else row
        for row in ledger.outcomes
    )
    table = value_tables.flips(Facts(msgspec.structs.replace(ledger, outcomes=shared)))
    assert table is not None
    assert "shared by all seeds" in table.note
    assert not re.search(r"\d+ questions? fixed under one seed", table.note)


def test_bare_answers_asked_anew_for_every_seed_are_checked() -> None:
    table = value_tables.flips(few())
    assert table is not None
    assert re.search(r"\d+ questions? fixed under one seed and broken under another\.", table.note)


def test_the_papers_reading_is_by_the_papers_method() -> None:
    table = audit_tables.contrast_table([synthetic_facts()])
    assert table is not None
    findings = {finding.name: finding for finding in oriented(synthetic_facts())}
    place = table.columns.index("Alone, as in the paper")
    read = {row[0]: row[place] for row in table.rows if len(row) > 1 and row[0] in findings}
    told = {name: finding.two_stage.p_value for name, finding in findings.items()}
    assert {finding.two_stage.method for finding in findings.values()} == {"two-stage"}
    shared = [name for name in read if told[name] is not None]
    assert [read[name] == "supported" for name in shared] == [(told[name] or 1) < 0.05 for name in shared]


def test_a_margin_can_come_from_drift() -> None:
    ledger = synthetic_ledger(only=("none", "W0", "W3", "W5"))
    manifest = msgspec.structs.replace(ledger.manifest, equivalence_margin=0.0, margin_from_drift=True)
    facts = Facts(msgspec.structs.replace(ledger, manifest=manifest))
    table, band = decision_tables.equivalence(facts), observed_drift(facts)
    assert table is not None
    assert band is not None
    assert table.rows
    assert f"at ±{band.max_pp:.3g} pp, the largest of those differences" in table.note


def test_without_a_rerun_there_is_no_margin_from_drift() -> None:
    ledger = synthetic_ledger(only=("none", "W0", "W3"))
    manifest = msgspec.structs.replace(ledger.manifest, equivalence_margin=0.0, margin_from_drift=True)
    once = tuple(row for row in ledger.outcomes if row.setting != "again")
    table = decision_tables.equivalence(Facts(msgspec.structs.replace(ledger, manifest=manifest, outcomes=once)))
    assert table is not None
    assert table.rows == ()
