"""Where a store can live (every test that asks for a `place` runs once for each), and a shop to ask about."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from servers import new_postgres_database, running_postgres
from shop import build
from sqlcrystal.databases import open_database
from sqlcrystal.protocols import Database

_NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def store_server() -> Iterator[str]:
    """A PostgreSQL server with pgvector for the stores of all tests."""
    with running_postgres() as url:
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.xdist_group("stores"))])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A path or URL where no store is yet."""
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    return new_postgres_database(request.getfixturevalue("store_server"), f"store{next(_NUMBERS)}")


@pytest.fixture(scope="module")
def open_shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """The three-row shop, opened read-only, once for all the examples of a module."""
    database = open_database(str(build(tmp_path_factory.mktemp("shop") / "shop.sqlite")), name="shop")
    yield database
    database.close()
