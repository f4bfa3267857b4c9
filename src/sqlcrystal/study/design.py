"""The design of a study: its settings, its arms that each change one factor against their base, and their contrasts."""

import re
from typing import Literal

import msgspec
from msgspec import Struct

from sqlcrystal.admission.verifiers import RoundTrip
from sqlcrystal.assembly import REGIMES, RETRIEVERS, SOLVERS, SOURCES, WRITERS, log_share
from sqlcrystal.config import ArmEntry, StudyFile
from sqlcrystal.errors import ConfigError
from sqlcrystal.ledger.records import Arm, Contrast
from sqlcrystal.scoring.verdicts import rule_named


class Setting(Struct, frozen=True, kw_only=True):
    """One setting: a row of the table below."""

    name: str
    asks: Literal["everything", "collection", "collected", "held-out", "banked"]
    """The questions: all, those to learn from, the same once the bank is full, those held out, or the banked ones."""
    reworded: bool = False
    """Asked in other words, once for each paraphrase that the benchmark has of it."""
    memory: Literal["none", "others", "own"]
    """No cards; only cards that came from other questions; or the question's own card as well."""
    repairs: Literal["", "oracle", "engine"] = ""
    """The judge who says that repair is due and done; what held-out repair finds is never stored."""
    serves: bool = False
    """Answered and repaired by the code of the service, by its source and not the arm's."""
    repeats: bool = False
    """Asked anew as often as the study's `reruns` say, under numbers of their own."""
    in_context: bool = False
    """Read after the turns before it, where it is one of a dialogue; elsewhere each question is asked as it stands."""
    leaves_out: bool = False
    """Asked without each card of its window in turn, where memory changed the verdict."""


SETTINGS = {
    setting.name: setting
    for setting in (
        Setting(name="attempt", asks="everything", memory="none"),
        Setting(name="collection", asks="collection", memory="others", in_context=True),
        Setting(name="transfer", asks="held-out", memory="others"),
        Setting(name="dialogue", asks="held-out", memory="others", in_context=True),
        Setting(name="repair", asks="held-out", memory="others", repairs="oracle"),
        Setting(name="engine-repair", asks="held-out", memory="others", repairs="engine"),
        Setting(name="served", asks="held-out", memory="others", repairs="engine", serves=True),
        Setting(name="again", asks="held-out", memory="others", repeats=True),
        Setting(name="cause", asks="held-out", memory="others", leaves_out=True),
        Setting(name="collection-cause", asks="collected", memory="others", leaves_out=True),
        Setting(name="replay", asks="banked", memory="own"),
        Setting(name="retention", asks="banked", memory="others"),
        Setting(name="rerun", asks="banked", memory="none", repeats=True),
        Setting(name="paraphrase", asks="banked", memory="own", reworded=True),
        Setting(name="paraphrase-others", asks="banked", memory="others", reworded=True),
        Setting(name="paraphrase-none", asks="banked", memory="none", reworded=True),
    )
}
CHOICES = tuple(name for name, setting in SETTINGS.items() if setting.asks in ("held-out", "collected", "banked"))
"""The settings that an arm of a study file may name; first attempts and collections follow from these."""


FACTORS = tuple(name for name in ArmEntry.__struct_fields__ if name not in ("name", "base", "settings", "seeds"))
COLLECTING = ("source", "admission", "passes")
"""The factors that need a collection of their own."""
NOISY = re.compile(r"noisy:(\d+(?:\.\d+)?)%")
FRACTION = re.compile(r"(\d+(?:\.\d+)?)%")
MATCHED = re.compile(r"matched:(.+):(\d+)")
RETIRED = re.compile(r"retire:(.+)")
TRIAL = "collection-cause"
"""The setting whose answers decide which cards are retired."""


