"""Who is told how far a study is."""

from typing import Protocol


class Reporter(Protocol):
    """Who is told how far a run is."""

    def start(self, total: int) -> None:
        """So many units lie ahead."""
        ...

    def step(self, label: str) -> None:
        """One unit of the named stretch is done."""
        ...

    def note(self, text: str) -> None:
        """Something worth a line."""
        ...


class Silent:
    """A reporter that tells nobody."""

    def start(self, total: int) -> None:
        """Say nothing."""

    def step(self, label: str) -> None:
        """Say nothing."""

    def note(self, text: str) -> None:
        """Say nothing."""
