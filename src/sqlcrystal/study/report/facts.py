"""A ledger with its questions answered: which arm is which, who was right, how two arms compare, what is missing."""

import shlex
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from sqlcrystal.errors import DataError
from sqlcrystal.ledger.records import Arm, BankedCard, Ledger, Outcome, Side
from sqlcrystal.measurement import settings
from sqlcrystal.measurement.clusters import DEFAULT_METHOD
from sqlcrystal.measurement.comparison import Comparison, compare
from sqlcrystal.measurement.flips import Pair, pair_up, to_outcomes
from sqlcrystal.measurement.settings import (
    CrystallizationRatio,
    HeldOut,
    RatioEstimate,
    SeedCounts,
    WholeHeadroom,
    crystallization_ratio,
    ratio_estimate,
    whole_headroom,
)
from sqlcrystal.measurement.statistics import Equivalence, check_method, equivalence
from sqlcrystal.types import CardId

FACTORS = (
    "source",
    "admission",
    "writer",
    "retriever",
    "k",
    "correspondence",
    "bank",
    "solver",
    "passes",
    "definitions",
)
PAPERS_METHOD = "two-stage"
Wanted = dict[str, object]
"""Factor values that differ from the default's; a tuple lists alternatives."""


class Ratio(Struct, frozen=True, kw_only=True):
    """CR of one arm, the counts it came from, and its interval by the method that decides and by the one beside it."""

    ratio: CrystallizationRatio
    counts: dict[int, SeedCounts]
    estimates: dict[str, RatioEstimate]


