"""The cards that collections hold, and the memory of every arm and seed built from them: cut, matched or permuted."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import TypeAlias

from msgspec import Struct

from sqlcrystal import assembly
from sqlcrystal.bank import FrozenBank
from sqlcrystal.consumption.controls import Mispaired, counts_of, fraction, matched, mispair
from sqlcrystal.consumption.memory import BankMemory, CardOrder
from sqlcrystal.consumption.retriever import Reach
from sqlcrystal.ledger.folder import LogLine
from sqlcrystal.ledger.records import BankedCard, Outcome
from sqlcrystal.measurement.attribution import harmful
from sqlcrystal.protocols import Embedder, Retriever
from sqlcrystal.single_flight import SingleFlight
from sqlcrystal.study.design import MATCHED, Design, PlannedArm, bank_share, trial_arm
from sqlcrystal.study.units import Collection, Unit, collection_of, trial_of
from sqlcrystal.study.world import RememberedMemory, World
from sqlcrystal.types import Card, CardId
from sqlcrystal.writing.card import estimate_tokens, render_pair


class BankedEpisode(Struct, frozen=True):
    """A card as a collection made it, with the failure modes of its repair; a first-try success has none."""

    card: Card
    modes: tuple[str, ...] = ()


class Performed(Struct, frozen=True, kw_only=True):
    """The outcome of a unit: its row, its line in the log, and for a collection the card or that there is none yet."""

    outcome: Outcome
    line: LogLine
    banked: BankedEpisode | None = None
    missed: bool = False


class FinishedCollection(Struct, frozen=True):
    """A finished collection: its cards in the order they were banked, and the questions still without one."""

    episodes: tuple[BankedEpisode, ...] = ()
    missed: frozenset[tuple[str, str]] = frozenset()
    retired: frozenset[CardId] = frozenset()
    """The cards that did more harm than good to the questions of their own collection, once they were tried."""


FinishedCollections: TypeAlias = Mapping[Collection, FinishedCollection]
"""The collections that are complete, and what they hold."""


class CollectionProgress:
    """The banks of a study as they fill; a run and a plan keep one each."""

    def __init__(self, units: Iterable[Unit]) -> None:
        self.filled: dict[Collection, FinishedCollection] = {}
        self._waiting: dict[Collection, dict[Unit, Performed | None]] = defaultdict(dict)
        self._fillers: dict[Collection, list[Unit]] = defaultdict(list)
        for unit in units:
            if unit.fills is not None:
                self._fillers[unit.fills].append(unit)

    def keep(self, unit: Unit, performed: Performed | None) -> bool:
        """Take what came of a unit; True when it was the last that its bank waited for."""
        if unit.fills is None:
            return False
        waiting, fillers = self._waiting[unit.fills], self._fillers[unit.fills]
        waiting[unit] = performed
        if len(waiting) < len(fillers):
            return False
        before = self.filled[unit.needs[0]] if unit.needs else FinishedCollection()  # the pass before this one
        finished = [(filler.question.key, done) for filler in fillers if (done := waiting[filler]) is not None]
        if unit.fills.tried_by:
            retired = harmful(done.outcome for _, done in finished)
            self.filled[unit.fills] = FinishedCollection(before.episodes, before.missed, retired)
            del self._waiting[unit.fills]
            return True
        banked = (done.banked for _, done in finished if done.banked is not None)
        missed = frozenset(key for key, done in finished if done.missed)
        self.filled[unit.fills] = FinishedCollection((*before.episodes, *banked), missed)
        del self._waiting[unit.fills]
        return True


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

    def of(
        self, planned: PlannedArm, seed: int, finished: FinishedCollections, *, own: bool, after: int
    ) -> RememberedMemory:
        """Tell what a question of this arm and seed may be told, as it stands after so many passes."""

        def make() -> RememberedMemory:
            served = self.served(planned, seed, finished, after=after)
            memory = BankMemory(served.searched, served.retriever, k=planned.arm.k, order=self._order, own=own)
            return RememberedMemory(memory)

        return self._memories.get((planned.name, seed, after, own), make)

    def served(
        self, planned: PlannedArm, seed: int, finished: FinishedCollections, *, after: int | None = None
    ) -> ArmMemory:
        """The arm's bank, cut and permuted as the arm says, with its retriever."""
        number = after or planned.arm.passes
        return self._served.get((planned.name, seed, number), lambda: self._serve(planned, seed, finished, number))

    def audit(self, planned: PlannedArm, seed: int, finished: FinishedCollections, *, rule: str) -> list[BankedCard]:
        """The cards of an arm's bank as they are shown, each with the oracle's bit and its failure modes."""
        episodes: dict[CardId, BankedEpisode] = {
            episode.card.id: episode for episode in finished[collection_of(planned, seed)].episodes
        }
        shown = self.served(planned, seed, finished).shown
        return [
            self._audited(planned.name, seed, card, episodes.get(card.id), rule)
            for database in shown.databases()
            for card in shown.cards(database)
        ]

    def _serve(self, planned: PlannedArm, seed: int, finished: FinishedCollections, after: int) -> ArmMemory:
        arm = planned.arm
        bank = FrozenBank(episode.card for episode in finished[collection_of(planned, seed, after)].episodes)
        if share := bank_share(arm.bank):
            bank = fraction(bank, share, seed=seed)
        elif cut := MATCHED.fullmatch(arm.bank):
            other = self.served(self.design.arm(cut[1]), seed, finished).searched
            bank = matched(bank, counts_of(other), draw=int(cut[2]), seed=seed)
        elif trial := trial_arm(arm.bank):
            retired = finished[trial_of(self.design.arm(trial), seed)].retired
            tried = self.served(self.design.arm(trial), seed, finished).searched
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
