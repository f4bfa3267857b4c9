"""The confidence in an answer: a calibrated probability of being right, from what is known without an oracle."""

import math
import re
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import NamedTuple

import msgspec
from msgspec import Struct
from sqlglot import exp

from sqlcrystal.databases.layout import layout_of
from sqlcrystal.databases.parsing import Unparsable, parse
from sqlcrystal.databases.symptoms import symptoms
from sqlcrystal.pipeline import Served
from sqlcrystal.protocols import Database
from sqlcrystal.solving.consensus import AGREEING, voices
from sqlcrystal.solving.solver import same_words

TRAITS = (
    "agreeing views",
    "differing views",
    "nearest card",
    "sign of trouble",
    "repaired",
    "does not run",
    "joins",
    "nested queries",
    "conditions",
    "groups or sets",
    "values not in the question",
    "words of the question",
    "tables of the schema",
)
"""The traits that a probability rests on; the weights of a model stand in this order."""
WORD = re.compile(r"[^\W_]+")
USUAL = {"words of the question": 2.5, "tables of the schema": 1.8}
"""The traits of a question's ease, as they usually are: 11 words, 5 tables. An easy question makes a sound answer
surer, and no other: of four answers that ran with a sign of trouble, to at most eight words, none was right."""
SHIPPED = "confidence.json"
PENALTY = 10.0
"""The strength with which weights are drawn to zero: a few hundred answers tell little of a dozen traits."""


class Example(NamedTuple):
    """The traits of an answer, the verdict on it, and the database that it is from."""

    traits: tuple[float, ...]
    right: bool
    database: str


class Confidence(Struct, frozen=True, kw_only=True):
    """A logistic model over traits: fitted on outcomes whose verdicts are known."""

    weights: tuple[float, ...]
    intercept: float
    fitted_on: str = ""
    """The outcomes that it was fitted on, in words."""

    def probability(self, traits: Sequence[float]) -> float:
        """Give the probability that an answer with these traits is right."""
        weighted = (weight * trait for weight, trait in zip(self.weights, weighed(traits), strict=True))
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, self.intercept + math.fsum(weighted)))))


def weighed(traits: Sequence[float]) -> tuple[float, ...]:
    """Give the traits as they bear on the probability: a question counts as easy only where its answer is sound."""
    known = dict(zip(TRAITS, traits, strict=True))
    return tuple({**known, **USUAL}.values() if known["sign of trouble"] else known.values())


@cache
def shipped() -> Confidence:
    """Read the model of the package."""
    text = resources.files("sqlcrystal.measurement").joinpath(SHIPPED).read_bytes()
    return msgspec.json.decode(text, type=Confidence)


def traits(served: Served, database: Database) -> tuple[float, ...]:
    """Tell of an answer what bears on its being right; no oracle and no model is asked."""
    attempt, sql = served.answer.attempt, served.sql
    agreeing, differing = _agreement(served)
    shown = symptoms(sql, database)
    question = attempt.question
    asked = question.text + " " + question.evidence
    return (
        float(agreeing),
        float(differing),
        max((retrieved.score for retrieved in served.answer.retrieved), default=0.0),
        float(bool(shown)),
        float(sql != attempt.sql),
        float(sql is None or any(symptom.startswith("It fails") for symptom in shown)),
        *_shape(sql, asked, database.dialect),
        math.log1p(len(WORD.findall(question.text))),
        math.log1p(len(layout_of(database.schema(), database.dialect))),
    )


def _agreement(served: Served) -> tuple[int, int]:
    """Count the sound views with the result of the one that stands, and the sound ones with another.

    A card whose very query the answer is speaks for it as another view would.
    """
    views = served.answer.attempt.views
    standing = next((view for view in views if view.sql == served.sql), None)
    agreeing = voices(views, standing) if standing is not None else 0
    differing = sum(view.sound for view in views) - agreeing
    vouched = any(same_words(retrieved.card.sql, served.sql) for retrieved in served.answer.retrieved)
    return (max(agreeing, AGREEING) if vouched else agreeing), differing


def _shape(sql: str | None, asked: str, dialect: str) -> tuple[float, ...]:
    """Measure a query: joins, nested queries, conditions, groups or sets, and values that the question lacks."""
    try:
        query = parse(sql or "", dialect)
    except Unparsable:
        return (0.0,) * 5
    words = asked.casefold()
    texts = [literal.name.casefold() for literal in query.find_all(exp.Literal) if literal.is_string]
    return (
        float(len(list(query.find_all(exp.Join)))),
        float(max(0, len(list(query.find_all(exp.Select))) - 1)),
        float(len([node for node in query.find_all(exp.Predicate) if not node.find_ancestor(exp.Join)])),
        float(len(list(query.find_all(exp.Group, exp.SetOperation)))),
        float(sum(text not in words for text in texts)),
    )


# ── fitting and judging ─────────────────────────────────────────────────────────────────────────────────────────────


