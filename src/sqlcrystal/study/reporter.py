"""The listener of a run: its own module, so that commands can describe one without loading the study."""


class Reporter:
    """Is told how far a run is; this one passes nothing on."""

    def start(self, total: int) -> None:
        """Say how many units lie ahead."""

    def step(self, label: str) -> None:
        """Say that one more unit of the named batch is done."""

    def note(self, text: str) -> None:
        """Say something that is worth a line."""
