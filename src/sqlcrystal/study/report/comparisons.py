"""The controlled comparisons: the study's own contrasts, and the paper's roster resolved against the study's arms."""

from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sqlcrystal.measurement.comparison import ENOUGH_SEEDS, Comparison
from sqlcrystal.measurement.multiplicity import read_family
from sqlcrystal.study.ledger import Arm
from sqlcrystal.study.report.facts import METHODS, Facts

ALPHA = 0.05


class Finding(Struct, frozen=True, kw_only=True):
    """One comparison with what it found; differences in percentage points, b - a."""

    key: str
    name: str
    factor: str
    a: str
    b: str
    found: Comparison
    two_stage: Comparison
    confirmatory: bool
    holm_p: float | None = None
    """Adjusted within the confirmatory family; None outside it, and for the primary contrast."""
    claimed: bool | None = None
    """Whether the confirmatory family supports it; None outside the family."""

    @property
    def status(self) -> str:
        """How the comparison may be read."""
        role = "confirmatory" if self.confirmatory else "exploratory"
        return role if self.found.n_seeds >= ENOUGH_SEEDS else f"{role}, preliminary"

    @property
    def told_from_zero(self) -> bool:
        """Whether the difference is told from zero by its own p, which is the paper's reading."""
        return self.found.p_value is not None and self.found.p_value < ALPHA

    @property
    def supported(self) -> bool:
        """Whether the difference is told from zero, within its family if it belongs to one."""
        return self.told_from_zero if self.claimed is None else self.claimed

    @property
    def verdict(self) -> str:
        """The reading in words."""
        if self.found.p_value is None:
            return self.found.undefined
        if not self.supported:
            if not self.told_from_zero:
                return "interval includes zero"
            adjusted = self.holm_p is not None and self.holm_p < ALPHA
            return "not claimed: the primary contrast is not supported" if adjusted else "not supported after Holm"
        if self.found.n_seeds < ENOUGH_SEEDS:
            return "preliminary"
        return "supported" if self.confirmatory else "excludes zero (exploratory)"


class Planned(Struct, frozen=True, kw_only=True):
    """A comparison of the paper: what a and b change against the default; "none" stands for no memory."""

    key: str
    group: str
    factor: str
    name: str
    a: Literal["none"] | dict[str, str | int | list[str]]
    b: Literal["none"] | dict[str, str | int | list[str]]
    reading: str = ""
    """What a supported positive difference says."""


def _read_roster() -> tuple[Planned, ...]:
    text = resources.files("sqlcrystal.study.report").joinpath("roster.toml").read_bytes()
    return tuple(msgspec.toml.decode(text, type=dict[str, list[Planned]])["comparison"])


ROSTER = _read_roster()
HEADLINE = tuple(planned for planned in ROSTER if planned.group == "headline")
MECHANISM = tuple(planned for planned in ROSTER if planned.group == "mechanism")
DECISIONS = tuple(planned for planned in ROSTER if planned.group == "decision")


def resolve(facts: Facts, planned: Planned) -> tuple[Arm | None, Arm | None]:
    """The arms a planned comparison is about; None where the study lacks one."""
    b = _arm(facts, planned.b)
    a = facts.bare_with(b.solver if b else facts.default.solver) if planned.a == "none" else _arm(facts, planned.a)
    return a, b


def _arm(facts: Facts, wanted: str | Mapping[str, object]) -> Arm | None:
    if isinstance(wanted, str):
        return facts.bare
    filled = {factor: tuple(value) if isinstance(value, list) else value for factor, value in wanted.items()}
    bank = wanted.get("bank")
    if isinstance(bank, str) and "{" in bank:
        source = bank[bank.index("{") + 1 : bank.index("}")]
        target = facts.default if source == "default" else facts.find(source=source)
        if target is None:
            return None
        filled["bank"] = bank.replace(f"{{{source}}}", target.name)
    return facts.find(**filled)


def findings(facts: Facts, planned: Sequence[Planned]) -> tuple[Finding, ...]:
    """Every planned comparison the study has both arms for, in order."""
    family = {(finding.a, finding.b): finding for finding in contrasts(facts) if finding.confirmatory}
    made = []
    for plan in planned:
        a, b = resolve(facts, plan)
        finding = _finding(facts, a, b, key=plan.key, name=plan.name, factor=plan.factor)
        if finding is None:
            continue
        twin = family.get((finding.a, finding.b))
        if twin:
            finding = replace(finding, confirmatory=True, holm_p=twin.holm_p, claimed=twin.claimed)
        made.append(finding)
    return tuple(made)


def finding(facts: Facts, key: str) -> Finding | None:
    """One comparison of the roster by key."""
    return next(iter(findings(facts, [plan for plan in ROSTER if plan.key == key])), None)


def contrasts(facts: Facts) -> tuple[Finding, ...]:
    """The contrasts the study file names; of the confirmatory ones, memory against none is read before the others."""
    named = [
        _finding(
            facts,
            facts.arms.get(contrast.a),
            facts.arms.get(contrast.b),
            key=contrast.name,
            name=contrast.name,
            factor=facts.arms[contrast.b].factor if contrast.b in facts.arms else "",
            confirmatory=contrast.confirmatory,
        )
        for contrast in facts.manifest.contrasts
    ]
    found = [finding for finding in named if finding is not None]
    tested = {finding.key: finding.found.p_value for finding in found}
    designated = {contrast.name: contrast for contrast in facts.manifest.contrasts if contrast.confirmatory}
    bare = facts.bare.name if facts.bare else ""
    primary = next((n for n, c in designated.items() if (c.a, c.b) == (bare, facts.default.name)), None)
    family = read_family({name: tested.get(name) for name in designated}, primary=primary)
    return tuple(
        replace(f, holm_p=family[f.key].holm_p, claimed=family[f.key].supported) if f.confirmatory else f for f in found
    )


def _finding(
    facts: Facts, a: Arm | None, b: Arm | None, *, key: str, name: str, factor: str, confirmatory: bool = False
) -> Finding | None:
    found, bootstrapped = (facts.compare(a, b, method) for method in METHODS)
    if a is None or b is None or found is None or bootstrapped is None:
        return None
    return Finding(
        key=key,
        name=name,
        factor=factor,
        a=a.name,
        b=b.name,
        found=found,
        two_stage=bootstrapped,
        confirmatory=confirmatory,
    )
