"""Fixtures every test may use: where the real data lies, and no network but loopback."""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from sqlcrystal.protocols import Database

ROOT = Path(__file__).resolve().parent.parent


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say loudly what this machine lacks, so that a skip is never silent."""
    reports = terminalreporter.stats.get("skipped", ())
    reasons = Counter(report.longrepr[2] for report in reports if isinstance(report.longrepr, tuple))
    for reason, count in reasons.items():
        plain_reason = reason.removeprefix("Skipped: ").removeprefix("LOUD: ")
        terminalreporter.write_line(f"NOT TESTED: {count} skipped: {plain_reason}", yellow=True, bold=True)


def pytest_configure(config: pytest.Config) -> None:
    """Keep tests off the model hub, and their speed out of the verdict."""
    os.environ.setdefault("SQLCRYSTAL_NO_HUB", "1")
    # A deadline or a slow-input check measures the machine, not the code: a busy one would fail tests at random.
    settings.register_profile("sqlcrystal", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("sqlcrystal")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let tests reach this machine only."""
    from pytest_socket import socket_allow_hosts

    socket_allow_hosts(["127.0.0.1", "::1", "localhost"], allow_unix_socket=True)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with the real benchmarks, which developers and CI have and users do not."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the real benchmark data is not beside this checkout")
    return folder


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Database]:
    """The three-row shop, opened read-only."""
    from shop import build
    from sqlcrystal.databases import open_database

    database = open_database(str(build(tmp_path / "shop.sqlite")), name="shop")
    yield database
    database.close()
