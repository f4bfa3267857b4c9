"""The records of the engines: every name of a dialect leads to one, and a name that none has is an error."""

import re
from pathlib import Path

import pytest

from sqlcrystal.databases import guard, open_database
from sqlcrystal.databases.engines import ENGINES, EngineRecord, engine_of, title_of
from sqlcrystal.databases.parsing import parse
from sqlcrystal.errors import ConfigError

SOURCE = Path(__file__).parents[2] / "src" / "sqlcrystal"
NAMES = "|".join(spelling for engine in ENGINES for spelling in engine.spellings)
ASKED_BY_NAME = re.compile(rf"dialect\S* (?:==|!=|in|not in) [({{\[]?['\"](?:{NAMES})['\"]")


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_a_record_is_found_under_every_name_of_its_dialect(engine: EngineRecord) -> None:
    for spelling, title in engine.spellings.items():
        assert engine_of(spelling) is engine
        assert engine_of(spelling.upper()) is engine
        assert title_of(spelling) == title


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_a_record_is_enough_for_the_guard(engine: EngineRecord) -> None:
    assert guard.check("SELECT count(*) FROM team", engine.name) is None
    assert guard.check("DELETE FROM team", engine.name) is not None


def test_an_unknown_dialect_is_an_error_that_names_the_choices() -> None:
    for use in (engine_of, title_of, lambda name: parse("SELECT 1", name), lambda name: guard.check("SELECT 1", name)):
        with pytest.raises(
            ConfigError, match=r"^dialect: unknown value 'clickhouse'; choose from duckdb, mariadb, mysql"
        ):
            use("clickhouse")
    with pytest.raises(ConfigError, match=r"^database: unknown value 'clickhouse'; choose from duckdb"):
        open_database("clickhouse://host/database")


def test_no_module_asks_for_a_dialect_by_name() -> None:
    """The store has dialects of its own, SQLAlchemy's."""
    modules = [path for path in SOURCE.rglob("*.py") if "bank" not in path.relative_to(SOURCE).parts]
    asking = {path.name: found for path in modules if (found := ASKED_BY_NAME.findall(path.read_text("utf-8")))}
    assert asking == {}
