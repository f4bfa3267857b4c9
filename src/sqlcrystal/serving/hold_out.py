"""Which questions are answered without memory, so that what memory is worth can be measured."""

from sqlcrystal.serving.desk import Desk, Site
from sqlcrystal.types import Question


def uses_memory(desk: Desk, site: Site, question: Question, *, wanted: bool | None) -> bool:  # noqa: ARG001
    """Whether this question may see cards: as the caller wants it, and else always."""
    return True if wanted is None else wanted
