"""The controlled comparisons: the study's contrasts, the paper's roster on its arms, the verdict, identical runs."""

from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sqlcrystal.ledger.records import Arm, Contrast, Side
from sqlcrystal.measurement.comparison import ENOUGH_SEEDS, Comparison
from sqlcrystal.measurement.flips import Drift, Pair, observed, pair_up
from sqlcrystal.measurement.statistics import ALPHA, FamilyReading, read_family
from sqlcrystal.study.report.facts import PAPERS_METHOD, Facts
from sqlcrystal.study.report.table import plural

HEADLINE_KEY = "transfer"


class Finding(Struct, frozen=True, kw_only=True):
    """One comparison with what came of it; differences in percentage points, b - a."""

    key: str
    asks: str
    """The question it answers, in plain words; empty for a contrast that only the study file knows."""
    factor: str
    a: str
    b: str
    result: Comparison
    """By the method that decides."""
    beside: Comparison
    """By the other one."""
    confirmatory: bool = False
    split: str = "seed"
    """The word for one of the study's splits."""
    family: FamilyReading | None = None
    """Its reading within the confirmatory family; None outside it."""
    runtimes: tuple[str, ...] = ()
    """The runtimes of the weights in its answers: more than one means that the difference is also one of runtimes."""

    @property
    def name(self) -> str:
        """The two arms."""
        return f"{self.b} − {self.a}"

    @property
    def preliminary(self) -> bool:
        """Tell whether it rests on fewer than three seeds."""
        return self.result.n_seeds < ENOUGH_SEEDS

    @property
    def primary(self) -> bool:
        """Tell whether it is the one confirmatory contrast that is tested first and unadjusted."""
        return self.family is not None and self.family.primary

    @property
    def status(self) -> str:
        """Tell how the comparison may be read."""
        status = "confirmatory" if self.confirmatory else "exploratory"
        return f"{status}, preliminary" if self.preliminary else status

    @property
    def role(self) -> str:
        """The status, with `primary` in place of `confirmatory` for the primary contrast."""
        return self.status.replace("confirmatory", "primary") if self.primary else self.status

    @property
    def told_from_zero(self) -> bool:
        """Tell whether its own p is below 5 %."""
        return self.result.p_value is not None and self.result.p_value < ALPHA

    @property
    def supported(self) -> bool:
        """Tell whether the difference is told from zero, within its family if it has one, over three seeds or more."""
        claimed = self.family.supported if self.family else self.told_from_zero
        return claimed and not self.preliminary

    @property
    def two_stage(self) -> Comparison:
        """The comparison by the paper's own method, which decides or stands beside."""
        return self.result if self.result.method == PAPERS_METHOD else self.beside

    @property
    def supported_in_the_paper(self) -> bool:
        """Tell whether the paper would call it supported: p of its two-stage bootstrap below 5 %, unadjusted."""
        return self.two_stage.p_value is not None and self.two_stage.p_value < ALPHA

    @property
    def papers_verdict(self) -> str:
        """The paper's reading in words."""
        if self.two_stage.p_value is None:
            return "no interval"
        return "supported" if self.supported_in_the_paper else "CI includes zero"

    @property
    def verdict(self) -> str:
        """Our reading in words."""
        if self.result.p_value is None:
            return self.result.undefined
        if self.preliminary:
            return f"preliminary: fewer than three {self.split}s"
        if not self.told_from_zero:
            return "interval includes zero"
        if self.supported:
            return "supported" if self.confirmatory else "excludes zero (exploratory)"
        behind_primary = self.family is not None and not (self.family.holm_p is None or self.family.holm_p >= ALPHA)
        return "not claimed: the primary contrast is not supported" if behind_primary else "not supported after Holm"


class Planned(Struct, frozen=True, kw_only=True):
    """A comparison of the roster: what a and b change against the default; "none" stands for no memory."""

    key: str
    group: str
    factor: str
    asks: str
    a: Literal["none"] | dict[str, str | int | list[str]]
    b: Literal["none"] | dict[str, str | int | list[str]]
    reading: str = ""
    """The claim that a supported positive difference makes."""


