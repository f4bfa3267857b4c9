"""Texts that are the same but for a few places: matched piece by piece, in time that grows with the text alone.

A regular expression with one gap for each value tries every way to divide a text among its gaps; here each gap ends
where the piece behind it comes first. Not found is therefore a text whose value holds the very words behind its gap.
"""

import re
from collections.abc import Sequence

from msgspec import Struct

_NUMBER = re.compile(r"\d+(?:\.\d+)?")


class Gap(Struct, frozen=True):
    """A place where any text of at least one character may stand, or nothing but a number."""

    number: bool = False
    longest: int = 1_000_000
    without: str = ""
    """Characters that the text may not have."""


class Again(Struct, frozen=True):
    """A place where the text of an earlier gap stands once more."""

    gap: int


Part = str | Gap | Again


def between(parts: Sequence[Part], text: str) -> tuple[str, ...] | None:
    """Find the text in each gap where the parts stand in this order with nothing else; case does not count."""
    folded = _folded(text)
    taken: list[str] = []
    at = 0
    for place, part in enumerate(parts):
        if isinstance(part, Gap):
            end = _end(part, folded, at, parts[place + 1 :])
            if end is None:
                return None
            taken.append(text[at:end])
            at = end
            continue
        wanted = _folded(part if isinstance(part, str) else taken[part.gap])
        if not folded.startswith(wanted, at):
            return None
        at += len(wanted)
    return tuple(taken) if at == len(text) else None


def _end(gap: Gap, text: str, at: int, behind: Sequence[Part]) -> int | None:
    if gap.number:
        number = _NUMBER.match(text, at)
        return number.end() if number else None
    fixed = _folded(behind[0]) if behind and isinstance(behind[0], str) else ""
    if not behind:
        end = len(text)
    elif fixed and len(behind) == 1:
        end = len(text) - len(fixed)
    else:
        end = text.find(fixed, at + 1)
    taken = text[at:end] if end > at else ""
    if not taken or len(taken) > gap.longest or any(character in taken for character in gap.without):
        return None
    return end


def _folded(text: str) -> str:
    """Lower the case of a text, every character at its place: the few whose lower case is longer stay."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(low if len(low := character.lower()) == 1 else character for character in text)