class PlannedArm(Struct, frozen=True):
    """An arm with the settings it is measured in."""

    arm: Arm
    settings: tuple[str, ...]
    seeds: tuple[int, ...]

    @property
    def name(self) -> str:
        """The arm's one spelling."""
        return self.arm.name

    @property
    def remembers(self) -> bool:
        """Tell whether the arm has a bank at all."""
        return self.arm.remembers


class Design(Struct, frozen=True):
    """The arms in the order they run, the default among them, and the contrasts in the order they are reported."""

    default: str
    arms: tuple[PlannedArm, ...]
    contrasts: tuple[Contrast, ...]

    def arm(self, name: str) -> PlannedArm:
        """The arm of that name."""
        return next(planned for planned in self.arms if planned.name == name)

    @property
    def confirmed(self) -> frozenset[str]:
        """The arms that the confirmatory contrasts compare, and the default."""
        named = {name for contrast in self.contrasts if contrast.confirmatory for name in contrast.arms}
        return frozenset({*named, self.default})

    def collects(self, planned: PlannedArm) -> bool:
        """Tell if the arm's factor asks for a collection of its own; other arms share that of their base."""
        if planned.name == self.default:
            return planned.remembers
        asks = planned.arm.factor == "writer" and WRITERS[planned.arm.writer].calls_model
        return planned.remembers and (planned.arm.factor in COLLECTING or asks)


def design(study: StudyFile) -> Design:
    """Work out every arm, and refuse one that differs from its base in more than the factor it names."""
    rule_named(study.check)
    rule_named(study.rule)
    default = _default(study.default)
    arms = {default.name: PlannedArm(default, study.default.settings, study.default.seeds or study.splits)}
    waiting = list(study.arm)
    while waiting:
        ready = [entry for entry in waiting if (entry.base or default.name) in arms]
        if not ready:
            names = [*arms, *(entry.name for entry in waiting)]
            raise ConfigError.unknown(f"arm {waiting[0].name!r}: base", waiting[0].base, set(names) - {waiting[0].name})
        for entry in ready:
            if entry.name in arms:
                raise ConfigError(f"arm {entry.name!r}: the name is used twice")
            base = arms[entry.base or default.name]
            arms[entry.name] = PlannedArm(_derived(entry, base.arm), entry.settings, entry.seeds or study.splits)
        waiting = [entry for entry in waiting if entry not in ready]
    for planned in arms.values():
        _check(planned, arms)
        if planned.arm.definitions and not study.definitions:
            raise ConfigError(
                f'arm {planned.name!r}: definitions: the study names no file of them (definitions = "FILE")'
            )
    chosen = _chosen_arms(study, default.name, arms)
    contrasts = _contrasts(study, arms, chosen)
    confirmed = {name for contrast in contrasts if contrast.confirmatory for name in contrast.arms}
    written = [default.name, *(entry.name for entry in study.arm)]
    ranked = sorted(chosen, key=lambda name: (_rank(chosen[name], default.name, confirmed), written.index(name)))
    return Design(default.name, tuple(chosen[name] for name in ranked), contrasts)


def gate_of(admission: str) -> tuple[str, float]:
    """The verifier's name and its noise: `noisy:10%` is the noisy oracle at 0.1."""
    noise = NOISY.fullmatch(admission)
    return ("noisy", float(noise[1]) / 100) if noise else (admission, 0.0)


def bank_share(bank: str) -> float | None:
    """The share of its cards that a bank is cut to, such as 50% (of a hundred), if it is."""
    part = FRACTION.fullmatch(bank)
    return float(part[1]) if part else None


def matched_arm(bank: str) -> str | None:
    """The arm whose card counts a bank is cut to, if it is."""
    cut = MATCHED.fullmatch(bank)
    return cut[1] if cut else None


def trial_arm(bank: str) -> str | None:
    """The arm whose collection questions decide which cards a bank retires, if it retires any."""
    cut = RETIRED.fullmatch(bank)
    return cut[1] if cut else None


