"""Who is told how far a study is."""


class Reporter:
    """Told how far a run is; this one keeps it to itself."""

    def start(self, total: int) -> None:
        """So many units lie ahead."""

    def step(self, label: str) -> None:
        """One unit of the named stretch is done."""

    def note(self, text: str) -> None:
        """Something worth a line."""
