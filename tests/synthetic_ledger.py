"""A deterministic, made-up study with every arm of studies/paper.toml: for testing reports, not for reading results."""

from collections.abc import Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path

from msgspec.structs import replace

from sqlcrystal.config import read_study
from sqlcrystal.ledger.records import Arm, BankedCard, Ledger, Manifest, Outcome
from sqlcrystal.study.design import COLLECTING, Design, PlannedArm, design
from sqlcrystal.study.report.document import Document, make_document
from sqlcrystal.study.report.facts import Facts
from sqlcrystal.types import CardId

PAPER = Path(__file__).parents[1] / "studies" / "paper.toml"
DATABASES = tuple(
    f"db_{name}"
    for name in (
        "clinic",
        "freight",
        "hangar",
        "museum",
        "orchard",
        "payroll",
        "permits",
        "telecom",
        "webshop",
        "observatory",
    )
)
SEEDS = (42, 7, 13)
QUESTIONS = 30
HELD_OUT = 9
BANKED = 6
DIFFICULTIES = ("simple", "simple", "moderate", "moderate", "challenging")
GAIN = {
    "none": 0.0,
    "W0": 0.08,
    "permuted": 0.07,
    "foreign": -0.03,
    "schema-similar": -0.02,
    "random": 0.04,
    "T4 ungated": -0.04,
    "T4": 0.05,
    "CoT none": 0.05,
    "CoT": 0.11,
    "explore first": 0.02,
    "W5-lesson": 0.03,
    "k=1": 0.04,
    "k=10": 0.12,
}
CHANCE = {"replay": 0.96, "retention": 0.55, "rerun": 0.02}
"""How often a banked question is right, by setting."""
YIELD = {"T1": 0.15, "T2": 0.15, "T4": 0.1, "explore": 0.12}
"""Which share of the failures a source repairs; the others repair what the default does."""
WORDS = ("open", "late", "paid", "lost", "new", "old", "closed", "shared", "urgent", "foreign", "spare")


@cache
def paper_design() -> Design:
    """The arms, settings and contrasts of studies/paper.toml."""
    return design(read_study(PAPER))


def draw(*parts: object) -> float:
    """A number in [0, 1) that depends on the parts alone."""
    return int.from_bytes(blake2b(repr(parts).encode(), digest_size=7).digest(), "big") / 2**56


