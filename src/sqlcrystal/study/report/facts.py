"""A ledger with its questions answered: which arm is which, who was right, and how two arms compare."""

from collections import defaultdict
from collections.abc import Collection
from functools import cached_property

import numpy as np
from msgspec import Struct

from sqlcrystal.errors import DataError
from sqlcrystal.measurement.comparison import Comparison, compare
from sqlcrystal.measurement.flips import UNEVALUABLE, Pair, pair_up, to_outcomes
from sqlcrystal.measurement.intervals import DEFAULT_METHOD
from sqlcrystal.measurement.ratio import (
    CrystallizationRatio,
    HeldOut,
    RatioEstimate,
    SeedCounts,
    crystallization_ratio,
    ratio_estimate,
)
from sqlcrystal.study.ledger import Arm, BankedCard, Ledger, Outcome
from sqlcrystal.types import CardId

FACTORS = ("source", "admission", "writer", "retriever", "k", "correspondence", "bank", "solver", "passes")
METHODS = (DEFAULT_METHOD, "two-stage")
Wanted = dict[str, object]
"""Factor values that differ from the default's; a tuple lists alternatives."""


class Ratio(Struct, frozen=True, kw_only=True):
    """CR of one arm, the counts it came from, and the outcomes behind them."""

    ratio: CrystallizationRatio
    counts: dict[int, SeedCounts]
    held_out: tuple[HeldOut, ...]

    def estimates(self) -> dict[str, RatioEstimate]:
        """CR with its interval by both methods."""
        return {
            method: ratio_estimate(outcomes=self.held_out, rng=np.random.default_rng(0), method=method)
            for method in METHODS
        }


