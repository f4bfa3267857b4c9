"""Fixtures: a service of one's own, or one that the tests of a module share."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browser import opened_browser
from running_service import Service, serving


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with serving(tmp_path) as running:
        yield running


@pytest.fixture(scope="module")
def shared_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("service")) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with opened_browser() as opened:
        yield opened
