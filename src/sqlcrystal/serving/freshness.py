"""Cards of an older schema are run again before a question sees them; what fails is quarantined."""

from collections.abc import Sequence

from sqlcrystal.serving.workspace import OpenDatabase, Workspace
from sqlcrystal.types import Card, Question, Retrieved

SECONDS = 5.0


class FreshMemory:
    """The team's memory, in which only cards stand that run under the present schema."""

    def __init__(self, workspace: Workspace, opened: OpenDatabase) -> None:
        """Look at nothing yet."""
        self._desk = workspace
        self._site = opened
        self._memory = workspace.memory(opened)

    def recall(self, question: Question) -> Sequence[Retrieved]:
        """At most k cards, best first; each quarantined card makes room for the next."""
        while True:
            retrieved = self._memory.recall(question)
            if all(still_runs(self._desk, self._site, [neighbour.card for neighbour in retrieved]).values()):
                return retrieved
            self._memory = self._desk.memory(self._site)

    def arrange(self, retrieved: Sequence[Retrieved]) -> Sequence[Card]:
        """As the team's memory does."""
        return self._memory.arrange(retrieved)


def still_runs(workspace: Workspace, opened: OpenDatabase, cards: Sequence[Card]) -> dict[str, bool]:
    """Whether each card runs under the present schema; only those never seen to are run, and judged at once."""
    fingerprint = opened.database.fingerprint()
    older = [card for card in cards if card.fingerprint != fingerprint]
    if not older:
        return {card.id: True for card in cards}
    from sqlcrystal.bank.revalidation import CheckOutcome, run_again

    bank = workspace.store.bank
    stale = bank.stale(opened.name, fingerprint, among=[card.id for card in older])
    quote = not workspace.keeps_no_values(opened.name)
    outcomes = {
        card.id: run_again(bank, card, opened.database, timeout=SECONDS, quote=quote)[0]
        for card in older
        if card.id in stale
    }
    bank.mark_valid([name for name, outcome in outcomes.items() if outcome is CheckOutcome.RAN], fingerprint)
    return {card.id: outcomes.get(card.id) is not CheckOutcome.QUARANTINED for card in cards}
