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
    drawn = "\x1f".join((str(seed), database, question_key(question), day))
    digest = hashlib.sha256(drawn.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") < share * 2**64
