"""How far a study is: which arms and settings are recorded, which are not yet, and what fills them."""

import shlex
from functools import cached_property
from pathlib import Path

from msgspec import Struct

from sqlcrystal.ledger.records import Arm
from sqlcrystal.study.report.facts import Facts


class Completeness(Struct, frozen=True, kw_only=True, dict=True):
    """The arms of a study, and the settings that each still lacks."""

    folder: str
    """Where the study was run."""
    arms: tuple[str, ...]
    missing: dict[str, tuple[str, ...]]
    """By arm, the settings that are not complete."""
    begun: frozenset[str] = frozenset()
    """The arms that have answers in any setting."""
    confirmatory: frozenset[str] = frozenset()
    """The arms that the confirmatory contrasts compare."""

    @cached_property
    def recorded(self) -> int:
        """Tell how many arms are complete."""
        return sum(name not in self.missing for name in self.arms)

    @property
    def interim(self) -> bool:
        """Tell whether anything is still to come."""
        return bool(self.missing)

    @property
    def counted(self) -> str:
        """Tell how many arms are recorded, in words, and whether what is missing is only tried out."""
        whole = bool(self.confirmatory) and self.confirmatory.isdisjoint(self.missing)
        partly = len(self.begun & self.missing.keys())
        return (
            f"{self.recorded} of {len(self.arms)} arms recorded"
            + ", every confirmatory one among them" * whole
            + (f", {partly} more in part" if partly else "")
        )

    @property
    def command(self) -> str:
        """Tell what fills the rest: the folder knows its study, with whatever was changed of it."""
        return f"sqlcrystal study run {shlex.quote(self.folder)} --set mode=fill"


def completeness(facts: Facts, folder: Path | None = None) -> Completeness:
    """Read off the manifest what is there and what is not; without a folder, the usual one is named."""
    missing: dict[str, tuple[str, ...]] = {}
    for label in facts.manifest.left_out:
        name, _, setting = label.rpartition("/")
        missing[name] = (*missing.get(name, ()), setting)
    location = folder or Path("runs") / facts.manifest.study
    planned = [contrast for contrast in facts.manifest.contrasts if contrast.confirmatory]
    return Completeness(
        folder=str(location),
        arms=tuple(facts.arms),
        missing=missing,
        begun=frozenset(row.arm for row in facts.ledger.outcomes if row.setting != "collection"),
        confirmatory=frozenset(name for contrast in planned for name in contrast.arms),
    )


def recorded_settings(facts: Facts, arm: Arm) -> tuple[str, ...]:
    """The settings that an arm has outcomes in."""
    return tuple(dict.fromkeys(row.setting for row in facts.ledger.outcomes if row.arm == arm.name))