class Facts:
    """Everything a report may ask of one ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger, self.manifest = ledger, ledger.manifest
        self.arms = {arm.name: arm for arm in ledger.manifest.arms}
        if ledger.manifest.default_arm not in self.arms:
            raise DataError(f"default_arm: {ledger.manifest.default_arm!r} is not among the arms")
        self.default = self.arms[ledger.manifest.default_arm]
        grouped: defaultdict[tuple[str, str], list[Outcome]] = defaultdict(list)
        for row in ledger.outcomes:
            grouped[row.arm, row.setting].append(row)
        self._rows = {key: tuple(rows) for key, rows in grouped.items()}
        self._compared: dict[tuple[str, str, str], Comparison | None] = {}
        self._ratios: dict[str, Ratio | None] = {}

    # ── which arm is which ───────────────────────────────────────────────────────────────────────────────────────────

    @property
    def seeds(self) -> tuple[int, ...]:
        """The study's seeds, in the order it names them."""
        return self.manifest.seeds

    @cached_property
    def bare(self) -> Arm | None:
        """The arm without memory, which gives P_0."""
        return self.bare_with(self.default.solver)

    def bare_with(self, solver: str) -> Arm | None:
        """The arm without memory under a solver."""
        return next((a for a in self.arms.values() if is_bare(a) and a.solver == solver and self.rows(a)), None)

    def find(self, **wanted: object) -> Arm | None:
        """The arm that differs from the default in exactly these factors and has transfer outcomes."""
        target: Wanted = {factor: getattr(self.default, factor) for factor in FACTORS} | wanted
        return next((a for a in self.arms.values() if not is_bare(a) and _fits(a, target) and self.rows(a)), None)

    def varying(self, *factors: str) -> tuple[Arm, ...]:
        """Arms with transfer outcomes that equal the default but for these factors."""
        fixed = [factor for factor in FACTORS if factor not in factors]
        return tuple(
            arm
            for arm in self.arms.values()
            if not is_bare(arm) and self.rows(arm) and all(getattr(arm, f) == getattr(self.default, f) for f in fixed)
        )

    # ── who was right ────────────────────────────────────────────────────────────────────────────────────────────────

    def rows(self, arm: Arm | None, setting: str = "transfer") -> tuple[Outcome, ...]:
        """The outcomes of an arm in a setting."""
        return () if arm is None else self._rows.get((arm.name, setting), ())

    @cached_property
    def repairs(self) -> tuple[Outcome, ...]:
        """The repair pass without memory, which gives P_K."""
        passes = [
            rows for (arm, setting), rows in self._rows.items() if setting == "repair" and is_bare(self.arms[arm])
        ]
        others = [rows for (_, setting), rows in self._rows.items() if setting == "repair"]
        return next(iter(passes), next((rows for rows in others if not any(row.cards for row in rows)), ()))

    def by_seed(self, rows: Collection[Outcome], rule: str | None = None) -> dict[int, float | None]:
        """Accuracy per seed in percent, None where the seed has no rows."""
        found: dict[int, float | None] = {}
        for seed in self.seeds:
            mine = [row.right if rule is None else row.rules.get(rule, False) for row in rows if row.seed == seed]
            found[seed] = 100 * sum(mine) / len(mine) if mine else None
        return found

    # ── how arms compare ─────────────────────────────────────────────────────────────────────────────────────────────

    def pairs(self, a: Arm | None, b: Arm | None, setting: str = "transfer") -> tuple[Pair, ...]:
        """The same questions under two arms."""
        return pair_up(self.rows(a, setting), self.rows(b, setting))

    @cached_property
    def headline(self) -> tuple[Pair, ...]:
        """Memory against none, on held-out questions."""
        return self.pairs(self.bare, self.default)

    def compare(self, a: Arm | None, b: Arm | None, method: str = METHODS[0]) -> Comparison | None:
        """b - a on held-out questions, or None where the arms share none."""
        if a is None or b is None:
            return None
        key = (a.name, b.name, method)
        if key not in self._compared:
            pairs = self.pairs(a, b)
            self._compared[key] = compare(to_outcomes(pairs), method=method) if pairs else None
        return self._compared[key]

    def ratio(self, arm: Arm | None) -> Ratio | None:
        """CR of an arm, or None where floor, memory or repair is missing."""
        if arm is None:
            return None
        if arm.name not in self._ratios:
            self._ratios[arm.name] = self._ratio(arm)
        return self._ratios[arm.name]

    def _ratio(self, arm: Arm) -> Ratio | None:
        repaired = {(row.seed, row.question): row for row in self.repairs}
        held_out = [
            HeldOut(
                database=pair.after.database,
                question=pair.after.question,
                seed=str(pair.after.seed),
                floor=pair.before.right,
                memory=pair.after.right,
                repair_floor=repaired[pair.key].first_right,
                repaired=repaired[pair.key].right,
            )
            for pair in self.pairs(self.bare, arm)
            if pair.key in repaired
        ]
        if not held_out:
            return None
        counts = {seed: _counts([row for row in held_out if row.seed == str(seed)]) for seed in self.seeds}
        present = {seed: count for seed, count in counts.items() if count.n}
        ratio = crystallization_ratio(seeds=list(present.values()))
        return Ratio(ratio=ratio, counts=present, held_out=tuple(held_out))

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
        names = [
            arm.name,
            *(o.name for o in self.arms.values() if all(getattr(o, f) == getattr(arm, f) for f in alike)),
        ]
        return next((self._banks[name, seed] for name in names if (name, seed) in self._banks), {})

    def window(self, arm: Arm, row: Outcome) -> list[BankedCard]:
        """The cards a question was shown, best first; a card of another arm's bank is looked up by its id."""
        own = self.bank(arm, row.seed)
        found = [own.get(card) or self._anywhere.get((row.seed, card)) for card in row.cards]
        return [card for card in found if card is not None]

    @cached_property
    def _anywhere(self) -> dict[tuple[int, CardId], BankedCard]:
        return {(card.seed, card.id): card for card in reversed(self.ledger.cards)}


def is_bare(arm: Arm) -> bool:
    """Whether an arm runs without memory."""
    return arm.name == "none" or arm.retriever == "none" or arm.k == 0


def accuracy(rows: Collection[Outcome]) -> float | None:
    """Percent right over all questions; an unevaluable question counts as wrong."""
    return 100 * sum(row.right for row in rows) / len(rows) if rows else None


def evaluable(rows: Collection[Outcome]) -> tuple[Outcome, ...]:
    """The outcomes that could be compared with gold at all."""
    return tuple(row for row in rows if row.kind not in UNEVALUABLE)


def _fits(arm: Arm, target: Wanted) -> bool:
    return all(
        getattr(arm, factor) in value if isinstance(value, tuple) else getattr(arm, factor) == value
        for factor, value in target.items()
    )


def _counts(rows: Collection[HeldOut]) -> SeedCounts:
    return SeedCounts(
        n=len(rows),
        floor=sum(row.floor for row in rows),
        memory=sum(row.memory for row in rows),
        repaired=sum(row.repaired for row in rows),
        repair_floor=sum(row.repair_floor for row in rows),
    )