def _default(entry: ArmEntry) -> Arm:
    factors = {name: value for name in FACTORS if (value := getattr(entry, name)) is not None}
    return Arm(name=entry.name, **factors)


def _derived(entry: ArmEntry, base: Arm) -> Arm:
    """The base with the entry's changes, of which there must be exactly one."""
    factors = {name: value for name in FACTORS if (value := getattr(entry, name)) is not None}
    changed = [name for name, value in factors.items() if value != getattr(base, name)]
    if len(changed) != 1:
        difference = f"differs in {', '.join(changed)}" if changed else "does not differ"
        raise ConfigError(
            f"arm {entry.name!r}: {difference} from {base.name!r}; an arm changes exactly one factor of its base "
            f'(base = "ARM" names another one), out of {", ".join(FACTORS)}'
        )
    return msgspec.structs.replace(base, name=entry.name, factor=changed[0], base=base.name, **factors)


def _check(planned: PlannedArm, arms: dict[str, PlannedArm]) -> None:
    """Refuse a value that no implementation has, naming the choices."""
    arm, where = planned.arm, f"arm {planned.name!r}"
    gate, rate = gate_of(arm.admission)
    _check_source(arm, where)
    tables = (("writer", arm.writer, WRITERS), ("solver", arm.solver, SOLVERS))
    for key, value, table in (*tables, ("retriever", arm.retriever, RETRIEVERS)):
        if value not in table:
            raise ConfigError.unknown(f"{where}: {key}", value, table)
    if gate not in REGIMES or (gate == "noisy" and not 0 < rate <= 1):
        raise ConfigError.unknown(f"{where}: admission", arm.admission, {*REGIMES, "noisy:10%"} - {"noisy"})
    if arm.correspondence not in ("aligned", "permuted"):
        raise ConfigError.unknown(f"{where}: correspondence", arm.correspondence, ["aligned", "permuted"])
    if arm.correspondence == "permuted" and not WRITERS[arm.writer].permutable:
        permutable = ", ".join(name for name, writer in WRITERS.items() if writer.permutable)
        raise ConfigError(f"{where}: correspondence: only {permutable} cards can be permuted, not {arm.writer}")
    cut = MATCHED.fullmatch(arm.bank)
    if cut and (cut[1] not in arms or cut[1] == arm.name or arms[cut[1]].arm.bank.startswith("matched")):
        raise ConfigError.unknown(f"{where}: bank: matched to", cut[1], set(arms) - {arm.name})
    if trial := trial_arm(arm.bank):
        _check_trial(planned, trial, arms)
    elif not cut and arm.bank != "full" and not FRACTION.fullmatch(arm.bank):
        raise ConfigError.unknown(f"{where}: bank", arm.bank, ["full", "50%", "matched:ARM:DRAW", "retire:ARM"])
    if arm.k < 0 or arm.passes < 1:
        raise ConfigError(f"{where}: k must be 0 or more and passes 1 or more")
    for setting in planned.settings:
        if setting not in CHOICES:
            raise ConfigError.unknown(f"{where}: settings", setting, CHOICES)
        asked = SETTINGS[setting]
        if (asked.asks == "banked" or asked.leaves_out) and not planned.remembers:
            raise ConfigError(f"{where}: settings: {setting} needs a bank, and this arm has none")


def _check_source(arm: Arm, where: str) -> None:
    """Refuse a source that is not known, and what only a log can feed or cannot."""
    share = log_share(arm.source)
    if (share is None and arm.source not in SOURCES) or (share or 0) > 1:
        raise ConfigError.unknown(f"{where}: source", arm.source, {*SOURCES, "log", "log:30%"})
    if share is None and arm.admission == RoundTrip.signal:
        raise ConfigError(
            f'{where}: admission: {arm.admission} needs a log (source = "log"), not episodes of {arm.source}'
        )
    if share is not None and arm.passes > 1:
        raise ConfigError(f"{where}: passes: a log is read once")


