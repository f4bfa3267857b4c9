"""A truth to plan studies by: what memory does in each database of a published table or of a pilot study."""

from collections.abc import Sequence
from math import sqrt

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from sqlcrystal.errors import ConfigError, DataError
from sqlcrystal.measurement.clusters import Floats
from sqlcrystal.measurement.flips import Pair, stability


class DatabaseTruth(Struct, frozen=True, kw_only=True):
    """One database: shares of question–seed pairs, so that the lift is `fixed - broke`."""

    name: str
    questions: int
    """All its questions, of which each seed holds out a share."""
    floor: float
    """Right without memory."""
    fixed: float
    """Wrong without memory and right with it."""
    broke: float
    """Right without memory and wrong with it."""

    @property
    def lift(self) -> float:
        """Tell what memory adds."""
        return self.fixed - self.broke

    def moved_by(self, lift: float) -> "DatabaseTruth":
        """The same database under another lift: breaks stay as they are unless the loss is larger than they are."""
        broke = min(self.floor, max(self.broke, -lift))
        return replace(self, broke=broke, fixed=min(1 - self.floor, max(0.0, broke + lift)))


class Truth(Struct, frozen=True, kw_only=True):
    """Databases with known effects, and what holds for all of them."""

    name: str
    databases: tuple[DatabaseTruth, ...]
    seeds: int
    held_out: float
    """The share of questions that a seed holds out."""
    fixes_repeat: float
    """Share of fixes that every seed repeats; the others are churn, drawn anew for each seed."""
    breaks_repeat: float
    repaired: float
    """Share of the bare solver's failures that repair on demand solves."""
    repaired_if_fixed: float
    """The same share among memory's fixes: the two solve the same questions more often than chance."""

    @property
    def floor(self) -> float:
        """The accuracy without memory, pooled over questions."""
        sizes = [database.questions for database in self.databases]
        return float(np.average([database.floor for database in self.databases], weights=sizes))

    def check_lift(self, lift_pp: float) -> None:
        """Refuse a lift that no memory can have: more than is wrong without it, or a loss of more than is right."""
        if not -100 * self.floor <= lift_pp <= 100 * (1 - self.floor):
            raise ConfigError(
                f"--effect: {lift_pp:+g} points cannot be; {100 * self.floor:.1f} % are right without it, so that a"
                f" lift lies from {-100 * self.floor:.1f} to {100 * (1 - self.floor):+.1f}"
            )

    @property
    def lift(self) -> float:
        """The lift pooled over questions."""
        sizes = [database.questions for database in self.databases]
        return float(np.average([database.lift for database in self.databases], weights=sizes))


def sampling_variance(database: DatabaseTruth, truth: Truth, *, questions: int, seeds: int, held_out: float) -> float:
    """The variance of a database's observed lift when its true one is known: which questions, which churn.

    A question is right or wrong without memory whatever the seed, and is held out under m of the seeds. Its squared
    sum of changes has the mean m·p + m(m-1)·(r·p + (1-r)·p²), where p is the chance of a change and r the share of
    changes that every seed repeats.
    """
    once = seeds * held_out
    twice = seeds * (seeds - 1) * held_out**2
    squares = 0.0
    for share, chance, repeat in (
        (1 - database.floor, database.fixed, truth.fixes_repeat),
        (database.floor, database.broke, truth.breaks_repeat),
    ):
        rate = chance / share if share > 0 else 0.0
        squares += share * (once * rate + twice * (repeat * rate + (1 - repeat) * rate**2))
    mean = once * database.lift
    # Holding out a fixed share of the questions takes the variance of m itself out of the mean.
    centred = squares - mean**2 - database.lift**2 * once * (1 - held_out)
    return max(0.0, centred) / (questions * once**2)


def without_noise(truth: Truth) -> tuple[Truth, float]:
    """The truth with its databases' lifts drawn together, and the standard deviation between them that is left.

    Observed lifts differ by chance too. Taken as they stand, a simulation would add that noise a second time; so they
    are pulled towards their mean until sampling explains the rest.
    """
    lifts = np.array([database.lift for database in truth.databases])
    if len(lifts) < 2:
        return truth, 0.0
    noise = [
        sampling_variance(database, truth, questions=database.questions, seeds=truth.seeds, held_out=truth.held_out)
        for database in truth.databases
    ]
    observed = float(lifts.var(ddof=1))
    spread = sqrt(max(0.0, observed - float(np.mean(noise))))
    shrink = spread / sqrt(observed) if observed else 0.0
    moved = tuple(database.moved_by(truth.lift + shrink * (database.lift - truth.lift)) for database in truth.databases)
    return replace(truth, databases=moved), spread


def truth_from_pairs(
    *, name: str, pairs: Sequence[Pair], repaired: Floats | None, held_out: float, folds: bool = False
) -> Truth:
    """Take what a pilot study found as a truth to plan by; `repaired` says for each pair whether repair solves it.

    Folds hold every question out once, which is one split that holds out all of them.
    """
    if not pairs:
        raise DataError("no question was answered with and without memory: a pilot needs both")
    seeds = 1 if folds else len({pair.after.seed for pair in pairs})
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(pair.after.database, []).append(pair)
    wrong = np.array([not pair.before.right for pair in pairs])
    fixed = np.array([pair.verdict == "fix" for pair in pairs])
    solved = np.zeros(len(pairs)) if repaired is None else np.asarray(repaired, dtype=float)
    return Truth(
        name=name,
        databases=tuple(_observed(database, members, seeds, held_out) for database, members in groups.items()),
        seeds=seeds,
        held_out=held_out,
        fixes_repeat=_repeating(pairs, "fix"),
        breaks_repeat=_repeating(pairs, "break"),
        repaired=float(solved[wrong].mean()) if wrong.any() else 0.0,
        repaired_if_fixed=float(solved[fixed].mean()) if fixed.any() else 0.0,
    )


def _observed(name: str, pairs: Sequence[Pair], seeds: int, held_out: float) -> DatabaseTruth:
    count = len(pairs)
    return DatabaseTruth(
        name=name,
        questions=max(1, round(count / (seeds * held_out))),
        floor=sum(pair.before.right for pair in pairs) / count,
        fixed=sum(pair.verdict == "fix" for pair in pairs) / count,
        broke=sum(pair.verdict == "break" for pair in pairs) / count,
    )


def _repeating(pairs: Sequence[Pair], kind: str) -> float:
    """Of the changes in questions that several seeds hold out, the share that every seed repeats."""
    counts: dict[str, int] = {}
    for pair in pairs:
        counts[pair.after.question] = counts.get(pair.after.question, 0) + 1
    repeated = [pair for pair in pairs if counts[pair.after.question] > 1]
    stable = stability(repeated)
    stable_questions = set(stable.stable_fixes if kind == "fix" else stable.stable_breaks)
    changes = [pair for pair in repeated if pair.verdict == kind]
    return sum(pair.after.question in stable_questions for pair in changes) / len(changes) if changes else 0.5