def fit(
    examples: Sequence[Example], *, penalty: float = PENALTY, fitted_on: str = "", prior: Confidence | None = None
) -> Confidence:
    """Fit the weights by penalised maximum likelihood; a trait that never varies gets none.

    With a prior they are drawn to its weights instead of to zero, its intercept too: few examples move it little.
    """
    import numpy as np
    from scipy.optimize import minimize

    values = np.array([weighed(example.traits) for example in examples], dtype=float)
    right = np.array([example.right for example in examples], dtype=float)
    mean, spread = values.mean(axis=0), values.std(axis=0)
    varies = spread > 1e-9
    scaled = np.where(varies, (values - mean) / np.where(varies, spread, 1.0), 0.0)
    usual = np.array(prior.weights if prior else (0.0,) * len(TRAITS))
    middle = np.append(usual * np.where(varies, spread, 0.0), prior.intercept + usual @ mean if prior else 0.0)
    held = np.append(np.ones(len(TRAITS)), float(prior is not None))

    def loss(solution: "np.typing.NDArray[np.float64]") -> tuple[float, "np.typing.NDArray[np.float64]"]:
        margin = scaled @ solution[:-1] + solution[-1]
        residual = 1 / (1 + np.exp(-margin)) - right
        shrunk = held * (solution - middle)
        value = np.logaddexp(0, margin).sum() - right @ margin + penalty / 2 * shrunk @ shrunk
        return float(value), np.append(scaled.T @ residual, residual.sum()) + penalty * shrunk

    found = minimize(loss, middle, jac=True, method="L-BFGS-B").x
    weights = np.where(varies, found[:-1] / np.where(varies, spread, 1.0), usual)
    return Confidence(
        weights=tuple(round(float(weight), 6) for weight in weights),
        intercept=round(float(found[-1] - weights @ mean), 6),
        fitted_on=fitted_on,
    )


class Refit(Struct, frozen=True, kw_only=True):
    """A model drawn from the shipped one by a team's own verdicts, and how both did on verdicts that came later."""

    verdicts: int
    tested: int = 0
    """The later half: each verdict was foretold by a model fitted on those before it."""
    brier_shipped: float | None = None
    brier_refitted: float | None = None
    error: float | None = None
    """The calibration error, on the tested verdicts, of the model in use."""
    in_use: bool = False
    """True where the refitted model tells how sure answers are: only where it did better on the later verdicts."""
    model: Confidence


LEAST_VERDICTS = 20
"""Fewer verdicts than these refit nothing."""
EVERY_VERDICTS = 10
"""So many new verdicts are waited for before the model is fitted again."""


def refit(examples: Sequence[Example], *, prior: Confidence) -> Refit:
    """Draw a model from a team's verdicts, oldest first; where it foretold the later half no better, keep the prior.

    The later half is foretold in blocks, each by a model of the verdicts before it, as it would have been in service.
    """
    if len(examples) < LEAST_VERDICTS:
        return Refit(verdicts=len(examples), model=prior)
    said: list[float] = []
    half = len(examples) // 2
    for start in range(half, len(examples), EVERY_VERDICTS):
        model = fit(examples[:start], prior=prior)
        said += [model.probability(example.traits) for example in examples[start : start + EVERY_VERDICTS]]
    later = examples[half:]
    right = [example.right for example in later]
    before = calibration([prior.probability(example.traits) for example in later], right)
    after = calibration(said, right)
    better = after.brier < before.brier
    told = f"{prior.fitted_on}; {len(examples)} verdicts of the team"
    return Refit(
        verdicts=len(examples),
        tested=len(later),
        brier_shipped=round(before.brier, 6),
        brier_refitted=round(after.brier, 6),
        error=round((after if better else before).error, 6),
        in_use=better,
        model=fit(examples, prior=prior, fitted_on=told) if better else prior,
    )


def cross_fitted(examples: Sequence[Example], *, groups: int = 10) -> list[float]:
    """Give each example the probability of a model that was fitted without its database."""
    names = sorted({example.database for example in examples})
    group_of = {name: place % min(groups, len(names)) for place, name in enumerate(names)}
    found = [math.nan] * len(examples)
    for group in set(group_of.values()):
        rest = [example for example in examples if group_of[example.database] != group]
        model = fit(rest) if rest else None
        for place, example in enumerate(examples):
            if group_of[example.database] == group and model is not None:
                found[place] = model.probability(example.traits)
    return found


class Bin(NamedTuple):
    """The answers of one tenth of the scale: how many, how sure on average, and the share that is right."""

    n: int
    said: float
    right: float


class Calibration(NamedTuple):
    """The calibration of probabilities: how well they keep their word."""

    n: int
    bins: tuple[Bin, ...]
    error: float
    """The expected calibration error over ten equal bins of the scale."""
    brier: float
    surest_third: float
    """The share that is right among the third of the answers that are called surest."""


def calibration(said: Sequence[float], right: Sequence[bool]) -> Calibration:
    """Hold probabilities against verdicts."""
    pairs = sorted(zip(said, right, strict=True))
    bins = []
    for number in range(10):
        inside = [pair for pair in pairs if min(9, int(pair[0] * 10)) == number]
        if inside:
            bins.append(Bin(len(inside), _mean([p for p, _ in inside]), _mean([r for _, r in inside])))
    third = pairs[-max(1, len(pairs) // 3) :]
    return Calibration(
        n=len(pairs),
        bins=tuple(bins),
        error=sum(held.n * abs(held.said - held.right) for held in bins) / len(pairs),
        brier=_mean([(p - r) ** 2 for p, r in pairs]),
        surest_third=_mean([r for _, r in third]),
    )


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
