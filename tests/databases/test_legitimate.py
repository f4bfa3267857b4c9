"""What people and models write runs on four real engines: a guard that refuses it would be of no use."""

import tomllib
from pathlib import Path

from sqlcrystal.databases import open_database
from sqlcrystal.types import Failure

STATEMENTS = tomllib.loads(Path(__file__).parents[1].joinpath("legitimate.toml").read_text(encoding="utf-8"))


def test_every_legitimate_statement_gives_rows(engine: str, url: str) -> None:
    database = open_database(url)
    lines = [*STATEMENTS["everywhere"].strip().splitlines(), *STATEMENTS[engine].strip().splitlines()]
    results = {line: database.execute(line.replace("⏎", "\n")) for line in lines}
    database.close()
    assert {line: result for line, result in results.items() if isinstance(result, Failure)} == {}
