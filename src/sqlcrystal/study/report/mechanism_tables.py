"""RQ2 tables: what information carries transfer."""

from collections.abc import Sequence

from sqlcrystal.study.ledger import Arm
from sqlcrystal.study.report.comparisons import MECHANISM, ROSTER, Finding, Planned, findings, resolve
from sqlcrystal.study.report.facts import Facts, accuracy
from sqlcrystal.study.report.table import Absent, Table
from sqlcrystal.study.report.value_tables import sample
from sqlcrystal.study.report.wording import NONE, interval, percent, points, probability

PERMUTED = ("permuted", "mispaired")


def effect(found: Finding) -> str:
    """A difference with interval and p, as a table cell."""
    one = found.found
    return f"{points(one.delta_pp)} {interval(one.ci_low_pp, one.ci_high_pp)}; p {probability(found.found.p_value)}"


def missing(facts: Facts, planned: Sequence[Planned]) -> str:
    """A sentence on the comparisons left out of a table."""
    made = {found.key for found in findings(facts, planned)}
    left = [plan.name for plan in planned if plan.key not in made]
    return f" Without arms in this study: {'; '.join(left)}." if left else ""


def readings(facts: Facts, planned: Sequence[Planned], *, key: str, title: str) -> Table | Absent:
    """One row per controlled comparison with its status and reading."""
    made = findings(facts, planned)
    if not made:
        return Absent(key=key, title=title, needs="both arms of: " + "; ".join(plan.name for plan in planned))
    said = {plan.key: plan.reading for plan in ROSTER}
    rows = []
    for found in made:
        claim = said.get(found.key, "")
        reading = (
            f"In line with: {claim}."
            if found.supported and found.found.delta_pp > 0
            else f"Does not show that {claim}."
        )
        if found.supported and found.found.delta_pp < 0:
            reading = "The difference is negative."
        rows.append((found.factor, found.name, effect(found), found.status, found.verdict, reading if claim else ""))
    return Table(
        key=key,
        title=title,
        columns=("Factor", "Controlled contrast", "Δ transfer pp [95% CI]; p", "Role", "Status", "Reading"),
        rows=tuple(rows),
        note=f"{sample(facts)} Intervals by CR2, clustered by database.{missing(facts, planned)}",
    )


def rq2(facts: Facts) -> Table | Absent:
    """The mechanism comparisons."""
    return readings(facts, MECHANISM, key="rq2-mechanism", title="RQ2: controlled comparisons")


def arm_row(facts: Facts, name: str, arm: Arm) -> tuple[str, ...]:
    """Accuracy per seed, mean, lift over none and CR of one arm."""
    rows = facts.rows(arm)
    ratio, lift = facts.ratio(arm), facts.compare(facts.bare, arm)
    return (
        name,
        *(percent(value) for value in facts.by_seed(rows).values()),
        percent(accuracy(rows)),
        points(lift.delta_pp) if lift and arm is not facts.bare else NONE,
        percent(ratio.ratio.mean).replace("-", "−") if ratio and arm is not facts.bare else NONE,
    )


def arm_columns(facts: Facts) -> tuple[str, ...]:
    """The columns of arm_row."""
    return ("Arm", *(f"s{seed}" for seed in facts.seeds), "Mean", "Δ none (pp)", "CR (%)")


def controls(facts: Facts) -> Table | Absent:
    """Retrieval controls, per seed."""
    title = "Retrieval controls, per seed"
    named = {
        "foreign cards (all other databases)": facts.find(retriever="foreign"),
        "foreign cards (most similar schema)": facts.find(retriever="schema-similar"),
        "random, same database": facts.find(retriever="random"),
        "BM25, same database": facts.find(retriever="bm25"),
        "payload-aware, same database": facts.find(retriever="payload"),
        "MMR, same database": facts.find(retriever="mmr"),
    }
    present = {name: arm for name, arm in named.items() if arm}
    if not present or facts.bare is None:
        return Absent(
            key="controls",
            title=title,
            needs="arms with retriever foreign, schema-similar, random, bm25, payload or mmr",
        )
    shown = {
        "no memory (floor)": facts.bare,
        **present,
        f"{facts.default.retriever} top-k, same database (default)": facts.default,
    }
    left = [name for name, arm in named.items() if arm is None]
    note = f"Held-out transfer EX, %, k={facts.default.k}." + (
        f" Not in this study: {', '.join(left)}." if left else ""
    )
    rows = tuple(arm_row(facts, name, arm) for name, arm in shown.items())
    return Table(key="controls", title=title, columns=arm_columns(facts), rows=rows, note=note)


