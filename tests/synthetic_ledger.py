"""A deterministic, made-up study with every arm of the paper: for testing reports, never for reading results."""

from functools import cache
from hashlib import blake2b

from sqlcrystal.study.ledger import Arm, BankedCard, Contrast, Ledger, Manifest, Outcome
from sqlcrystal.study.report.document import Document, make_document
from sqlcrystal.study.report.facts import Facts
from sqlcrystal.types import CardId

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
DIFFICULTIES = ("simple", "simple", "moderate", "moderate", "challenging")
GAIN = {
    "none": 0.0,
    "W0": 0.08,
    "permuted": 0.07,
    "foreign": -0.03,
    "schema-similar": -0.02,
    "random": 0.04,
    "ungated": -0.04,
    "T4": 0.05,
    "none CoT": 0.05,
    "W0 CoT": 0.11,
    "W5-lesson": 0.03,
    "k=1": 0.04,
    "k=10": 0.12,
}
WRITERS = ("W1", "W2", "W3", "W3+A", "W4", "W5", "W5-lesson")


def arms() -> tuple[Arm, ...]:
    """Every arm of the paper, one change each against W0, and the two grids."""
    made = [Arm(name="none", factor="retriever", retriever="none", k=0), Arm(name="W0")]
    made += [Arm(name=writer, factor="writer", writer=writer) for writer in WRITERS]
    made += [
        Arm(name=r, factor="retriever", retriever=r)
        for r in ("bm25", "payload", "mmr", "random", "foreign", "schema-similar")
    ]
    made += [Arm(name=f"k={k}", factor="k", k=k) for k in (1, 3, 10)]
    made += [Arm(name=f"{w} k={k}", factor="k", writer=w, k=k) for w in ("W3+A", "W5") for k in (1, 3, 10)]
    made += [Arm(name=f"bank {b} k={k}", factor="bank", bank=b, k=k) for b in ("25%", "50%", "75%") for k in (5, 10)]
    made += [Arm(name="permuted", factor="correspondence", correspondence="permuted")]
    made += [Arm(name=s, factor="source", source=s) for s in ("T1", "T2", "T4", "success", "union")]
    made += [Arm(name=f"T3 as {s}", factor="bank", bank=f"matched:{s}:0") for s in ("T1", "T2", "T4")]
    made += [Arm(name=f"success as W0 {d}", factor="bank", source="success", bank=f"matched:W0:{d}") for d in (0, 1)]
    made += [Arm(name="ungated", factor="admission", source="T4", admission="ungated")]
    made += [Arm(name=f"noisy {n}", factor="admission", admission=f"noisy:{n}") for n in ("5%", "20%")]
    made += [
        Arm(name="none CoT", factor="solver", retriever="none", k=0, solver="chain-of-thought"),
        Arm(name="W0 CoT", factor="solver", solver="chain-of-thought"),
    ]
    return tuple(made)


CONTRASTS = (
    Contrast(name="memory", a="none", b="W0", confirmatory=True),
    Contrast(name="verification", a="ungated", b="T4", confirmatory=True),
    Contrast(name="width", a="k=1", b="k=10", confirmatory=True),
    Contrast(name="mispaired", a="none", b="permuted", confirmatory=True),
    Contrast(name="correspondence", a="permuted", b="W0", confirmatory=True),
    Contrast(name="W5 against W0", a="W0", b="W5"),
)


def draw(*parts: object) -> float:
    """A number in [0, 1) that depends on the parts alone."""
    return int.from_bytes(blake2b(repr(parts).encode(), digest_size=7).digest(), "big") / 2**56


