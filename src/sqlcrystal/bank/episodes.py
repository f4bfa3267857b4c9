"""Episodes as the store keeps them, those of earlier versions included."""

import msgspec

from sqlcrystal.types import Episode

_EPISODE = msgspec.json.Decoder(Episode)


def read_episode(document: str | bytes) -> Episode:
    """An episode; the first versions kept an attempt's one call where there is now a list of calls."""
    try:
        return _EPISODE.decode(document)
    except msgspec.ValidationError:
        told = msgspec.json.decode(document)
        attempt = told.get("attempt", {})
        if "call" not in attempt:
            raise
        attempt["calls"] = [attempt.pop("call")]
        return msgspec.convert(told, Episode)
