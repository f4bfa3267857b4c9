"""Tables: one value, four renderings, and only what the study has arms for."""

import csv
import io
import re

import msgspec
import pytest

from sqlcrystal.measurement.ratio import crystallization_ratio
from sqlcrystal.study.report import audit_tables, cost_tables, decision_tables, mechanism_tables, value_tables
from sqlcrystal.study.report.account import after_rounds, construction
from sqlcrystal.study.report.comparisons import contrasts, finding
from sqlcrystal.study.report.facts import Facts
from sqlcrystal.study.report.summary import summarize
from sqlcrystal.study.report.table import Absent, Table, to_csv, to_html, to_latex, to_markdown
from synthetic_ledger import SEEDS, synthetic_document, synthetic_facts, synthetic_ledger

SAMPLE = Table(
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
    assert summary.cr == crystallization_ratio(seeds=list(ratio.counts.values())).mean
    assert (summary.n_heldout, summary.n_databases, summary.seeds) == (len(memory), 10, SEEDS)


def test_the_summary_has_every_promised_key() -> None:
    made = msgspec.json.decode(msgspec.json.encode(summarize(few())))
    promised = [
        *("p0", "pm", "pk", "lift_pp", "lift_ci_pp", "cr", "cr_ci", "replay", "retention", "rerun_floor"),
        *("n_heldout", "n_questions", "n_databases", "seeds", "cards", "contrasts"),
    ]
    assert set(promised) <= set(made)
    assert {"name", "delta_pp", "ci_pp", "p_value", "fixed", "broke", "status"} <= set(made["contrasts"][0])


def test_fewer_than_three_seeds_is_preliminary() -> None:
    one = summarize(few(seeds=(42,)))
    assert all("preliminary" in contrast.status for contrast in one.contrasts)
    assert not any(contrast.supported for contrast in one.contrasts)


def test_only_confirmatory_contrasts_share_the_adjustment() -> None:
    made = contrasts(synthetic_facts())
    family = [one for one in made if one.confirmatory]
    assert len(family) == 5
    others = [one for one in family if (one.a, one.b) != ("none", "W0")]
    assert len(others) == 4
    assert all(one.holm_p is not None and one.holm_p >= (one.found.p_value or 0) for one in others)
    assert all(one.holm_p is None for one in made if not one.confirmatory)


def test_a_roster_comparison_inherits_the_study_files_designation() -> None:
    width, writer = finding(synthetic_facts(), "width"), finding(synthetic_facts(), "writer-W1")
    assert width is not None
    assert writer is not None
    assert (width.status, writer.status) == ("confirmatory", "exploratory")


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
    ],
)
def test_a_table_without_arms_says_what_it_needs(build: object) -> None:
    made = build(few())  # type: ignore[operator]
    assert isinstance(made, Absent)
    assert made.needs


def test_no_headroom_leaves_the_ratio_undefined() -> None:
    ledger = synthetic_ledger(only=FEW)
    flat = tuple(
        msgspec.structs.replace(row, right=row.first_right) if row.setting == "repair" else row
        for row in ledger.outcomes
    )
    facts = Facts(msgspec.structs.replace(ledger, outcomes=flat))
    made = value_tables.cr_main(facts)
    assert summarize(facts).cr is None
    assert isinstance(made, Table)
    assert ("CR, % (cr2)", "—", "undefined") in [row[:3] for row in made.rows]


def test_one_repair_round_is_the_prefix_of_three() -> None:
    repairs = synthetic_facts().repairs
    one, all_rounds = after_rounds(repairs, 1, "one"), after_rounds(repairs, 3, "all")
    assert one is not None
    assert all_rounds is not None
    assert one.first == all_rounds.first <= one.final <= all_rounds.final
    assert all_rounds.calls == pytest.approx(sum(row.calls for row in repairs) / len(repairs))
    assert one.calls < all_rounds.calls


def test_marginal_construction_is_full_without_the_first_attempts() -> None:
    facts = synthetic_facts()
    built = construction(facts, facts.default)
    rows = facts.rows(facts.default, "collection")
    assert built is not None
    repairs = sum(row.prompt_tokens + row.completion_tokens - 960 for row in rows if row.calls > 1)
    assert built.full == sum(row.prompt_tokens + row.completion_tokens for row in rows) / len(SEEDS)
    assert built.marginal == pytest.approx(repairs / len(SEEDS))


def test_the_cost_tables_state_their_assumptions() -> None:
    made = {table.key: table for table in synthetic_document().tables}
    assert "Assumed, not measured" in made["break-even"].note
    assert isinstance(cost_tables.amortization(synthetic_facts()), Table)
    assert "calls" in made["amortization"].note


def test_drift_comes_from_transfers_asked_again() -> None:
    made = audit_tables.drift_table(synthetic_facts())
    assert isinstance(made, Table)
    assert len([row for row in made.rows if row[0].startswith("W0, run 1")]) == len(SEEDS)
