"""The engine's own signal: it admits a repair after which nothing looks wrong any more, and needs no oracle."""

from typing import ClassVar

from sqlcrystal.admission.seal import Clock, admit, utc_now
from sqlcrystal.databases.symptoms import symptoms
from sqlcrystal.protocols import Database
from sqlcrystal.types import Admitted, Episode, Rejected


class EngineSignal:
    """Admits SQL that runs, returns something, and compares columns only with values they hold.

    It does not guarantee that the SQL answers the question: cards it admits say so by their signal.
    """

    signal: ClassVar[str] = "engine"

    def __init__(self, database: Database, *, clock: Clock = utc_now) -> None:
        self.database = database
        self.clock = clock

    def verify(self, episode: Episode) -> Admitted | Rejected:
        """Look at what the engine shows."""
        if complaints := symptoms(episode.sql, self.database):
            return Rejected(episode=episode, signal=self.signal, reason=" ".join(complaints))
        return admit(episode, signal=self.signal, by=self.database.dialect, clock=self.clock)
