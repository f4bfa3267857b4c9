"""A ledger with the paper's published counts, so that the code that makes the tables is seen to make its numbers.

Which question is which does not matter to a count: pairs are laid out so that every database, seed and difficulty has
the paper's number of right answers, fixes and breaks.
"""

from functools import cache

from msgspec.structs import replace

from sqlcrystal.ledger.records import Arm, BankedCard, Contrast, Ledger, Manifest, Outcome
from sqlcrystal.study.report.facts import Facts
from sqlcrystal.study.report.paper import published
from sqlcrystal.types import CardId

STRATA = {"simple": (775, 60, 37), "moderate": (404, 51, 25), "challenging": (203, 16, 5), "": (1, 0, 0)}
"""Pairs, fixes and breaks by BIRD's difficulty; one pair has no label."""
TOKENS = {"none": (1232, 77), "k=1": (1371, 79), "W0": (1836, 78), "k=10": (2324, 78)}
BROKEN = 67
FLOOR = {"toxicology": 77, "superhero": 99, "california_schools": 20, "formula_1": 89, "european_football_2": 78}
FLOOR |= {"financial": 19, "thrombosis_prediction": 87, "codebase_community": 126, "student_club": 109}
FLOOR |= {"card_games": 112, "debit_card_specializing": 42}
"""Right answers without memory: the published percentage of the published number of pairs, to the nearest question."""


def _kinds() -> list[tuple[str, str]]:
    """Every pair's database and what memory does to it: fix, break, right or wrong."""
    rows = published().table["per-database"].rows
    pairs, broken = [], BROKEN
    for index, (name, questions, _, _, _, net) in enumerate(rows):
        gained = int(net.replace("−", "-"))
        share = broken // (len(rows) - index)
        broken -= share
        right = FLOOR[name] - share
        kinds = ["fix"] * (gained + share) + ["break"] * share + ["right"] * right
        pairs += [(name, kind) for kind in kinds + ["wrong"] * (int(questions) - len(kinds))]
    return pairs


def _seeds() -> dict[str, list[int]]:
    """For each kind of pair, the seeds its pairs belong to."""
    seeds: dict[str, list[int]] = {"fix": [], "break": [], "right": [], "wrong": []}
    for place, seed in enumerate(published().seed):
        broken = BROKEN // 3 + (place < BROKEN % 3)
        counts = {"fix": seed.memory - seed.floor + broken, "break": broken, "right": seed.floor - broken}
        counts["wrong"] = seed.n - sum(counts.values())
        for kind, count in counts.items():
            seeds[kind] += [seed.seed] * count
    return seeds


def _difficulties() -> dict[str, list[str]]:
    """For each kind of pair, the difficulties its pairs have."""
    difficulties: dict[str, list[str]] = {"fix": [], "break": [], "same": []}
    for name, (questions, fixed, broken) in STRATA.items():
        difficulties["fix"] += [name] * fixed
        difficulties["break"] += [name] * broken
        difficulties["same"] += [name] * (questions - fixed - broken)
    return difficulties


def _row(arm: str, seed: int, index: int, database: str, difficulty: str, right: bool) -> Outcome:
    prompt, completion = TOKENS[arm]
    return Outcome(
        arm=arm,
        setting="transfer",
        seed=seed,
        question=str(index),
        database=database,
        difficulty=difficulty,
        right=right,
        first_right=right,
        rules={"bird": right},
        kind="match" if right else "mismatch",
        sql="SELECT 1",
        cards=() if arm == "none" else (CardId("card"),),
        prompt_tokens=prompt,
        completion_tokens=completion,
    )


def _outcomes() -> list[Outcome]:
    seeds, difficulties = _seeds(), _difficulties()
    headroom = {seed.seed: seed.headroom for seed in published().seed}
    rows = []
    for index, (database, kind) in enumerate(_kinds()):
        seed = seeds[kind].pop()
        difficulty = difficulties[kind if kind in ("fix", "break") else "same"].pop()
        before, after = kind in ("right", "break"), kind in ("right", "fix")
        bare = _row("none", seed, index, database, difficulty, before)
        mends = not before and headroom[seed] > 0
        headroom[seed] -= mends
        rows += [bare, replace(bare, setting="repair", right=before or mends, first_right=before)]
        rows += [_row(arm, seed, index, database, difficulty, after) for arm in ("W0", "k=1", "k=10")]
    return rows


def _cards() -> list[BankedCard]:
    cards = []
    for name, _, count, *_ in published().table["per-database"].rows:
        for index in range(int(count)):
            card = CardId(f"{name}-{index}")
            cards.append(
                BankedCard(
                    arm="W0",
                    seed=42,
                    id=card,
                    database=name,
                    question_id=card,
                    question="",
                    sql="",
                    text="",
                    tokens=0,
                    source="T3",
                    signal="oracle",
                    right=True,
                )
            )
    return cards


@cache
def paper_facts() -> Facts:
    """The paper's main run as counts."""
    arms = (Arm(name="none", retriever="none", factor="retriever"), Arm(name="W0"))
    widths = tuple(Arm(name=f"k={k}", factor="k", k=k, base="W0") for k in (1, 10))
    manifest = Manifest(
        study="paper",
        digest="",
        version="",
        benchmark="BIRD dev",
        model="Qwen3.5-27B",
        model_digest="",
        embedder="",
        seeds=tuple(seed.seed for seed in published().seed),
        rule="bird",
        default_arm="W0",
        arms=(*arms, *widths),
        contrasts=(Contrast(name="W0 vs none", a="none", b="W0", confirmatory=True),),
    )
    return Facts(Ledger(manifest=manifest, outcomes=tuple(_outcomes()), cards=tuple(_cards())))
