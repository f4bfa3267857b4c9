"""RQ2 tables: which information carries transfer, and which card did it."""

from collections.abc import Sequence

from sqlcrystal.ledger.records import Arm
from sqlcrystal.measurement.attribution import CardCause, FlipCause, card_effects, flip_causes, unmoved
from sqlcrystal.measurement.cost import headroom_share
from sqlcrystal.study.report.arm_rows import (
    arm_columns,
    arm_row,
    cards_per_seed,
    effect,
    grouped,
    label,
    readings,
    told,
)
from sqlcrystal.study.report.comparisons import INGREDIENTS, MECHANISM, ROSTER, finding, findings, resolve
from sqlcrystal.study.report.facts import Facts, percent_right
from sqlcrystal.study.report.table import NONE, WORDS, Body, Cells, interval, number, percent, points
from sqlcrystal.study.report.value_tables import sample
from sqlcrystal.types import CardId

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


CAUSE, TRIAL = "cause", "collection-cause"
NAMED_CARDS = 20
RETIRES = "retire:"


def causes(facts: Facts) -> Body | None:
    """Tabulate the changes of every arm that was asked for causes, beside what their windows alone would say."""
    arms = [arm for arm in facts.arms.values() if facts.rows(arm, CAUSE)]
    rows = [
        (f"{label(facts, arm)}, {verdict}", *_counted([flip for flip in flips if flip.verdict == kind]))
        for arm in arms
        for flips in [flip_causes(facts.rows(arm, CAUSE))]
        for kind, verdict in (("fix", "fixes"), ("break", "breaks"))
    ]
    columns = (
        *("Arm and change", "Changes", "Cards in their windows", "Cards that caused one", "Taken back by one card"),
        *("By several, each alone", "By no single card", "Calls"),
    )
    note = (
        "Each held-out answer that memory fixed or broke is asked again without one card of its window at a time; no"
        " other card takes its place. A card caused the change if the change is gone without it. Windows only tell"
        " which cards stood beside it. Where no single card takes it back, several together or the mere presence of"
        " cards made it."
    )
    return Body(columns=columns, rows=tuple(rows), note=note)


def _counted(flips: Sequence[FlipCause]) -> Cells:
    cards = {(flip.seed, card) for flip in flips for card in flip.window}
    caused = {(flip.seed, card) for flip in flips for card in flip.causes}
    alone = [len(flip.causes) for flip in flips]
    share = f" ({percent(100 * len(caused) / len(cards), 0)}%)" if cards else ""
    return (
        number(len(flips)),
        number(len(cards)),
        f"{number(len(caused))}{share}",
        number(sum(count == 1 for count in alone)),
        number(sum(count > 1 for count in alone)),
        number(sum(count == 0 for count in alone)),
        number(sum(len(flip.window) for flip in flips)),
    )


def cards(facts: Facts) -> Body | None:
    """Name the default's cards that caused most, each beside its window counts."""
    effects = card_effects(flip_causes(facts.rows(facts.default, CAUSE)))
    ranked = sorted(effects.items(), key=lambda entry: (-entry[1].broke, -entry[1].fixed, entry[0]))
    caused = [(card, effect) for card, effect in ranked if effect.broke or effect.fixed]
    known = {card.id: card for card in facts.cards(facts.default)}
    rows = tuple(_card_row(known[card].question, known[card].database, effect) for card, effect in caused[:NAMED_CARDS])
    columns = ("Card", "Database", "Broke", "Of windows of breaks", "Fixed", "Of windows of fixes")
    left = len(caused) - NAMED_CARDS
    note = "Cards by the answers they broke, then by those they fixed." + (
        f" {left} more caused a change." if left > 0 else ""
    )
    return Body(columns=columns, rows=rows, note=note)


def _card_row(question: str, database: str, effect: CardCause) -> Cells:
    counts = (effect.broke, effect.in_breaks, effect.fixed, effect.in_fixes)
    return question, database, *map(number, counts)


def retirement(facts: Facts) -> Body | None:
    """Compare banks that retire harmful cards with the banks they were taken from."""
    retiring = {arm: facts.arms[arm.bank.removeprefix(RETIRES)] for arm in _retiring(facts)}
    columns = (*arm_columns(facts), "Cards", "Changes tried", "Retired", "Δ before (pp)")

    def row(of_seeds: Facts, arm: Arm) -> Cells:
        before = next((other for new, other in retiring.items() if new.name == arm.name), None)
        figures = (*arm_row(of_seeds, arm), cards_per_seed(of_seeds, arm))
        if before is None:
            return *figures, NONE, NONE, NONE
        tried = flip_causes(of_seeds.rows(before, TRIAL))
        retired = sum(len(_banked(of_seeds, before, seed) - _banked(of_seeds, arm, seed)) for seed in of_seeds.seeds)
        return *figures, number(len(tried)), number(retired), told(of_seeds.compare(before, arm))

    arms = [one for arm, before in retiring.items() for one in (before, arm)]
    note = (
        "A card is retired if, among the questions of the collection, answers that it broke outnumber those it fixed;"
        " held-out questions have no say. Cards per split."
    )
    return Body(columns=columns, rows=grouped(facts, arms, row, beside=retiring.values()), note=note)


def _retiring(facts: Facts) -> list[Arm]:
    return [arm for arm in facts.arms.values() if arm.bank.startswith(RETIRES) and facts.rows(arm)]


def _banked(facts: Facts, arm: Arm, seed: int) -> set[CardId]:
    return set(facts.bank(arm, seed)) if seed in facts.seeds_of(arm) else set()


def caused_by(facts: Facts, seed: int, question: str) -> frozenset[CardId] | None:
    """Name the cards that made the default change its answer to a question; None where nothing was asked."""
    rows = [row for row in facts.rows(facts.default, CAUSE) if (row.seed, row.question) == (seed, question)]
    return frozenset(flip_causes(rows)[0].causes) if rows else None