WORDS = ("open", "late", "paid", "lost", "new", "old", "closed", "shared", "urgent", "foreign", "spare")


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
        self, roster: tuple[Arm, ...], seeds: tuple[int, ...], databases: tuple[str, ...], strength: float
    ) -> None:
        self.roster, self.seeds, self.databases, self.strength = roster, seeds, databases, strength
        self.outcomes: list[Outcome] = []
        self.cards: list[BankedCard] = []
        for seed in seeds:
            for database in databases:
                self.fill(seed, database)

    def fill(self, seed: int, database: str) -> None:
        order = sorted(range(QUESTIONS), key=lambda index: draw("split", seed, database, index))
        held, collected = order[:HELD_OUT], order[HELD_OUT:]
        banked = [index for index in collected if not self.solves("none", seed, database, index)][:6]
        for arm in self.roster:
            bank = self.bank(arm, seed, database, banked)
            for index in held:
                self.add(arm, "transfer", seed, database, index, bank)
            if arm.name in ("W0", "W1", "W2", "W3", "W3+A", "W4", "W5", "T1", "T2", "T4"):
                for index in banked:
                    self.add(
                        arm,
                        "replay",
                        seed,
                        database,
                        index,
                        bank,
                        right=draw("replay", arm.name, seed, database, index) < 0.96,
                    )
            if arm.name in ("none", "W0"):
                for index in held:
                    flips = draw("again", arm.name, seed, database, index) < 0.02
                    self.add(
                        arm,
                        "again",
                        seed,
                        database,
                        index,
                        bank,
                        right=self.solves(arm.name, seed, database, index) != flips,
                        run=1,
                    )
            if arm.name in ("W0", "W5"):
                for index in banked:
                    self.add(
                        arm,
                        "retention",
                        seed,
                        database,
                        index,
                        bank,
                        right=draw("keep", arm.name, seed, database, index) < 0.55,
                    )
        for index in banked:
            self.add(
                self.roster[0], "rerun", seed, database, index, [], right=draw("rerun", seed, database, index) < 0.02
            )
        for index in held:
            self.repair("none", "repair", seed, database, index)
            self.repair("W0", "repair", seed, database, index, cards=(CardId(f"W0-T3-{database}-{banked[0]}"),))
        for index in collected:
            self.repair("W0", "collection", seed, database, index, yields=index in banked)

    def bank(self, arm: Arm, seed: int, database: str, banked: list[int]) -> list[CardId]:
        share = int(arm.bank[:-1]) / 100 if arm.bank.endswith("%") else 1
        kept = banked[: max(1, round(share * len(banked)))]
        ids = []
        for index in kept:
            card = CardId(f"{arm.writer}-{arm.source}-{database}-{index}")
            ids.append(card)
            sql = sql_of(database, index, right=True)
            question = text_of(database, index)
            if arm.k:
                self.cards.append(
                    BankedCard(
                        arm=arm.name,
                        seed=seed,
                        id=card,
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
                )
        return ids

    def solves(self, arm: str, seed: int, database: str, index: int) -> bool:
        level = (
            0.45
            + 0.25 * draw("level", database)
            + self.strength * GAIN.get(arm, 0.07 + 0.03 * draw("arm", arm)) * (0.4 + 1.2 * draw("effect", database))
        )
        wobble = 0.3 * (draw("wobble", arm, seed, database, index) - 0.5)
        return draw("latent", database, index) + wobble < level

    def add(
        self,
        arm: Arm,
        setting: str,
        seed: int,
        database: str,
        index: int,
        bank: list[CardId],
        right: bool | None = None,
        run: int = 0,
    ) -> None:
        good = self.solves(arm.name, seed, database, index) if right is None else right
        window = tuple(sorted(bank, key=lambda card: draw("near", card, index))[: arm.k])
        self.outcomes.append(
            Outcome(
                arm=arm.name,
                setting=setting,
                seed=seed,
                question=f"{database}-{index}",
                database=database,
                difficulty=DIFFICULTIES[index % 5],
                right=good,
                first_right=good,
                rules={"bird": good, "subset": good or index % 29 == 0, "bag": good and index % 31 > 0},
                kind="match" if good else "mismatch",
                sql=sql_of(database, index, right=good, shown=bool(window)),
                cards=window,
                scores=tuple(0.9 - 0.1 * rank for rank in range(len(window))),
                prompt_tokens=900 + 110 * len(window),
                completion_tokens=60,
                seconds=6.0,
                run=run,
            )
        )

    def repair(
        self,
        arm: str,
        setting: str,
        seed: int,
        database: str,
        index: int,
        yields: bool | None = None,
        cards: tuple[CardId, ...] = (),
    ) -> None:
        drifts = draw("drift", seed, database, index) < 0.02
        first = (
            self.solves(arm, seed, database, index) != drifts
            if setting == "repair"
            else not yields and draw("c", index) < 0.6
        )
        luck = draw("repair", database, index)
        right = first or (luck < 0.4 if yields is None else yields)
        rounds = 0 if first else 1 + int(3 * luck / 0.4) if luck < 0.4 else 3
        self.outcomes.append(
            Outcome(
                arm=arm,
                setting=setting,
                seed=seed,
                question=f"{database}-{index}",
                database=database,
                difficulty=DIFFICULTIES[index % 5],
                right=right,
                first_right=first,
                rules={"bird": right, "subset": right, "bag": right},
                kind="match" if right else "mismatch",
                sql=sql_of(database, index, right=right),
                first_sql=sql_of(database, index, right=first),
                cards=cards,
                calls=1 + 2 * rounds,
                rounds=rounds,
                probes=3 * rounds,
                prompt_tokens=900 * (1 + 2 * rounds),
                completion_tokens=60 * (1 + 2 * rounds),
                seconds=6.0 * (1 + 2 * rounds),
            )
        )


def synthetic_ledger(
    *,
    only: tuple[str, ...] | None = None,
    seeds: tuple[int, ...] = SEEDS,
    databases: tuple[str, ...] = DATABASES,
    strength: float = 1.0,
    model: str = "made-up-1.5b",
) -> Ledger:
    """A study with these arms (all when None); the same call gives the same ledger."""
    roster = tuple(arm for arm in arms() if only is None or arm.name in only)
    study = Study(roster, seeds, databases, strength)
    names = {arm.name for arm in roster}
    return Ledger(
        manifest=Manifest(
            study="synthetic",
            digest="5e9a7c1b2d3f",
            version="0.1.0",
            benchmark="made-up",
            model=model,
            model_digest="sha256:0badcafe",
            embedder="words",
            seeds=seeds,
            rule="bird",
            default_arm="W0",
            arms=roster,
            contrasts=tuple(c for c in CONTRASTS if {c.a, c.b} <= names),
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
    """Its report, with a second model beside it and the paper's figures."""
    other = synthetic_ledger(only=("none", "W0", "W3+A"), strength=0.5, model="made-up-0.5b")
    return make_document([synthetic_facts(), Facts(other)], against_paper=True)
