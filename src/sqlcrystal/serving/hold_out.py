"""Which questions are answered without memory, so that what memory is worth can be measured."""

import hashlib
from datetime import UTC, datetime
from typing import NamedTuple

from sqlcrystal.bank import question_key
from sqlcrystal.serving.workspace import OpenDatabase, Workspace
from sqlcrystal.types import Question


class ServingArm(NamedTuple):
    """Whether a question may see cards, by which chance it may not, and whether the other arm answers as well."""

    memory: bool
    share: float = 0.0
    both: bool = False


def draw(workspace: Workspace, opened: OpenDatabase, question: Question, *, wanted: bool | None) -> ServingArm:
    """The arm of a question today; who says what they want is not drawn, and not measured."""
    entry = opened.entry
    if wanted is not None or not entry.hold_out:
        return ServingArm(memory=wanted is not False)
    day = datetime.now(UTC).date().isoformat()
    out = held_out(
        seed=workspace.team.seed, database=opened.name, question=question.text, day=day, share=entry.hold_out
    )
    return ServingArm(memory=not out, share=entry.hold_out, both=entry.both_arms)


def held_out(*, seed: int, database: str, question: str, day: str, share: float) -> bool:
    """A hash decides: the same for every process all day, drawn anew tomorrow; a larger share only adds questions."""
    return _drawn(str(seed), database, question_key(question), day, share=share)


def audited(*, seed: int, database: str, key: str, day: str, share: float) -> bool:
    """Whether chance chose a question of that key to be judged that day, whichever arm answers it."""
    return _drawn(str(seed), database, key, day, "audit", share=share)


def _drawn(*parts: str, share: float) -> bool:
    digest = hashlib.sha256("\x1f".join(parts).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") < share * 2**64
