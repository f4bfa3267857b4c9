"""An attack that somebody else wrote, kept beside the project: canaries judge what it did, not what it answered."""

import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from canaries import Canaries, watching
from engines import Absent, Server
from fuzzing import ENGINES, is_late, league
from servers import short_folder
from sqlcrystal.databases import open_database
from sqlcrystal.protocols import Database
from sqlcrystal.types import Failure, FailureKind

LIMIT = 1.0
LATE = LIMIT + 1.0
WRITES_TO = "/tmp/aC_"
"""How the attack's own paths begin; they are aimed at the canaries' folder."""
SAFETY = Path(__file__).parents[2] / "docs" / "reference" / "safety.md"

pytestmark = pytest.mark.shared_data


def lines(folder: Path, name: str, engine: str) -> list[str]:
    """The statements of one file for one engine."""
    path = folder / "attacks" / name
    if not path.exists():
        pytest.skip("the attack is not beside this checkout")
    attacks = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [line["sql"] for line in attacks if line["engine"] == engine]


@pytest.fixture
def server(engine: str, tmp_path: Path) -> Iterator[Server]:
    """A league of its own, since MariaDB goes on with some statements for as long as the server lives."""
    try:
        with league(engine, tmp_path) as made:
            yield made
    except Absent as reason:
        pytest.skip(str(reason))


def wrong_with(database: Database, canaries: Canaries, sql: str) -> list[str]:
    """Everything that is wrong with what a statement did."""
    start = time.perf_counter()
    try:
        result = database.execute(sql, timeout=LIMIT)
        late = time.perf_counter() - start > LATE and is_late(database, sql, limit=LIMIT, late=LATE)
    except Exception as error:
        return [f"untyped {type(error).__name__}: {error}"]
    return ["late"] * late + [f"told {name}" for name in canaries.told(result)] + canaries.sung()


@pytest.mark.timeout(900)
def test_every_statement_is_refused_or_harmless_even_for_the_owner(
    engine: str, server: Server, shared_data: Path
) -> None:
    with short_folder("attack") as folder:
        folder.chmod(0o777)
        with watching(engine, server, folder) as canaries:
            database = open_database(server.owner, allow_privileged=True)
            wrong = {
                sql: harm
                for sql in lines(shared_data, "attacks.jsonl", engine)
                if (harm := wrong_with(database, canaries, sql.replace(WRITES_TO, f"{canaries.evil}-")))
            }
            database.close()
            assert canaries.sung_at_all() == []
    assert wrong == {}


def test_no_more_than_a_fiftieth_of_legitimate_statements_is_refused_and_each_is_named(
    shared_data: Path, request: pytest.FixtureRequest
) -> None:
    kinds: Counter[str] = Counter()
    refused = []
    for engine in ENGINES:
        database = open_database(request.getfixturevalue(f"{engine}_url"))
        for sql in lines(shared_data, "legitimate.jsonl", engine):
            result = database.execute(sql)
            kinds[result.kind if isinstance(result, Failure) else "rows"] += 1
            if isinstance(result, Failure) and result.kind is FailureKind.REFUSED:
                refused.append(sql)
        database.close()
    assert len(refused) <= kinds.total() / 50
    assert [sql for sql in refused if f"`{sql}`" not in SAFETY.read_text(encoding="utf-8")] == []