def text_of(database: str, index: int) -> str:
    """What a question asks."""
    first, second, third = WORDS[index % 11], WORDS[(index // 2 + 3) % 11], WORDS[(index // 3 + 5) % 11]
    return f"How many {first} <i>{second}</i> records & {third} notes does region {index} of {database} keep?"


def sql_of(database: str, index: int, *, right: bool, shown: bool = False) -> str:
    """An answer; cards teach the literal and the table."""
    table = f"{database}_log" if right or shown else f"{database}_raw"
    value = f"{WORDS[index % 11]}-{database[3:]}" if right else f"Region {index}"
    tail = "".join(f" AND {WORDS[(index + step) % 11]} = {index % 7}" for step in range(index % 6))
    return f"SELECT COUNT(*) FROM {table} WHERE region = '{value}'{tail}"


class Study:
    """Builds the rows of one made-up study."""

    def __init__(
        self, roster: Sequence[PlannedArm], seeds: Sequence[int], databases: Sequence[str], strength: float
    ) -> None:
        self.roster, self.strength = roster, strength
        self.outcomes: list[Outcome] = []
        self.cards: list[BankedCard] = []
        for seed in seeds:
            for database in databases:
                self.fill(seed, database)

    def fill(self, seed: int, database: str) -> None:
        order = sorted(range(QUESTIONS), key=lambda index: draw("split", seed, database, index))
        held, collected = order[:HELD_OUT], order[HELD_OUT:]
        failed = [index for index in collected if not self.solves("none", seed, database, index)]
        banked = failed[:BANKED]
        for planned in self.roster:
            arm = planned.arm
            bank = self.bank(arm, seed, database, banked) if planned.remembers else []
            if collects(arm):
                self.collect(arm, seed, database, collected, banked)
            for setting in planned.settings:
                asked = banked if setting in CHANCE else held
                for index in asked:
                    self.answer(arm, setting, seed, database, index, bank)

    def bank(self, arm: Arm, seed: int, database: str, banked: list[int]) -> list[CardId]:
        share = int(arm.bank[:-1]) / 100 if arm.bank.endswith("%") else 1
        kept = banked[: max(1, round(share * len(banked)))]
        moved = kept[1:] + kept[:1] if arm.correspondence == "permuted" else kept
        ids = []
        for index, paired in zip(kept, moved, strict=True):
            ids.append(CardId(f"{arm.writer}-{arm.source}-{database}-{index}"))
            sql, question = sql_of(database, paired, right=True), text_of(database, index)
            card = BankedCard(
                arm=arm.name,
                seed=seed,
                id=ids[-1],
                database=database,
                question_id=f"{database}-{index}",
                question=question,
                sql=sql,
                text=f"Q: {question}\n```sql\n{sql}\n```",
                tokens=100,
                source=arm.source,
                signal=arm.admission,
                right=arm.admission != "ungated" or index % 9 == 0,
                modes=("value-literal",),
            )
            self.cards.append(card)
        return ids

    def solves(self, arm: str, seed: int, database: str, index: int) -> bool:
        effect = GAIN.get(arm, 0.07 + 0.03 * draw("arm", arm)) * (0.4 + 1.2 * draw("effect", database))
        level = 0.45 + 0.25 * draw("level", database) + self.strength * effect
        wobble = 0.3 * (draw("wobble", arm, seed, database, index) - 0.5)
        return draw("latent", database, index) + wobble < level

    def answer(self, arm: Arm, setting: str, seed: int, database: str, index: int, bank: list[CardId]) -> None:
        """One row of transfer, again, repair, replay, retention or rerun."""
        right = self.solves(arm.name, seed, database, index)
        if setting in CHANCE:
            right = draw(setting, arm.name, seed, database, index) < CHANCE[setting]
        if setting == "again":
            right = right != (draw("again", arm.name, seed, database, index) < 0.02)
        row = self.row(arm.name, setting, seed, database, index, right)
        nearness = "near" if arm.retriever == "dense" else arm.retriever
        ranked = sorted(bank, key=lambda card: draw(nearness, card, index))
        own = () if setting == "rerun" else tuple(ranked[: arm.k])
        shown = sql_of(database, index, right=right, shown=bool(own))
        row = replace(
            row,
            sql=shown,
            cards=own,
            scores=tuple(0.9 - 0.1 * rank for rank in range(len(own))),
            prompt_tokens=900 + 110 * len(own),
            run=1 if setting in ("again", "rerun") else 0,
        )
        if setting == "repair":
            drifts = draw("drift", seed, database, index) < 0.02
            row = self.repaired(row, first=right != drifts, luck=draw("repair", database, index), chance=0.4)
        self.outcomes.append(row)

    def collect(self, arm: Arm, seed: int, database: str, collected: list[int], banked: list[int]) -> None:
        """The pass that built an arm's bank; a second pass asks again what the first left without a card."""
        for index in collected:
            first = self.solves("none", seed, database, index)
            luck = draw("collect", arm.source, seed, database, index)
            chance = YIELD.get(arm.source, 1.0 if index in banked else 0.0)
            row = self.row(arm.name, "collection", seed, database, index, first)
            row = self.repaired(row, first=first, luck=luck, chance=chance)
            self.outcomes.append(row)
            if arm.passes > 1 and not row.right:
                again = replace(row, cards=(CardId("shown"),))
                self.outcomes.append(self.repaired(again, first=False, luck=luck, chance=0.1))

    def row(self, arm: str, setting: str, seed: int, database: str, index: int, right: bool) -> Outcome:
        return Outcome(
            arm=arm,
            setting=setting,
            seed=seed,
            question=f"{database}-{index}",
            database=database,
            difficulty=DIFFICULTIES[index % 5],
            right=right,
            first_right=right,
            rules={"bird": right, "subset": right or index % 29 == 0, "bag": right and index % 31 > 0},
            kind="match" if right else "mismatch",
            sql=sql_of(database, index, right=right),
            prompt_tokens=900,
            completion_tokens=60,
            seconds=6.0,
        )

    def repaired(self, row: Outcome, *, first: bool, luck: float, chance: float) -> Outcome:
        """The row after up to three rounds of repair, of two calls and three probes each."""
        right = first or luck < chance
        rounds = 0 if first else 1 + int(3 * luck / chance) if right else 3
        return replace(
            row,
            right=right,
            first_right=first,
            accepted=right and not first,
            round_calls=(2,) * rounds,
            rules={"bird": right, "subset": right, "bag": right},
            kind="match" if right else "mismatch",
            calls=1 + 2 * rounds,
            rounds=rounds,
            probes=3 * rounds,
            prompt_tokens=row.prompt_tokens + 1800 * rounds,
            completion_tokens=60 * (1 + 2 * rounds),
            seconds=6.0 * (1 + 2 * rounds),
        )


def collects(arm: Arm) -> bool:
    """Whether an arm has a collection of its own."""
    return arm.retriever != "none" and arm.bank == "full" and (not arm.base or arm.factor in COLLECTING)


def synthetic_ledger(
    *,
    only: tuple[str, ...] | None = None,
    seeds: tuple[int, ...] = SEEDS,
    databases: tuple[str, ...] = DATABASES,
    strength: float = 1.0,
    model: str = "made-up-1.5b",
    benchmark: str = "made-up",
) -> Ledger:
    """A study with these arms of studies/paper.toml (all when None); the same call gives the same ledger."""
    plan = paper_design()
    roster = [planned for planned in plan.arms if only is None or planned.name in only]
    study = Study(roster, seeds, databases, strength)
    names = {planned.name for planned in roster}
    return Ledger(
        manifest=Manifest(
            study="synthetic",
            digest="5e9a7c1b2d3f",
            version="0.1.0",
            benchmark=benchmark,
            model=model,
            model_digest="sha256:0badcafe",
            embedder="words",
            seeds=seeds,
            rule="bird",
            default_arm=plan.default,
            arms=tuple(planned.arm for planned in roster),
            contrasts=tuple(contrast for contrast in plan.contrasts if {contrast.a, contrast.b} <= names),
            budget=3,
            max_tokens=2048,
            card_order="rank",
            check="bird",
            recordings=("made-up.jsonl.xz",),
            equivalence_margin=2.5,
            started="2026-01-01T00:00:00Z",
            finished="2026-01-01T01:00:00Z",
        ),
        outcomes=tuple(study.outcomes),
        cards=tuple(study.cards),
        questions={f"{d}-{i}": text_of(d, i) for d in databases for i in range(QUESTIONS)},
    )


@cache
def synthetic_facts() -> Facts:
    """The whole made-up study, made once per process."""
    return Facts(synthetic_ledger())


@cache
def synthetic_document() -> Document:
    """Its report, with a second model and a second benchmark beside it and the paper's figures."""
    others = (
        synthetic_ledger(only=("none", "W0", "W3+A", "W5"), strength=0.5, model="made-up-0.5b"),
        synthetic_ledger(only=("none", "W0", "W3+A"), seeds=SEEDS[:2], benchmark="made-up-2"),
    )
    return make_document([synthetic_facts(), *map(Facts, others)], against_paper=True)