def _read_roster() -> dict[str, Planned]:
    text = resources.files("sqlcrystal.study.report").joinpath("roster.toml").read_bytes()
    listed = msgspec.toml.decode(text, type=dict[str, list[Planned]])["comparison"]
    return {plan.key: plan for plan in listed}


ROSTER = _read_roster()
MECHANISM = tuple(plan for plan in ROSTER.values() if plan.group == "mechanism")
DECISIONS = tuple(plan for plan in ROSTER.values() if plan.group == "decision")
INGREDIENTS = tuple(plan for plan in ROSTER.values() if plan.group == "ingredient")
SOLVERS = tuple(plan for plan in ROSTER.values() if plan.group == "solver")


def resolve(facts: Facts, planned: Planned) -> tuple[Arm | None, Arm | None]:
    """The recorded arms a planned comparison is about; None where there is none."""
    b = _arm(facts, planned.b)
    solver = b.solver if b and b.remembers else facts.default.solver
    a = facts.bare_with(solver) if planned.a == "none" else _arm(facts, planned.a)
    return a, b


def in_design(facts: Facts, planned: Planned) -> bool:
    """Tell whether the study has arms for a comparison, recorded or not."""
    solvers = {arm.solver for arm in facts.arms.values() if not arm.remembers}

    def is_planned(side: str | Mapping[str, object]) -> bool:
        if isinstance(side, str):
            return bool(solvers)
        if side.get("retriever") == "none":
            return side["solver"] in solvers
        return _arm(facts, side, recorded=False) is not None

    return is_planned(planned.a) and is_planned(planned.b)


def _arm(facts: Facts, wanted: str | Mapping[str, object], *, recorded: bool = True) -> Arm | None:
    if isinstance(wanted, str):
        return facts.bare
    if wanted.get("retriever") == "none":
        return facts.bare_with(str(wanted["solver"]))
    search = facts.find if recorded else facts.planned
    filled = {factor: tuple(value) if isinstance(value, list) else value for factor, value in wanted.items()}
    bank = wanted.get("bank")
    if isinstance(bank, str) and "{" in bank:
        source = bank[bank.index("{") + 1 : bank.index("}")]
        target = facts.default if source == "default" else facts.planned(source=source)
        if target is None:
            return None
        filled["bank"] = bank.replace(f"{{{source}}}", target.name)
    return search(**filled)


def findings(facts: Facts, planned: Sequence[Planned]) -> tuple[Finding, ...]:
    """Every planned comparison the study has both arms for, in order."""
    family = {frozenset((contrast.a, contrast.b)): contrast for contrast in contrasts(facts) if contrast.confirmatory}
    compared = []
    for plan in planned:
        a, b = resolve(facts, plan)
        sides = [Side(arm.name) for arm in (a, b) if arm is not None]
        if len(sides) < 2:
            continue
        finding = _compare_sides(facts, *sides, key=plan.key, asks=plan.asks, factor=plan.factor)
        if finding is None:
            continue
        # A designated contrast keeps its role whichever way round the roster reads it.
        twin = family.get(frozenset((finding.a, finding.b)))
        compared.append(replace(finding, confirmatory=True, family=twin.family) if twin else finding)
    return tuple(compared)


def finding(facts: Facts, key: str) -> Finding | None:
    """One comparison of the roster by key."""
    return next(iter(findings(facts, [ROSTER[key]])), None)


def headline(facts: Facts) -> Finding | None:
    """Memory against none."""
    return finding(facts, HEADLINE_KEY)


def contrasts(facts: Facts) -> tuple[Finding, ...]:
    """The contrasts of the study file that were run; memory against none is read before the other confirmatory ones."""
    compared = []
    for contrast in facts.manifest.contrasts:
        changed = facts.arms.get(contrast.arms[1])
        factor = changed.factor if changed else ""
        finding = _compare_sides(facts, *contrast.sides, key=contrast.name, asks="", factor=factor)
        compared += [replace(finding, confirmatory=contrast.confirmatory)] if finding else []
    family = _family(facts, {finding.key: finding.result.p_value for finding in compared})
    return tuple(
        replace(finding, family=family[finding.key]) if finding.confirmatory else finding for finding in compared
    )


