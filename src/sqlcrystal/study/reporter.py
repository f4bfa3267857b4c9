"""Who is told how far a study is."""

from typing import Protocol


class Reporter(Protocol):
    """Who is told how far a run is."""

    def start(self, label: str, total: int) -> None:
        """A stretch of work begins."""
        ...

    def step(self) -> None:
        """One question is done."""
        ...

    def note(self, text: str) -> None:
        """Something worth a line."""
        ...


class Silent:
    """A reporter that tells nobody."""

    def start(self, label: str, total: int) -> None:
        """Say nothing."""

    def step(self) -> None:
        """Say nothing."""

    def note(self, text: str) -> None:
        """Say nothing."""
