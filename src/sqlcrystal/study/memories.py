"""The memory of every arm and seed, built from what the collections hold: cut, matched or permuted as the arm says."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial

from msgspec import Struct

from sqlcrystal import assembly
from sqlcrystal.bank import FrozenBank
from sqlcrystal.consumption.controls import Mispaired, counts_of, fraction, matched, mispair
from sqlcrystal.consumption.memory import BankMemory, CardOrder
from sqlcrystal.consumption.retriever import Reach
from sqlcrystal.ledger.records import BankedCard
from sqlcrystal.protocols import Embedder, Retriever
from sqlcrystal.single_flight import SingleFlight
from sqlcrystal.study.design import MATCHED, Design, PlannedArm, bank_share, trial_arm
from sqlcrystal.study.holdings import BankedEpisode, Filled
from sqlcrystal.study.remembered import RememberedMemory
from sqlcrystal.study.units import collection_of, trial_of
from sqlcrystal.study.world import World
from sqlcrystal.types import Card, CardId
from sqlcrystal.writing.card import estimate_tokens, render_pair


class ArmMemory(Struct, frozen=True):
    """An arm's memory for one seed: what is searched, what is shown, and how it is searched."""

    searched: FrozenBank
    shown: FrozenBank
    retriever: Retriever


class Memories:
    """Builds each arm's memory once it is needed; the caller has made sure that the collections are complete."""

    def __init__(self, design: Design, world: World, embedder: Callable[[], Embedder], *, order: CardOrder) -> None:
        self.design, self._world, self._open_embedder, self._order = design, world, embedder, order
        self._embedder: SingleFlight[None, Embedder] = SingleFlight()
        self._served: SingleFlight[tuple[str, int, int], ArmMemory] = SingleFlight()
        self._memories: SingleFlight[tuple[str, int, int, bool], RememberedMemory] = SingleFlight()
        self._retrievers: SingleFlight[tuple[str, int], Retriever] = SingleFlight()

    def warm(self) -> None:
        """Make the retrievers before they are needed: loading takes a second or two, and the workers would idle."""
        for planned in self.design.arms:
            with suppress(Exception):  # whoever needs it meets the same trouble, and says so
                self._retriever(planned.arm.retriever, planned.seeds[0])

    def of(self, planned: PlannedArm, seed: int, holdings: Filled, *, own: bool, after: int) -> RememberedMemory:
        """Tell what a question of this arm and seed may be told, as it stands after so many passes."""

        def make() -> RememberedMemory:
            served = self.served(planned, seed, holdings, after=after)
            memory = BankMemory(served.searched, served.retriever, k=planned.arm.k, order=self._order, own=own)
            return RememberedMemory(memory)

        return self._memories.get((planned.name, seed, after, own), make)

    def served(self, planned: PlannedArm, seed: int, holdings: Filled, *, after: int | None = None) -> ArmMemory:
        """The arm's bank, cut and permuted as the arm says, with its retriever."""
        number = after or planned.arm.passes
        return self._served.get((planned.name, seed, number), lambda: self._serve(planned, seed, holdings, number))

    def audit(self, planned: PlannedArm, seed: int, holdings: Filled, *, rule: str) -> list[BankedCard]:
        """The cards of an arm's bank as they are shown, each with the oracle's bit and its failure modes."""
        episodes: dict[CardId, BankedEpisode] = {
            episode.card.id: episode for episode in holdings[collection_of(planned, seed)].episodes
        }
        shown = self.served(planned, seed, holdings).shown
        return [
            self._audited(planned.name, seed, card, episodes.get(card.id), rule)
            for database in shown.databases()
            for card in shown.cards(database)
        ]

    def _serve(self, planned: PlannedArm, seed: int, holdings: Filled, after: int) -> ArmMemory:
        arm = planned.arm
        bank = FrozenBank(episode.card for episode in holdings[collection_of(planned, seed, after)].episodes)
        if share := bank_share(arm.bank):
            bank = fraction(bank, share, seed=seed)
        elif cut := MATCHED.fullmatch(arm.bank):
            other = self.served(self.design.arm(cut[1]), seed, holdings).searched
            bank = matched(bank, counts_of(other), draw=int(cut[2]), seed=seed)
        elif trial := trial_arm(arm.bank):
            retired = holdings[trial_of(self.design.arm(trial), seed)].retired
            tried = self.served(self.design.arm(trial), seed, holdings).searched
            bank = FrozenBank(
                card for name in tried.databases() for card in tried.cards(name) if card.id not in retired
            )
        retriever = self._retriever(arm.retriever, seed)
        if arm.correspondence == "permuted":
            mispairing = mispair(bank, seed=seed, render=render_pair, count_tokens=estimate_tokens)
            return ArmMemory(bank, mispairing.bank, Mispaired(retriever, mispairing))
        return ArmMemory(bank, bank, retriever)

    def _retriever(self, name: str, seed: int) -> Retriever:
        def make() -> Retriever:
            embedder = partial(self._embedder.get, None, self._load_embedder)
            reach = Reach(embedder, lambda name: self._world.database(name).schema(), seed)
            return assembly.retriever(name, reach=reach)

        return self._retrievers.get((name, seed if assembly.RETRIEVERS[name].seeded else 0), make)

    def _load_embedder(self) -> Embedder:
        """Weights are read with the first text, so one is embedded at once that will be asked for anyway."""
        embedder = self._open_embedder()
        embedder.embed([self._world.benchmark.cases[0].question.text])
        return embedder

    def _audited(self, arm: str, seed: int, card: Card, episode: BankedEpisode | None, rule: str) -> BankedCard:
        return BankedCard(
            arm=arm,
            seed=seed,
            id=card.id,
            database=card.database,
            question_id=card.question.id,
            question=card.question.text,
            sql=card.sql,
            text=card.text,
            tokens=card.tokens,
            source=card.source,
            signal=card.admission.signal,
            right=self._world.oracle.judge(card.question, card.sql).rules[rule],
            modes=episode.modes if episode else (),
        )