def permuted(facts: Facts) -> Table | Absent:
    """The correspondence ladder: none, random, mispaired, aligned."""
    title, mispaired = "Question–SQL correspondence", facts.find(correspondence=PERMUTED)
    if mispaired is None or facts.bare is None:
        return Absent(key="permuted", title=title, needs="an arm with correspondence permuted")
    ladder = [("No memory", NONE, NONE, facts.bare)]
    random = facts.find(retriever="random")
    if random:
        ladder.append(("Random, same database", "no", "yes", random))
    ladder += [
        ("Permuted, same database", "yes", "no", mispaired),
        ("Aligned, same database", "yes", "yes", facts.default),
    ]
    rows = tuple((name, near, paired, *arm_row(facts, name, arm)[1:]) for name, near, paired, arm in ladder)
    kept, whole = facts.compare(facts.bare, mispaired), facts.compare(facts.bare, facts.default)
    share = (
        f"The mispaired bank keeps {percent(100 * kept.delta_pp / whole.delta_pp, 0)}% of the aligned lift. "
        if kept and whole and whole.delta_pp > 0
        else ""
    )
    return Table(
        key="permuted",
        title=title,
        columns=("Arm", "Targeted", "Paired", *arm_columns(facts)[1:]),
        rows=rows,
        note=share
        + "Permuting keeps questions, SQL, card count, retrieval and prompt form. Separate controls, not a factorial"
        " design.",
    )


def mechanism_map(facts: Facts) -> Table | Absent:
    """Mechanisms of earlier systems as controlled interventions."""
    title = "Mechanisms of earlier systems as controlled interventions"
    replay = accuracy(facts.rows(facts.find(writer="W5"), "replay"))
    rows = [
        ("Corrected-query memory", f"{facts.default.writer} verbatim (default)", _reading(facts, facts.default)),
        (
            "Distilled guidelines",
            "W5 capsule",
            _reading(facts, facts.find(writer="W5")) + (f"; replay {percent(replay)}%" if replay is not None else ""),
        ),
        ("Guidelines without anchors", "W5 lesson only", _reading(facts, facts.find(writer="W5-lesson"))),
        ("Self-consistency filtering", "T4 self-vote, verified", _reading(facts, facts.find(source="T4"))),
        (
            "Self-consistency without a check",
            "T4 self-vote, ungated",
            _reading(facts, facts.find(source="T4", admission="ungated")),
        ),
        ("Demonstration retrieval", "first-try successes", _reading(facts, facts.find(source="success"))),
        ("Demonstration retrieval", "first-try successes, matched count", _reading(facts, matched_success(facts))),
        ("Untargeted recall", "random same-database draw", _reading(facts, facts.find(retriever="random"))),
    ]
    kept = tuple(row for row in rows if row[2])
    if not kept:
        return Absent(key="mechanism-map", title=title, needs="the default arm and no memory")
    return Table(
        key="mechanism-map",
        title=title,
        columns=("Mechanism", "Controlled intervention", "Measured"),
        rows=kept,
        note="Mechanisms, not systems: pipeline, model and retrieval stay fixed.",
    )


def matched_success(facts: Facts) -> Arm | None:
    """The bank of successes cut to the default's card counts, first draw."""
    plan = next(plan for plan in ROSTER if plan.key == "matched-success")
    return resolve(facts, plan)[1]


def _reading(facts: Facts, arm: Arm | None) -> str:
    lift, ratio = facts.compare(facts.bare, arm), facts.ratio(arm)
    if lift is None:
        return ""
    crystallized = (
        f"CR {percent(ratio.ratio.mean).replace('-', '−')}%; " if ratio and ratio.ratio.mean is not None else ""
    )
    return f"{crystallized}{points(lift.delta_pp)} pp"
