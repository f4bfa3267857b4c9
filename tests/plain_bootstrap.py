"""The paper's two-stage bootstrap as plain loops, and outcomes of the paper's shape to try it on."""

import random

import numpy as np

Pair = tuple[str, str, str, int, int]


def outcomes_like_the_paper(*, lift: float = 0.0434, seed: int = 0) -> list[Pair]:
    rng = np.random.default_rng(seed)
    rows: list[Pair] = []
    for group, held_out in enumerate((44, 39, 27, 52, 39, 32, 49, 56, 47, 57, 19)):
        right = rng.random(round(held_out / 0.3)) < 0.62
        moved = rng.random(len(right)) < np.where(right, 0.07, 0.07 + lift / 0.38)
        for held in ("42", "7", "13"):
            for question in rng.choice(len(right), held_out, replace=False):
                a = int(right[question])
                rows.append((f"d{group}", f"q{question}", held, a, int(a ^ moved[question])))
    return rows


def plain_two_stage(rows: list[Pair], resamples: int) -> list[float]:
    """The paper's bootstrap as loops, the reference for speed and for distribution."""
    rng = random.Random(0)
    questions: dict[str, dict[str, list[tuple[int, int]]]] = {}
    for database, question, _, a, b in rows:
        questions.setdefault(database, {}).setdefault(question, []).append((a, b))
    deltas = []
    for _ in range(resamples):
        right_a = right_b = n = 0
        for _ in questions:
            database = rng.choice(list(questions))
            keys = list(questions[database])
            for _ in keys:
                for a, b in questions[database][rng.choice(keys)]:
                    right_a, right_b, n = right_a + a, right_b + b, n + 1
        deltas.append(100 * (right_b - right_a) / n)
    return deltas