def oriented(facts: Facts) -> tuple[Finding, ...]:
    """The contrasts as a reader meets them: with the roster's question and turned its way, where it has one."""
    roster = {
        frozenset((finding.a, finding.b)): finding for finding in reversed(findings(facts, tuple(ROSTER.values())))
    }
    shown = []
    for contrast in contrasts(facts):
        twin = roster.get(frozenset((contrast.a, contrast.b)))
        shown.append(
            replace(twin, key=contrast.key, confirmatory=contrast.confirmatory, family=contrast.family)
            if twin
            else contrast
        )
    return tuple(shown)


def designated(facts: Facts) -> tuple[Contrast, ...]:
    """The confirmatory family as the study file names it, run or not."""
    return tuple(contrast for contrast in facts.manifest.contrasts if contrast.confirmatory)


def _family(facts: Facts, tested: Mapping[str, float | None]) -> dict[str, FamilyReading]:
    unaided = (arm for arm in facts.arms.values() if not arm.remembers and arm.solver == facts.default.solver)
    bare = next((arm.name for arm in unaided), "")
    chosen = {contrast.name: contrast for contrast in designated(facts)}
    primary = next(
        (name for name, contrast in chosen.items() if {contrast.a, contrast.b} == {bare, facts.default.name}), None
    )
    return read_family({name: tested.get(name) for name in chosen}, primary=primary)


def _compare_sides(facts: Facts, a: Side, b: Side, *, key: str, asks: str, factor: str) -> Finding | None:
    result, beside = facts.compare_sides(a, b), facts.compare_sides(a, b, facts.beside)
    if result is None or beside is None:
        return None
    runtimes = facts.runtimes(a, b)
    return Finding(
        key=key,
        asks=asks,
        factor=factor,
        a=str(a),
        b=str(b),
        result=result,
        beside=beside,
        runtimes=runtimes,
        split=facts.split,
    )


# ── the verdict on the lift ──────────────────────────────────────────────────────────────────────────────────────────

NOTHING_BANKED = "nothing to compare: no card was banked"
NOT_MEASURED = "not measured: memory or no memory is not recorded"
NOT_JUDGED = "not measured: no pair of answers could be judged"
UNKNOWN = (NOT_MEASURED, NOT_JUDGED)


def verdict(facts: Facts) -> str:
    """Tell what the study says of memory on new questions, and no more."""
    lift = headline(facts)
    if lift is None:
        return NOT_JUDGED if facts.headline else NOT_MEASURED
    if not any(row.cards for row in facts.rows(facts.default)):
        return NOTHING_BANKED
    if lift.result.p_value is None:
        return "cannot be judged over databases"
    change = _change(lift)
    if lift.preliminary:
        return f"preliminary, {plural(lift.result.n_seeds, lift.split)}: {change}"
    return change


def _change(lift: Finding) -> str:
    claimed = lift.family.supported if lift.family else lift.told_from_zero
    if not claimed:
        return "no clear change"
    return "memory raises accuracy" if lift.result.delta_pp > 0 else "memory lowers accuracy"


# ── identical runs ───────────────────────────────────────────────────────────────────────────────────────────────────


def observed_drift(facts: Facts) -> Drift | None:
    """The band over all transfers asked anew; a repair pass starts from the recorded attempt, and so is no rerun."""
    reruns: dict[str, tuple[Pair, ...]] = {}
    for arm in facts.arms.values():
        anew = facts.rows(arm, "again")
        for run in sorted({row.run for row in anew}):
            again = [row for row in anew if row.run == run]
            reruns[f"{arm.name}, run {run}"] = pair_up(facts.rows(arm), again)
    return observed(reruns)


def equivalence_margin(facts: Facts) -> float:
    """The study's margin of equivalence in points: its own, or the largest observed drift; 0 where it has none."""
    if not facts.manifest.margin_from_drift:
        return facts.manifest.equivalence_margin
    band = observed_drift(facts)
    return band.max_pp if band else 0.0