def _check_trial(planned: PlannedArm, trial: str, arms: dict[str, PlannedArm]) -> None:
    """Refuse to retire cards by an arm that has others, or whose collection questions nobody asks."""
    where = f"arm {planned.name!r}: bank: retire"
    if trial not in arms or trial == planned.name or trial_arm(arms[trial].arm.bank):
        raise ConfigError.unknown(where, trial, {name for name, arm in arms.items() if not trial_arm(arm.arm.bank)})
    other = arms[trial]
    differing = [key for key in (*COLLECTING, "writer") if getattr(other.arm, key) != getattr(planned.arm, key)]
    if differing:
        raise ConfigError(f"{where}: {trial!r} has other cards (it differs in {', '.join(differing)})")
    if TRIAL not in other.settings:
        raise ConfigError(f"{where}: add {TRIAL} to the settings of arm {trial!r}; its answers say which cards harm")
    if lacking := set(planned.seeds) - set(other.seeds):
        raise ConfigError(f"{where}: arm {trial!r} is not measured under {sorted(lacking)}")


def _chosen_arms(study: StudyFile, default: str, arms: dict[str, PlannedArm]) -> dict[str, PlannedArm]:
    """The chosen arms, the default, and the arms whose card counts or trials others rest on."""
    for name in study.arms:
        if name not in arms:
            raise ConfigError.unknown("arms", name, arms)
    chosen = set(study.arms or arms) | {default}
    while True:
        banks = [arms[name].arm.bank for name in chosen]
        needed = {other for bank in banks if (other := matched_arm(bank) or trial_arm(bank))}
        if needed <= chosen:
            return {name: planned for name, planned in arms.items() if name in chosen}
        chosen |= needed


def _contrasts(study: StudyFile, arms: dict[str, PlannedArm], chosen: dict[str, PlannedArm]) -> tuple[Contrast, ...]:
    contrasts: list[Contrast] = []
    for entry in study.contrast:
        name = entry.name or f"{entry.b} vs {entry.a}"
        contrast = Contrast(name=name, a=entry.a, b=entry.b, confirmatory=entry.confirmatory)
        _check_sides(contrast, arms)
        if any(other.name == name for other in contrasts):
            raise ConfigError(f"contrast {name!r}: the name is used twice")
        # A family is what the file designates: leaving arms out does not make its other contrasts look better.
        if entry.confirmatory or set(contrast.arms) <= chosen.keys():
            contrasts.append(contrast)
    return tuple(contrasts)


def _check_sides(contrast: Contrast, arms: dict[str, PlannedArm]) -> None:
    """Refuse sides that are not measured, or that do not ask the same questions."""
    for side in contrast.sides:
        if side.arm not in arms:
            raise ConfigError.unknown("contrast: arm", side.arm, arms)
        if side.setting not in arms[side.arm].settings:
            measured = ", ".join(arms[side.arm].settings)
            raise ConfigError(
                f"contrast {contrast.name!r}: arm {side.arm!r} is not measured in {side.setting} (it is in {measured}):"
                f" add {side.setting} to its settings, or take the contrast out of the study file"
            )
    first, second = (SETTINGS[side.setting] for side in contrast.sides)
    if first.leaves_out or second.leaves_out:
        raise ConfigError(f"contrast {contrast.name}: a cause setting asks only where memory changed the verdict")
    if (first.asks, first.reworded) != (second.asks, second.reworded):
        raise ConfigError(f"contrast {contrast.name}: {first.name} and {second.name} do not ask the same questions")


def _rank(planned: PlannedArm, default: str, confirmed: set[str]) -> int:
    """No memory first, then the default, then what confirmatory contrasts need, then the rest."""
    if not planned.remembers and planned.name in confirmed:
        return 0
    return 1 if planned.name == default else 2 if planned.name in confirmed else 3
