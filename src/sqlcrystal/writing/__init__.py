"""Writing: what of an admitted episode becomes the text of a card."""

from sqlcrystal.writing.capsule import CapsuleWriter, LessonWriter
from sqlcrystal.writing.card import CardWriter, card_id, estimate_tokens
from sqlcrystal.writing.diffs import Anchor, Diff, DiffGuard, DiffMode
from sqlcrystal.writing.trace import Trace
from sqlcrystal.writing.verbatim import Verbatim

__all__ = [
    "Anchor",
    "CapsuleWriter",
    "CardWriter",
    "Diff",
    "DiffGuard",
    "DiffMode",
    "LessonWriter",
    "Trace",
    "Verbatim",
    "card_id",
    "estimate_tokens",
]
