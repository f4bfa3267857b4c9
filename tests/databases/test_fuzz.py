"""Random statements against the locks of four real engines; nothing that must not happen does."""

import os
from pathlib import Path

import pytest

from engines import Server
from fuzzing import ENGINES, fuzz, league

COUNT = int(os.environ.get("SQLCRYSTAL_FUZZ", "20000"))


@pytest.mark.timeout(1800 + COUNT / 50)
@pytest.mark.parametrize("engine_name", ENGINES)
def test_no_random_statement_gets_past_the_locks(
    engine_name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if engine_name in {"postgres", "mysql"}:
        server: Server = request.getfixturevalue(f"{engine_name}_server")
        report = fuzz(engine_name, server, COUNT, 1)
    else:
        with league(engine_name, tmp_path) as server:
            report = fuzz(engine_name, server, COUNT, 1)
    assert report["wrong"] == []
    assert report["kinds"]["rows"] > COUNT / 100  # else it tests the parser alone
    assert max(report["megabytes"]) < 700