class Facts:
    """Everything a report may ask of one ledger."""

    def __init__(self, ledger: Ledger, *, method: str = DEFAULT_METHOD) -> None:
        check_method(method)
        self.ledger, self.manifest, self.method = ledger, ledger.manifest, method
        self.beside = DEFAULT_METHOD if method == PAPERS_METHOD else PAPERS_METHOD
        self.arms = {arm.name: arm for arm in ledger.manifest.arms}
        if ledger.manifest.default_arm not in self.arms:
            raise DataError(f"default_arm: {ledger.manifest.default_arm!r} is not among the arms")
        self.default = self.arms[ledger.manifest.default_arm]
        grouped: defaultdict[tuple[str, str], list[Outcome]] = defaultdict(list)
        for row in ledger.outcomes:
            grouped[row.arm, row.setting].append(row)
        self._rows = {Side(*key): tuple(rows) for key, rows in grouped.items()}
        self._compared: dict[tuple[Side, Side, str], Comparison | None] = {}
        self._ratios: dict[str, Ratio | None] = {}
        self._parts: dict[frozenset[int], Facts] = {}

    # ── which arm is which ───────────────────────────────────────────────────────────────────────────────────────────

    @property
    def seeds(self) -> tuple[int, ...]:
        """The numbers of the study's splits, seeds or folds, in the order it names them."""
        return self.manifest.seeds

    @property
    def split(self) -> str:
        """The word for one of its splits."""
        return self.manifest.split

    @cached_property
    def bare(self) -> Arm | None:
        """The arm without memory, which gives P_0."""
        return self.bare_with(self.default.solver)

    def bare_with(self, solver: str) -> Arm | None:
        """The arm without memory under a solver."""
        return next(
            (
                arm
                for arm in self.arms.values()
                if not arm.remembers
                and arm.solver == solver
                and arm.definitions == self.default.definitions
                and self.rows(arm)
            ),
            None,
        )

    def planned(self, **wanted: object) -> Arm | None:
        """The arm that differs from the default in exactly these factors, recorded or not."""
        target: Wanted = {factor: getattr(self.default, factor) for factor in FACTORS} | wanted
        return next((arm for arm in self.arms.values() if arm.remembers and _fits(arm, target)), None)

    def find(self, **wanted: object) -> Arm | None:
        """The arm that differs from the default in exactly these factors and has transfer outcomes."""
        arm = self.planned(**wanted)
        return arm if arm is not None and self.rows(arm) else None

    def varying(self, *factors: str) -> tuple[Arm, ...]:
        """Arms with transfer outcomes that equal the default but for these factors."""
        fixed = [factor for factor in FACTORS if factor not in factors]
        return tuple(
            arm
            for arm in self.arms.values()
            if arm.remembers
            and self.rows(arm)
            and all(getattr(arm, field) == getattr(self.default, field) for field in fixed)
        )

    def seeds_of(self, arm: Arm) -> tuple[int, ...]:
        """The seeds that an arm was run under, in the study's order."""
        return tuple(seed for seed in self.seeds if seed in self._seeds[arm.name])

    @cached_property
    def _seeds(self) -> defaultdict[str, set[int]]:
        seeds: defaultdict[str, set[int]] = defaultdict(set)
        for row in self.ledger.outcomes:
            seeds[row.arm].add(row.seed)
        return seeds

    def on(self, seeds: Collection[int]) -> "Facts":
        """The study as it stands on some of its seeds, so that an arm of fewer seeds finds its like."""
        kept = frozenset(seeds)
        if kept >= set(self.seeds):
            return self
        if kept not in self._parts:
            outcomes = tuple(row for row in self.ledger.outcomes if row.seed in kept)
            cards = tuple(card for card in self.ledger.cards if card.seed in kept)
            self._parts[kept] = Facts(replace(self.ledger, outcomes=outcomes, cards=cards), method=self.method)
        return self._parts[kept]

    # ── who was right ────────────────────────────────────────────────────────────────────────────────────────────────

    def rows(self, arm: Arm | None, setting: str = "transfer") -> tuple[Outcome, ...]:
        """The outcomes of an arm in a setting."""
        return () if arm is None else self._rows.get(Side(arm.name, setting), ())

    @cached_property
    def both(self) -> tuple[tuple[Outcome, ...], tuple[Outcome, ...]]:
        """Give the answers of no memory and the default to questions that both have; all where one is missing."""
        without, memory = self.rows(self.bare), self.rows(self.default)
        shared = {(row.seed, row.question) for row in without} & {(row.seed, row.question) for row in memory}
        if not shared:
            return without, memory
        return tuple(row for row in without if (row.seed, row.question) in shared), tuple(
            row for row in memory if (row.seed, row.question) in shared
        )

    @property
    def one_sided(self) -> int:
        """Held-out answers of no memory or the default that the other has not, and that no comparison can use."""
        if self.bare is None or not self.rows(self.default):
            return 0
        return sum(map(len, (self.rows(self.bare), self.rows(self.default)))) - sum(map(len, self.both))

    @cached_property
    def shares_bare_answers(self) -> bool:
        """Tell if every question has one answer without memory for all seeds: it was asked once."""
        if self.manifest.bare_per_seed:
            return False
        answers: defaultdict[str, set[tuple[str | None, bool]]] = defaultdict(set)
        for row in self.rows(self.bare):
            answers[row.question].add((row.sql, row.right))
        return all(len(given) == 1 for given in answers.values())

    @cached_property
    def repairs(self) -> tuple[Outcome, ...]:
        """The repair pass without memory under the oracle, which gives P_K."""
        side = self._without_memory("repair")
        return self._rows[side] if side else ()

    @cached_property
    def engine_repairs(self) -> tuple[Outcome, ...]:
        """The same begun and accepted by what the engine shows, without an oracle, which gives P_E."""
        side = self.engine_repair
        return self._rows[side] if side else ()

    @property
    def engine_repair(self) -> Side | None:
        """The arm and setting of that pass: the strongest rival that memory has without an oracle."""
        return self._without_memory("engine-repair")

    def _without_memory(self, setting: str) -> Side | None:
        passes = {side: rows for side, rows in self._rows.items() if side.setting == setting}
        bare = [side for side in passes if not self.arms[side.arm].remembers]
        unaided = [side for side, rows in passes.items() if not any(row.cards for row in rows)]
        return next(iter((*bare, *unaided)), None)

    @cached_property
    def reruns(self) -> tuple[Outcome, ...]:
        """Banked questions answered again without memory."""
        return self.rows(self.default, "rerun") or self.rows(self.bare, "rerun")

    def by_seed(self, rows: Collection[Outcome], rule: str | None = None) -> dict[int, float | None]:
        """Accuracy per seed in percent, None where the seed has no rows."""
        return {seed: percent_right([row for row in rows if row.seed == seed], rule) for seed in self.seeds}

    # ── how arms compare ─────────────────────────────────────────────────────────────────────────────────────────────

    def pairs(self, a: Arm | None, b: Arm | None, setting: str = "transfer") -> tuple[Pair, ...]:
        """The same questions under two arms."""
        return pair_up(self.rows(a, setting), self.rows(b, setting))

    def pairs_of(self, a: Side, b: Side) -> tuple[Pair, ...]:
        """The same questions under two arms, each in its setting."""
        return pair_up(self._rows.get(a, ()), self._rows.get(b, ()))

    @cached_property
    def headline(self) -> tuple[Pair, ...]:
        """Memory against none, on held-out questions."""
        return self.pairs(self.bare, self.default)

    def compare(self, a: Arm | None, b: Arm | None, method: str = "") -> Comparison | None:
        """b - a on held-out questions, or None where the arms share none that could be judged."""
        if a is None or b is None:
            return None
        return self.compare_sides(Side(a.name), Side(b.name), method)

    def compare_sides(self, a: Side, b: Side, method: str = "") -> Comparison | None:
        """Compare b with a on the questions that both sides answered; None where none could be judged."""
        key = (a, b, method or self.method)
        if key not in self._compared:
            pairs = self.pairs_of(a, b)
            judged = any(pair.evaluable for pair in pairs)
            self._compared[key] = compare(to_outcomes(pairs), method=key[2]) if judged else None
        return self._compared[key]

    @cached_property
    def against_engine_repair(self) -> Comparison | None:
        """P_M - P_E: the default memory in one shot against repair without memory and without an oracle."""
        rival = self.engine_repair
        return self.compare_sides(rival, Side(self.default.name)) if rival else None

    def runtimes(self, *sides: Side) -> tuple[str, ...]:
        """Name the runtimes that answered for these sides, or for all; none in older ledgers."""
        rows = [row for side in sides for row in self._rows.get(side, ())] if sides else self.ledger.outcomes
        named = {runtime for row in rows for runtime in row.runtime.split(" + ") if runtime}
        return tuple(sorted(named))

    def equivalence(self, a: Arm | None, b: Arm | None, *, margin: float) -> Equivalence | None:
        """Tell whether b lies within so many points of a; None without a margin or without pairs."""
        if margin <= 0 or self.compare(a, b) is None:
            return None
        outcomes = to_outcomes(self.pairs(a, b))
        rng = np.random.default_rng(0)
        return equivalence(table=outcomes.differences, margin_pp=margin, rng=rng, method=self.method)

    def ratio(self, arm: Arm | None) -> Ratio | None:
        """CR of an arm, or None where floor, memory or repair is missing."""
        if arm is None:
            return None
        if arm.name not in self._ratios:
            self._ratios[arm.name] = self._ratio(arm)
        return self._ratios[arm.name]

    def _ratio(self, arm: Arm) -> Ratio | None:
        passes = (self.rows(self.bare), self.rows(arm), self.repairs)
        shared = set.intersection(*({(row.seed, row.question) for row in rows} for rows in passes))
        if not shared:
            return None
        floor, memory, repaired = (self._in_order(rows, shared) for rows in passes)
        counts = settings.seed_counts(floor=floor, memory=memory, repaired=repaired)
        held_out: Sequence[HeldOut] = settings.held_out(floor=floor, memory=memory, repaired=repaired)
        return Ratio(
            ratio=crystallization_ratio(seeds=counts),
            counts=dict(zip(dict.fromkeys(row.seed for row in floor), counts, strict=True)),
            estimates={
                method: ratio_estimate(outcomes=held_out, rng=np.random.default_rng(0), method=method)
                for method in (self.method, self.beside)
            },
        )

    @cached_property
    def whole_headroom(self) -> WholeHeadroom | None:
        """Repair over every question, held out or collected; None where the collection did not repair as P_K's does."""
        side, collected = self._without_memory("repair"), self.rows(self.default, "collection")
        alike = side is not None and self.arms[side.arm].source == self.default.source
        if not alike or self.default.admission != "oracle" or not collected:
            return None
        return whole_headroom((*self.repairs, *(row for row in collected if not row.cards)))

    def _in_order(self, rows: Iterable[Outcome], keys: set[tuple[int, str]]) -> list[Outcome]:
        """The rows of these questions, seed by seed in the study's order."""
        kept = [row for row in rows if (row.seed, row.question) in keys]
        return sorted(kept, key=lambda row: self.seeds.index(row.seed))

    def by_luck(self, pairs: Iterable[Pair]) -> int:
        """Count the changes whose right answer fits the shipped rows alone."""
        lucky = set(self.ledger.lucky or ())
        return sum(pair.key in lucky for pair in pairs)

    # ── cards ────────────────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def _banks(self) -> dict[tuple[str, int], dict[CardId, BankedCard]]:
        banks: defaultdict[tuple[str, int], dict[CardId, BankedCard]] = defaultdict(dict)
        for card in self.ledger.cards:
            banks[card.arm, card.seed][card.id] = card
        return dict(banks)

    def bank(self, arm: Arm, seed: int) -> dict[CardId, BankedCard]:
        """The cards an arm draws on: its own, or those of an arm that collects, writes and cuts its bank alike."""
        alike = ("source", "admission", "writer", "correspondence", "bank", "passes")
        twins = (
            other.name
            for other in self.arms.values()
            if all(getattr(other, field) == getattr(arm, field) for field in alike)
        )
        return next((self._banks[name, seed] for name in (arm.name, *twins) if (name, seed) in self._banks), {})

    def cards(self, arm: Arm) -> list[BankedCard]:
        """The cards an arm draws on, over the seeds it was run under."""
        return [card for seed in self.seeds_of(arm) for card in self.bank(arm, seed).values()]

    def window(self, arm: Arm, row: Outcome) -> list[BankedCard]:
        """The cards a question was shown, best first; a card of another arm's bank is looked up by its id."""
        own = self.bank(arm, row.seed)
        shown = [own.get(card) or self._anywhere.get((row.seed, card)) for card in row.cards]
        return [card for card in shown if card is not None]

    @cached_property
    def _anywhere(self) -> dict[tuple[int, CardId], BankedCard]:
        return {(card.seed, card.id): card for card in reversed(self.ledger.cards)}


