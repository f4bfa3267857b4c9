"""User confirmation: a person saw the answer and said that it is right."""

from collections.abc import Callable
from typing import ClassVar, TypeAlias

from sqlcrystal.admission.seal import Clock, admit, utc_now
from sqlcrystal.types import Admitted, Episode, Rejected

Verdict: TypeAlias = Callable[[Episode], bool | None]
"""A person's verdict on an episode; None while there is none."""


class UserConfirmation:
    """Admits what a named person confirmed; silence admits nothing."""

    signal: ClassVar[str] = "user"

    def __init__(self, verdict: Verdict, *, by: str, note: str = "", clock: Clock = utc_now) -> None:
        self.verdict = verdict
        self.by = by
        self.note = note
        self.clock = clock

    def verify(self, episode: Episode) -> Admitted | Rejected:
        """Ask for the person's verdict."""
        verdict = self.verdict(episode)
        if verdict is True:
            return admit(episode, signal=self.signal, by=self.by, clock=self.clock, detail=self.note)
        reason = f"{self.by} rejected it" if verdict is False else f"{self.by} gave no verdict"
        return Rejected(episode=episode, signal=self.signal, reason=reason + (f": {self.note}" if self.note else ""))
