"""Real engines for the tests: a PostgreSQL and a MariaDB are started here, SQLite and DuckDB files are made."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import engines
from engines import Absent, Server
from sqlcrystal.databases import open_database
from sqlcrystal.protocols import Database

HERE = Path(__file__).parent
ENGINES = ("sqlite", "postgres", "mysql", "duckdb")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests that need servers on one worker, so that each server starts once."""
    for item in items:
        if Path(str(item.path)).parent == HERE:
            item.add_marker(pytest.mark.xdist_group("databases"))


@pytest.fixture(scope="session")
def sqlite_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A small SQLite file."""
    return engines.make_sqlite(tmp_path_factory.mktemp("sqlite") / "league.sqlite")


@pytest.fixture(scope="session")
def duckdb_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A small DuckDB file."""
    try:
        return engines.make_duckdb(tmp_path_factory.mktemp("duckdb") / "league.duckdb")
    except Absent as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """A PostgreSQL server of our own."""
    try:
        with engines.postgres() as server:
            yield server
    except Absent as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def mysql_server() -> Iterator[Server]:
    """A MariaDB server of our own."""
    try:
        with engines.mariadb() as server:
            yield server
    except Absent as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def postgres_url(postgres_server: Server) -> str:
    """The league for a reader."""
    return postgres_server.reader


@pytest.fixture(scope="session")
def mysql_url(mysql_server: Server) -> str:
    """The league for a reader."""
    return mysql_server.reader


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """The name of each engine in turn."""
    return str(request.param)


@pytest.fixture
def url(engine: str, request: pytest.FixtureRequest) -> str:
    """Where the engine's copy of the league lies."""
    return str(request.getfixturevalue(f"{engine}_url"))


@pytest.fixture(scope="session")
def opened() -> Iterator[dict[str, Database]]:
    """The databases opened so far; closed at the end."""
    databases: dict[str, Database] = {}
    yield databases
    for database in databases.values():
        database.close()


@pytest.fixture
def league(engine: str, url: str, opened: dict[str, Database]) -> Database:
    """The same small database in every engine."""
    if engine not in opened:
        opened[engine] = open_database(url)
    return opened[engine]
