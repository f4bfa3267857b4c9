"""A card as lists show it, by command and over HTTP alike."""

from typing import Any

from sqlcrystal.types import Card


def told_card(card: Card) -> dict[str, Any]:
    """Describe a card as lists show it, as JSON."""
    return {
        "id": card.id,
        "database": card.database,
        "question": card.question.text,
        "sql": card.sql,
        "status": str(card.status),
        "signal": card.admission.signal,
        "by": card.admission.by,
        "at": card.admission.at,
        "writer": card.writer,
        "source": card.source,
        "tokens": card.tokens,
    }
