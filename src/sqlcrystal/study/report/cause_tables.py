"""Which card did it: changes asked again without one card at a time, and banks that retire what harms."""

from collections.abc import Sequence

from sqlcrystal.ledger.records import Arm
from sqlcrystal.measurement.cause import CardCause, FlipCause, card_effects, flip_causes
from sqlcrystal.study.report.arm_rows import arm_columns, arm_row, cards_per_seed, grouped, label, told
from sqlcrystal.study.report.facts import Facts
from sqlcrystal.study.report.table import Body
from sqlcrystal.study.report.wording import NONE, number, percent
from sqlcrystal.types import CardId

CAUSE, TRIAL = "cause", "collection-cause"
NAMED_CARDS = 20
RETIRES = "retire:"
Row = tuple[str, ...]


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


def _counted(flips: Sequence[FlipCause]) -> Row:
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


def _card_row(question: str, database: str, effect: CardCause) -> Row:
    counts = (effect.broke, effect.in_breaks, effect.fixed, effect.in_fixes)
    return question, database, *map(number, counts)


def retirement(facts: Facts) -> Body | None:
    """Compare banks that retire harmful cards with the banks they were taken from."""
    retiring = {arm: facts.arms[arm.bank.removeprefix(RETIRES)] for arm in _retiring(facts)}
    columns = (*arm_columns(facts), "Cards", "Changes tried", "Retired", "Δ before (pp)")

    def row(of_seeds: Facts, arm: Arm) -> Row:
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