def percent_right(rows: Iterable[Outcome], rule: str | None = None) -> float | None:
    """Percent right over all questions; an unevaluable question counts as wrong."""
    return settings.accuracy(rows, rule=rule).percent


def _fits(arm: Arm, target: Wanted) -> bool:
    return all(
        getattr(arm, factor) in value if isinstance(value, tuple) else getattr(arm, factor) == value
        for factor, value in target.items()
    )


class Completeness(Struct, frozen=True, kw_only=True, dict=True):
    """The arms of a study, and the settings that each still lacks."""

    folder: str
    """The folder in which the study was run."""
    arms: tuple[str, ...]
    missing: dict[str, tuple[str, ...]]
    """By arm, the settings that are not complete."""
    begun: frozenset[str] = frozenset()
    """The arms that have answers in any setting."""
    confirmatory: frozenset[str] = frozenset()
    """The arms that the confirmatory contrasts compare."""

    @cached_property
    def recorded(self) -> int:
        """Tell how many arms are complete."""
        return sum(name not in self.missing for name in self.arms)

    @property
    def interim(self) -> bool:
        """Tell whether anything is still to come."""
        return bool(self.missing)

    @property
    def counted(self) -> str:
        """Tell how many arms are recorded, in words, and whether what is missing is only tried out."""
        whole = bool(self.confirmatory) and self.confirmatory.isdisjoint(self.missing)
        partly = len(self.begun & self.missing.keys())
        return (
            f"{self.recorded} of {len(self.arms)} arms recorded"
            + ", every confirmatory one among them" * whole
            + (f", {partly} more in part" if partly else "")
        )

    @property
    def command(self) -> str:
        """Tell what fills the rest: the folder knows its study, with whatever was changed of it."""
        return f"sqlcrystal study run {shlex.quote(self.folder)} --set mode=fill"


def completeness(facts: Facts, folder: Path | None = None) -> Completeness:
    """Read off the manifest what is there and what is not; without a folder, the usual one is named."""
    missing: dict[str, tuple[str, ...]] = {}
    for label in facts.manifest.left_out:
        name, _, setting = label.rpartition("/")
        missing[name] = (*missing.get(name, ()), setting)
    location = folder or Path("runs") / facts.manifest.study
    planned = [contrast for contrast in facts.manifest.contrasts if contrast.confirmatory]
    return Completeness(
        folder=str(location),
        arms=tuple(facts.arms),
        missing=missing,
        begun=frozenset(row.arm for row in facts.ledger.outcomes if row.setting != "collection"),
        confirmatory=frozenset(name for contrast in planned for name in contrast.arms),
    )
