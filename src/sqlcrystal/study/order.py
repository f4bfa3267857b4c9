"""The order of a study's work: what the confirmatory contrasts need comes first."""

from msgspec import Struct

from sqlcrystal.study.design import COLLECTING, Design, PlannedArm


class Phase(Struct, frozen=True):
    """One arm in one setting, over all seeds: complete as a whole or left out."""

    planned: PlannedArm
    setting: str

    @property
    def label(self) -> str:
        """How reports name what is left out."""
        return f"{self.planned.name}/{self.setting}"


def phases(design: Design) -> list[Phase]:
    """No memory, the default's collection, P_K, the default, the other confirmatory arms, then what is exploratory."""
    default = design.arm(design.default)
    confirmed = {name for one in design.contrasts if one.confirmatory for name in (one.a, one.b)} | {default.name}
    found: list[tuple[int, int, int, Phase]] = []
    for place, planned in enumerate(design.arms):
        settings = [*(["collection"] if collects(planned, default) else []), *planned.settings]
        for setting in settings:
            found.append((_turn(planned, setting, default, confirmed), place, len(found), Phase(planned, setting)))
    return [entry[3] for entry in sorted(found, key=lambda entry: entry[:3])]


def runs(setting: str, reruns: int) -> range:
    """The numbers of the repetitions a setting is measured in; 0 is the answer that all settings share."""
    return range(1, reruns + 1) if setting in ("rerun", "again") else range(1)


def collects(planned: PlannedArm, default: PlannedArm) -> bool:
    """Whether the arm's factor asks the model for a collection of its own; other arms share that of their base."""
    if planned.name == default.name:
        return planned.remembers
    capsules = planned.arm.factor == "writer" and planned.arm.writer.startswith("W5")
    return planned.remembers and (planned.arm.factor in COLLECTING or capsules)


def _turn(planned: PlannedArm, setting: str, default: PlannedArm, confirmed: set[str]) -> int:
    if planned.name not in confirmed:
        return 7 if setting == "again" else 6
    if setting == "again" or (setting == "repair" and planned.remembers):
        return 5
    if not planned.remembers:
        return 0 if setting == "transfer" else 2
    if planned.name == default.name:
        return 1 if setting == "collection" else 3
    return 4
