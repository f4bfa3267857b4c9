"""Say loudly when the embedded model could not be tested."""

import pytest

from sqlcrystal.models.catalogue import weights_path


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line that cannot be missed."""
    name = "qwen2.5-coder-0.5b"
    if not weights_path(name).is_file():
        terminalreporter.write_line(
            f"NOT TESTED: the local model; its weights are absent (sqlcrystal model pull {name})"
        )
