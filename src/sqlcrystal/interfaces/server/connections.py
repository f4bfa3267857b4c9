"""Connections that send nothing: each has so long for a whole request, and only so many may wait at a time."""

import time
from typing import Any
from weakref import WeakKeyDictionary

import uvicorn

from sqlcrystal.interfaces.server.settings import ServerSettings

TICKS = 5
"""The web server ticks ten times a second; the connections are looked at twice."""


class PatientServer(uvicorn.Server):
    """The web server, which closes connections that are slow to send: those to whom nothing is owed."""

    def __init__(self, config: uvicorn.Config, settings: ServerSettings) -> None:
        """Take the limits of the service."""
        super().__init__(config)
        self._settings = settings
        self._since: WeakKeyDictionary[Any, float] = WeakKeyDictionary()

    async def on_tick(self, counter: int) -> bool:
        """Look at the connections now and then."""
        if counter % TICKS == 0:
            self._close_slow(time.monotonic())
        return await super().on_tick(counter)

    def _close_slow(self, now: float) -> None:
        """Close what has waited too long, and of too many the oldest."""
        waiting = []
        for connection in list(self.server_state.connections):
            if _owes_a_request(connection):
                waiting.append((self._since.setdefault(connection, now), connection))
            else:
                self._since.pop(connection, None)
        waiting.sort(key=lambda each: each[0])
        surplus = max(0, len(waiting) - self._settings.idle_connections)
        for number, (since, connection) in enumerate(waiting):
            if number < surplus or now - since > self._settings.request_seconds:
                connection.transport.abort()


def _owes_a_request(connection: Any) -> bool:
    """Tell whether a connection has yet to send a request, or the rest of one."""
    cycle = connection.cycle
    return cycle is None or cycle.response_complete or cycle.more_body
