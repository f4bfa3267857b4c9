"""The one clock of stored records, and the one way they write a moment: ISO 8601 in UTC, to the second."""

from datetime import UTC, datetime


def timestamp(moment: datetime | None = None) -> str:
    """Write a moment, or the present one, as `2026-03-01T12:00:00+00:00`."""
    return (moment or datetime.now(UTC)).astimezone(UTC).isoformat(timespec="seconds")


def as_timestamp(text: str) -> str:
    """Rewrite a moment or day given in another ISO 8601 form; without an offset it is UTC. Other text stays."""
    try:
        moment = datetime.fromisoformat(text)
        return timestamp(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        return text
