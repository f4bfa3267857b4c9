"""What the bank keeps beside a card: what was done to it, and the episode it came from."""

from msgspec import Struct

from sqlcrystal.types import Card, CardId, Episode


class Change(Struct, frozen=True, kw_only=True):
    """One thing done to a card: who did what, when (ISO 8601, UTC) and why."""

    at: str
    by: str
    action: str
    before: str = ""
    after: str = ""
    reason: str = ""


class Entry(Struct, frozen=True, kw_only=True):
    """A card with everything the bank knows of it; one line of an export."""

    card: Card
    episode: Episode | None = None
    history: tuple[Change, ...] = ()


class Added(Struct, frozen=True):
    """The id a card is kept under, and whether it was new to the bank."""

    id: CardId
    new: bool
