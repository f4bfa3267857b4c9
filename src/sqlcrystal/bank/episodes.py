"""Episodes as the store and its exports keep them, those of earlier versions included."""

from typing import Any, TypeVar

import msgspec

from sqlcrystal.bank.records import Entry
from sqlcrystal.types import Episode

_EPISODE = msgspec.json.Decoder(Episode)
_ENTRY = msgspec.json.Decoder(Entry)
_Kept = TypeVar("_Kept", Episode, Entry)


def read_episode(document: str | bytes) -> Episode:
    """An episode as a store keeps it."""
    return _read(document, _EPISODE)


def read_entry(document: str | bytes) -> Entry:
    """A card with its episode and history, as an export keeps it."""
    return _read(document, _ENTRY)


def _read(document: str | bytes, decoder: "msgspec.json.Decoder[_Kept]") -> _Kept:
    try:
        return decoder.decode(document)
    except msgspec.ValidationError:
        told = msgspec.json.decode(document)
        if not _renewed(told):
            raise
        kept: _Kept = msgspec.convert(told, decoder.type)
        return kept


def _renewed(told: Any) -> bool:
    """Whether this was of the first versions, which kept an attempt's one call where there is now a list of calls."""
    episode = told.get("episode", told) if isinstance(told, dict) else None
    attempt = episode.get("attempt") if isinstance(episode, dict) else None
    if not isinstance(attempt, dict) or "call" not in attempt:
        return False
    attempt["calls"] = [attempt.pop("call")]
    return True
