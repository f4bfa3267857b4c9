"""RQ2 tables: what information carries transfer."""

from sqlcrystal.ledger.records import Arm
from sqlcrystal.measurement.cost import headroom_share
from sqlcrystal.measurement.windows import unmoved
from sqlcrystal.study.report.arm_rows import arm_columns, arm_row, effect, grouped, label, readings, told
from sqlcrystal.study.report.comparisons import INGREDIENTS, MECHANISM, ROSTER, finding, findings, resolve
from sqlcrystal.study.report.facts import Facts, percent_right
from sqlcrystal.study.report.glossary import WORDS
from sqlcrystal.study.report.table import Body
from sqlcrystal.study.report.value_tables import sample
from sqlcrystal.study.report.wording import NONE, interval, number, percent, points

RETRIEVERS = ("foreign", "schema-similar", "random", "bm25", "payload", "mmr")


def rq2(facts: Facts) -> Body | None:
    """The mechanism comparisons."""
    return readings(facts, MECHANISM)


def controls(facts: Facts) -> Body | None:
    """Retrieval controls, per seed."""
    present = [arm for name in RETRIEVERS if (arm := facts.find(retriever=name))]
    if not present or facts.bare is None:
        return None
    keys = (
        "foreign",
        "schema-similar",
        "schema-similar-none",
        "random",
        "targeting",
        "bm25",
        "mmr",
        "mmr-bm25",
        "payload",
    )
    tested = [comparison for key in keys if (comparison := finding(facts, key))]
    note = f"Held-out transfer EX, %, k={facts.default.k}. " + " ".join(
        f"{comparison.name}: {effect(comparison)}." for comparison in tested
    )
    baseline = (facts.bare, facts.default)
    rows = grouped(facts, (facts.bare, *present, facts.default), arm_row, beside=baseline)
    return Body(columns=arm_columns(facts), rows=rows, note=note)


def permuted(facts: Facts) -> Body | None:
    """The correspondence ladder: none, random, mispaired, aligned."""
    mispaired = facts.find(correspondence="permuted")
    if mispaired is None or facts.bare is None:
        return None
    ladder: list[tuple[str, str, Arm]] = [(NONE, NONE, facts.bare)]
    random = facts.find(retriever="random")
    ladder += [("no", "yes", random)] if random else []
    ladder += [("yes", "no", mispaired), ("yes", "yes", facts.default)]
    controlled = {arm.name: (targeted, paired) for targeted, paired, arm in ladder}

    def row(of_seeds: Facts, arm: Arm) -> tuple[str, ...]:
        name, *figures = arm_row(of_seeds, arm)
        return name, *controlled[arm.name], *figures

    rows = grouped(facts, (arm for _, _, arm in ladder), row, beside=(facts.bare, facts.default))
    alike = facts.on(facts.seeds_of(mispaired))
    floor, without_pairing, whole = (percent_right(alike.rows(arm)) for arm in (facts.bare, mispaired, facts.default))
    share = None
    if floor is not None and without_pairing is not None and whole is not None:
        share = headroom_share(floor=floor, reached=without_pairing, ceiling=whole)
    still = unmoved(facts.cards(facts.default), facts.cards(mispaired))
    name, *columns = arm_columns(facts)
    return Body(
        columns=(name, "Targeted", "Paired", *columns),
        rows=rows,
        note=(f"The mispaired bank keeps {percent(share, 0)}% of the aligned lift. " if share is not None else "")
        + f"{still.part} of {still.whole} cards could not be moved and keep their own SQL."
        " Permuting keeps questions, SQL, card count, retrieval and prompt form. Separate controls, not a factorial"
        " design.",
    )


def ingredients(facts: Facts) -> Body | None:
    """Tabulate one ingredient of a card each, against no memory and against the whole card."""
    tested = findings(facts, INGREDIENTS)
    if not tested:
        return None
    parts = [facts.arms[part.b] for part in sorted(tested, key=lambda part: part.result.delta_pp)]
    rows = grouped(facts, (*parts, facts.default), _ingredient, beside=(facts.default,))
    columns = ("Arm", "Its card", "EX %", "Δ none (pp)", "Fixed/broke", f"Δ {facts.default.name} (pp)", "Tokens a card")
    note = (
        "The same cards are retrieved for every arm; only their text differs. Each keeps one ingredient and nothing of"
        f" the others, the placebo only form and length. {sample(facts)}"
    )
    return Body(columns=columns, rows=rows, note=note)


def _ingredient(facts: Facts, arm: Arm) -> tuple[str, ...]:
    cards, lift = facts.cards(arm), facts.compare(facts.bare, arm)
    against = facts.compare(facts.default, arm) if arm is not facts.default else None
    return (
        label(facts, arm),
        WORDS["writer"](arm.writer).removeprefix("card = "),
        percent(percent_right(facts.rows(arm))),
        told(lift),
        f"{lift.fixed}/{lift.broke}" if lift else NONE,
        f"{points(against.delta_pp)} {interval(against.ci_low_pp, against.ci_high_pp)}" if against else NONE,
        number(sum(card.tokens for card in cards) / len(cards)) if cards else NONE,
    )


def mechanism_map(facts: Facts) -> Body | None:
    """Mechanisms of earlier systems as controlled interventions."""
    matched = [resolve(facts, ROSTER[key])[1] for key in ("matched-success", "matched-success-1")]
    mapped = (
        ("Corrected-query memory (MemoSQL, LPE-SQL)", facts.default),
        ("Distilled guidelines (MAGIC)", facts.find(writer="W5")),
        ("Guidelines without grounded anchors", facts.find(writer="W5-lesson")),
        ("Self-consistency filtering (ORANGE), checked", facts.find(source="T4")),
        ("Self-consistency filtering (ORANGE), unchecked", facts.find(source="T4", admission="ungated")),
        ("Demonstration retrieval (DAIL-SQL)", facts.find(source="success")),
        ("Demonstration retrieval, matched count", matched[0]),
        ("Demonstration retrieval, matched count, second draw", matched[1]),
        ("Untargeted recall", facts.find(retriever="random")),
    )
    names = {arm.name: name for name, arm in mapped if arm and facts.compare(facts.bare, arm)}

    def row(of_seeds: Facts, arm: Arm) -> tuple[str, ...]:
        return names[arm.name], label(of_seeds, arm), *_measured(of_seeds, arm)

    return Body(
        columns=("Mechanism", "Arm", "CR %", "Δ none (pp)", "Replay %"),
        rows=grouped(facts, map(facts.arms.get, names), row, beside=(facts.default,)),
        note="Mechanisms, not systems: pipeline, model and retrieval stay fixed. In brackets the prior systems that the"
        " paper names for a mechanism.",
    )


def _measured(facts: Facts, arm: Arm) -> tuple[str, ...]:
    lift, ratio = facts.compare(facts.bare, arm), facts.ratio(arm)
    replay = percent(percent_right(facts.rows(arm, "replay")))
    return percent(ratio.ratio.pooled) if ratio else NONE, points(lift.delta_pp if lift else None), replay
